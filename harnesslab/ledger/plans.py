"""What git would do for an act, in words, before anybody confirms it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harnesslab.errors import StoreError
from harnesslab.ledger.words import OUTCOME, Act
from harnesslab.store import FOLDERS, NOTES, Candidate, Commit


@dataclass(frozen=True)
class Plan:
    """What an act would do (or, where it is refused, why), and the commits of baseline and ref that it rests on."""

    act: Act
    ref: str
    commit: str
    baseline: str
    steps: tuple[str, ...]
    needs_why: bool = False
    undo: str | None = None
    refused: StoreError | None = field(default=None, compare=False)
    candidate: Candidate | None = field(default=None, compare=False)

    @property
    def allowed(self) -> bool:
        """Whether it can be done now."""
        return self.refused is None


def plan_candidate(
    act: Act, candidate: Candidate, baseline: str, edited: Sequence[str], refused: StoreError | None
) -> Plan:
    """The plan of an act on a candidate. ``edited``: files of the checkout that a person has changed."""
    if refused is not None:
        return Plan(
            act, candidate.ref, candidate.commit, baseline, (str(refused),), refused=refused, candidate=candidate
        )
    steps, undo = _words(act, candidate, baseline, edited)
    return Plan(
        act, candidate.ref, candidate.commit, baseline, tuple(steps), act not in ("undo", "retry"), undo,
        candidate=candidate,
    )  # fmt: skip


def plan_rollback(ref: str, commit: Commit, baseline: str, edited: Sequence[str], refused: StoreError | None) -> Plan:
    """The plan of going back to an earlier commit of the baseline."""
    if refused is not None:
        return Plan("rollback", ref, commit.id, baseline, (str(refused),), refused=refused)
    steps = (
        f"Make a new commit on refs/heads/main with the files of {commit.id[:10]} (“{commit.subject[:100]}”).",
        "Keep every commit and ref; nothing is lost.",
        *_left_alone(edited),
    )
    undo = "It can be undone by another new commit with today's files."
    return Plan("rollback", ref, commit.id, baseline, steps, needs_why=True, undo=undo)


def plan_undo_rollback(ref: str, commit: Commit) -> Plan:
    """The plan of undoing the rollback that the baseline is."""
    steps = (
        f"Make a new commit on refs/heads/main with the files of {commit.parents[0][:10]}, which the rollback replaced.",
        "Keep every commit and ref; nothing is lost.",
    )
    return Plan("undo", ref, commit.id, commit.id, steps, undo="It can be undone in the same way.")


def _words(act: Act, candidate: Candidate, baseline: str, edited: Sequence[str]) -> tuple[list[str], str]:
    ref, commit = candidate.ref, candidate.commit[:10]
    record = f"Record the verdict, with your name and reason, in {NOTES}."
    forward = [
        f"Fast-forward refs/heads/main from {baseline[:10]} to {commit} (“{candidate.subject[:100]}”).",
        f"Move {ref} to {FOLDERS['promoted']}{candidate.id}.",
    ]
    later = "It can be undone until something else is promoted; after that, roll the baseline back."
    again = "It can be undone; the candidate then waits for a decision again."
    if act == "promote":
        return [*forward, record, *_left_alone(edited)], later
    if act == "override":
        beside = f"Record an override, with your name and reason, in {NOTES}; the verdict itself is kept beside it."
        return [*forward, beside, *_left_alone(edited)], later
    if act == "reject":
        moved = f"Move {ref} to {FOLDERS[OUTCOME['reject']]}{candidate.id}."
        return [moved, record, "Leave the baseline as it is."], again
    if act == "shelve":
        return [f"Leave {ref} where it is, marked as undecided.", record], again
    if act == "retry":
        return [
            f"Merge the change of {commit} into the baseline {baseline[:10]} (three-way, without a checkout).",
            f"Make a new candidate of it under {FOLDERS['pending']}; on a conflict, show it and change nothing.",
            f"Leave {ref} as it is.",
        ], "The new candidate can be rejected."
    back = "Take the last decision on it back; the decision stays on record under 'undone'."
    if candidate.state != "promoted":
        return [back], "It can be decided again."
    moved = f"Move refs/heads/main back from {baseline[:10]} to {candidate.parent[:10]}."
    return [moved, back, *_left_alone(edited)], "It can be decided again."


def _left_alone(edited: Sequence[str]) -> list[str]:
    if not edited:
        return []
    names = ", ".join(path[:100] for path in edited[:5]) + (", …" if len(edited) > 5 else "")
    return [f"Leave the files that you have edited as they are: {names}."]
