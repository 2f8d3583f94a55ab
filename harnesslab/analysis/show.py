"""HTML for results, all text escaped: what a Loss shows of itself and what panels build on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harnesslab.ledger import solved_counts, who_decided
from harnesslab.markup import LIMIT, Markup, fill, paragraph, table
from harnesslab.plaintext import shown
from harnesslab.rollout.show import counted

FLIPS = 40


def verdict_html(verdict: Mapping[str, Any], *, title: str = "") -> Markup:
    """A stored verdict as static HTML: decision, counts, flips task by task, metrics, cost."""
    decider = who_decided(verdict)
    by = decider.name if decider else str(verdict.get("criterion", ""))
    if decider and decider.override:
        by += ", an override of the verdict"
    value = verdict.get("value")
    named = fill("<b>{}</b> ", title) if title else ""
    loss = "infinite" if value is None else f"{value:+.3g}"
    told = (named, verdict.get("decision"), verdict.get("why"), loss, by)
    head = fill("<p>{}<b>{}</b>: {} (loss {}, by {})</p>", *told, limit=LIMIT)
    counts = solved_counts(verdict)
    if counts is None:
        return head + paragraph("Nothing was measured.")
    early = " Stopped early: nothing could change the verdict any more." if verdict.get("settled_early") else ""
    solved = f"Solved {counts[0]} → {counts[1]} of {counted(counts[2], 'task')}.{early}"
    return head + paragraph(solved) + _flips(verdict) + _metrics(verdict) + _statistics(verdict) + _cost(verdict)


def _flips(verdict: Mapping[str, Any]) -> Markup:
    flips = list(verdict.get("flips", ()))
    if not flips:
        return paragraph("No task changed its outcome.")
    rows = [
        (flip["task"], f"{_outcome(flip['from'])} → {_outcome(flip['to'])}",
         "incidental: nothing new fired" if flip["incidental"] else "")
        for flip in flips[:FLIPS]
    ]  # fmt: skip
    more = [f"and {len(flips) - FLIPS} more"] if len(flips) > FLIPS else []
    return table(("task", "flip", "note"), rows, below=more)


def _metrics(verdict: Mapping[str, Any]) -> Markup:
    rows = [(name, float(pair[0]), float(pair[1])) for name, pair in (verdict.get("metrics") or {}).items()]
    return table(("mean of", "baseline", "candidate"), rows) if rows else Markup()


def _statistics(verdict: Mapping[str, Any]) -> Markup:
    said = ", ".join(f"{name} {shown(value)}" for name, value in (verdict.get("statistics") or {}).items())
    return paragraph(f"Statistics: {said}." if said else "")


def _cost(verdict: Mapping[str, Any]) -> Markup:
    cost = verdict.get("cost") or {}
    if not cost:
        return Markup()
    tokens = cost.get("prompt_tokens", 0) + cost.get("completion_tokens", 0)
    return paragraph(
        f"Cost of the candidate: {cost.get('episodes', 0):.0f} episodes, {cost.get('calls', 0):.0f} calls, "
        f"{tokens:.0f} tokens, {cost.get('seconds', 0):.1f} s."
    )


def _outcome(solved: bool) -> str:
    return "solved" if solved else "failed"
