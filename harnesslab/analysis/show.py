"""HTML for results, all text escaped: what a Loss shows of itself and what panels build on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harnesslab.ledger import Verdict, read_verdict
from harnesslab.markup import LIMIT, Markup, fill, paragraph, table
from harnesslab.plaintext import counted, shown

FLIPS = 40


def verdict_html(verdict: Verdict | Mapping[str, Any], *, title: str = "") -> Markup:
    """A verdict, or its JSON, as static HTML: decision, counts, flips task by task, metrics, cost."""
    read = read_verdict(verdict)
    if read is None:
        return paragraph("Nobody has judged it yet.")
    by = read.decider.name + (", an override of the verdict" if read.override else "")
    named = fill("<b>{}</b> ", title) if title else ""
    loss = "infinite" if math.isinf(read.value) else f"{read.value:+.3g}"
    told = (named, read.decision, read.why, loss, by)
    head = fill("<p>{}<b>{}</b>: {} (loss {}, by {})</p>", *told, limit=LIMIT)
    if read.counts is None:
        return head + paragraph("Nothing was measured.")
    before, after, tasks = read.counts
    early = " Stopped early: nothing could change the verdict any more." if read.settled_early else ""
    could = f" It {read.could_show}." if read.could_show else ""
    solved = f"Solved {before} → {after} of {counted(tasks, 'task')}.{early}{could}"
    measured = _flips(read) + _metrics(read) + _predictions(read)
    return head + paragraph(solved) + measured + _statistics(read) + _cost(read)


def _flips(verdict: Verdict) -> Markup:
    flips = verdict.flips
    if not flips:
        return paragraph("No task changed its outcome.")
    rows = [
        (flip.task, f"{_outcome(flip.before)} → {_outcome(flip.after)}",
         "incidental: nothing new fired" if flip.incidental else "")
        for flip in flips[:FLIPS]
    ]  # fmt: skip
    more = [f"and {len(flips) - FLIPS} more"] if len(flips) > FLIPS else []
    return table(("task", "flip", "note"), rows, below=more)


def _metrics(verdict: Verdict) -> Markup:
    rows = [(name, float(before), float(after)) for name, (before, after) in verdict.metrics.items()]
    return table(("mean of", "baseline", "candidate"), rows) if rows else Markup()


def _predictions(verdict: Verdict) -> Markup:
    rows = [
        (name, shown(said.get("predicted")), shown(said.get("seen")), "yes" if said.get("held") is True else "no")
        for name, said in verdict.predictions.items()
    ]
    return table(("prediction", "predicted", "seen", "held"), rows) if rows else Markup()


def _statistics(verdict: Verdict) -> Markup:
    said = ", ".join(f"{name} {shown(value)}" for name, value in verdict.statistics.items())
    return paragraph(f"Statistics: {said}." if said else "")


def _cost(verdict: Verdict) -> Markup:
    cost = verdict.cost
    if not cost:
        return Markup()
    tokens = cost.get("prompt_tokens", 0) + cost.get("completion_tokens", 0)
    return paragraph(
        f"Cost of the candidate: {cost.get('episodes', 0):.0f} episodes, {cost.get('calls', 0):.0f} calls, "
        f"{tokens:.0f} tokens, {cost.get('seconds', 0):.1f} s."
    )


def _outcome(solved: bool) -> str:
    return "solved" if solved else "failed"
