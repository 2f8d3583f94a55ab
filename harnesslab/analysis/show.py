"""HTML for results, all text escaped: what a Loss shows of itself and what panels build on."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from harnesslab.ledger import solved_counts, who_decided
from harnesslab.rollout.show import counted

FLIPS = 40


def verdict_html(verdict: Mapping[str, Any], *, title: str = "") -> str:
    """A stored verdict as static HTML: decision, counts, flips task by task, metrics, cost."""
    decider = who_decided(verdict)
    by = decider.name if decider else str(verdict.get("criterion", ""))
    if decider and decider.override:
        by += ", an override of the verdict"
    value = verdict.get("value")
    head = (
        f"<p>{f'<b>{_text(title)}</b> ' if title else ''}<b>{_text(verdict.get('decision'))}</b>: {_text(verdict.get('why'))} "
        f"(loss {'infinite' if value is None else f'{value:+.3g}'}, by {_text(by)})</p>"
    )
    counts = solved_counts(verdict)
    if counts is None:
        return head + "<p>Nothing was measured.</p>"
    early = " Stopped early: nothing could change the verdict any more." if verdict.get("settled_early") else ""
    solved = f"<p>Solved {counts[0]} → {counts[1]} of {_text(counted(counts[2], 'task'))} played.{early}</p>"
    return head + solved + _flips(verdict) + _metrics(verdict) + _statistics(verdict) + _cost(verdict)


def _flips(verdict: Mapping[str, Any]) -> str:
    flips = list(verdict.get("flips", ()))
    if not flips:
        return "<p>No task changed its outcome.</p>"
    rows = "".join(
        f"<tr><td>{_text(flip['task'])}</td><td>{_outcome(flip['from'])} → {_outcome(flip['to'])}</td>"
        f"<td>{'incidental: nothing new fired' if flip['incidental'] else ''}</td></tr>"
        for flip in flips[:FLIPS]
    )
    more = f"<p>and {len(flips) - FLIPS} more</p>" if len(flips) > FLIPS else ""
    return (
        "<table><thead><tr><th scope='col'>task</th><th scope='col'>flip</th><th scope='col'>note</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>{more}"
    )


def _metrics(verdict: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{_text(name)}</td><td>{_number(float(pair[0]))}</td><td>{_number(float(pair[1]))}</td></tr>"
        for name, pair in (verdict.get("metrics") or {}).items()
    )
    head = "<tr><th scope='col'>mean of</th><th scope='col'>baseline</th><th scope='col'>candidate</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>" if rows else ""


def _statistics(verdict: Mapping[str, Any]) -> str:
    said = ", ".join(f"{_text(name)} {_number(value)}" for name, value in (verdict.get("statistics") or {}).items())
    return f"<p>Statistics: {said}.</p>" if said else ""


def _cost(verdict: Mapping[str, Any]) -> str:
    cost = verdict.get("cost") or {}
    if not cost:
        return ""
    tokens = cost.get("prompt_tokens", 0) + cost.get("completion_tokens", 0)
    return (
        f"<p>Cost of the candidate: {cost.get('episodes', 0):.0f} episodes, {cost.get('calls', 0):.0f} calls, "
        f"{tokens:.0f} tokens, {cost.get('seconds', 0):.1f} s.</p>"
    )


def _outcome(solved: bool) -> str:
    return "solved" if solved else "failed"


def _number(value: Any) -> str:
    """A number in three digits, thousands in full; anything else as text."""
    if not isinstance(value, float):
        return _text(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _text(value: Any) -> str:
    return html.escape("" if value is None else str(value))
