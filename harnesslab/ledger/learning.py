"""``learning.md``: what was tried and what came of it, in words that a person (or an agent) can read."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.plaintext import markdown
from harnesslab.store import Candidate, LabRepo

HEADINGS = {
    "promoted": "Promoted",
    "rejected": "Rejected",
    "undecided": "Undecided",
    "measured": "Measured, not decided yet",
    "pending": "Not measured yet",
}
LATEST = 200
"""Candidates that the file tells of, the latest ones."""


def write_learning(repo: LabRepo) -> None:
    """Rewrite ``learning.md`` from the verdicts in git; a folder that cannot be written is not an error here."""
    repo.write_learning(learning_text(repo.path.name, repo.candidates(limit=LATEST).rows))


def learning_text(name: str, candidates: Sequence[Candidate]) -> str:
    """Markdown from the verdicts in git, newest first under each heading."""
    lines = [
        f"# What was learned in {markdown(name)}",
        "",
        "Rewritten by harnesslab after each verdict; edits are lost.",
        "",
    ]
    for state, heading in HEADINGS.items():
        rows = [row for row in candidates if row.state == state]
        if not rows:
            continue
        lines += [f"## {heading}", ""]
        lines += [f"- {markdown(row.subject)}" + (f": {markdown(row.reason)}" if row.reason else "") for row in rows]
        lines.append("")
    return "\n".join(lines)
