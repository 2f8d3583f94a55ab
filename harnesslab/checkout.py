"""The files in a lab's folder: which of them are edited parts of the harness, and which commit they belong to."""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.harness.files import MAX_BYTES, MEANT, has_meaning, why_not
from harnesslab.store import LabRepo
from harnesslab.store.refs import BASELINE

SHOWN = 5
"""Edited files that a notice names."""


def edits(repo: LabRepo) -> tuple[dict[str, str | None], str]:
    """The edited harness files as changes for a proposal, and one line on the edited files that are not; empty for none."""
    found = repo.edits(has_meaning, MAX_BYTES)
    changes: dict[str, str | None] = {}
    left_out = {path: reason or why_not(path) for path, reason in found.left_out.items()}
    for path, data in found.changes.items():
        try:
            path.encode("utf-8")
            changes[path] = None if data is None else data.decode("utf-8")
        except UnicodeError:
            left_out[path] = "not UTF-8"
    return changes, _left_out(left_out)


def elsewhere(repo: LabRepo) -> str:
    """Where HEAD is, in words; empty where it is on the baseline's branch."""
    branch, commit = repo.head(), repo.checked_out()
    if branch == BASELINE:
        return ""
    on = f"on branch {branch.removeprefix('refs/heads/')!r}" if branch else "detached"
    return (
        f"HEAD is {on} at {commit[:10]}, not on main" if commit else f"HEAD is {on}, which has no commit, not on main"
    )


def _left_out(reasons: Mapping[str, str]) -> str:
    if not reasons:
        return ""
    # Those first that somebody may have meant to be part of the harness.
    names = sorted(reasons, key=lambda path: (not reasons[path], path))
    shown = [_shown(path) + (f" ({reasons[path]})" if reasons[path] else "") for path in names[:SHOWN]]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"not proposed: {', '.join(shown)}{more}. A harness consists of {MEANT}."


def _shown(path: str) -> str:
    text = path if path.isprintable() else repr(path)
    return text if len(text) <= 80 else f"{text[:79]}…"
