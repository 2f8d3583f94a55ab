"""The mechanism must fire: what a candidate changed can only have an effect where it took part.

A flip on a task where nothing that the candidate added, changed or removed has fired on either side is *incidental*. Such flips never
promote. On a backbone that answers equal requests equally they cannot come from the candidate at all: something drifted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harnesslab.trainer.criterion import Criterion, Judgement, ask
from harnesslab.trainer.pairs import Pair, flips

QUIET = 25
"""First tasks of a panel on which a candidate may stay silent; one that never fired by then is rejected without the rest."""

New = frozenset[str] | None
"""Names of the interventions that were added, changed or removed; None when the change concerns every step."""


def fired(pair: Pair, new: New) -> bool:
    """Whether anything new took part in the episode, on either side."""
    return new is None or any(pair.after.fired.get(name) or pair.before.fired.get(name) for name in new)


def silent(pairs: Sequence[Pair], new: New) -> bool:
    """Whether nothing new took part in any of the episodes, of which there must be some."""
    return bool(pairs) and not any(fired(pair, new) for pair in pairs)


def quiet(first: Sequence[Pair], new: New) -> bool:
    """Whether a candidate stayed silent on the first tasks of a panel, so that it is rejected whatever comes after.

    ``first``: pairs in the order of the panel, up to the first task that is still open.
    """
    tasks = list(dict.fromkeys(pair.task for pair in first))[:QUIET]
    return len(tasks) == QUIET and silent([pair for pair in first if pair.task in set(tasks)], new)


def drifted(pairs: Sequence[Pair], new: New) -> list[str]:
    """Tasks whose outcome changed although nothing new fired on them."""
    return [flip.task for flip in flips(pairs, new) if flip.incidental]


def explained(
    criterion: Criterion, judgement: Judgement, pairs: Sequence[Pair], new: New, *, enough: bool = True
) -> Judgement:
    """The judgement, if the candidate can be the cause of what it says; else one that can.

    A candidate that never fired in ``enough`` episodes, the whole panel as a rule, is rejected as such. One that would be promoted is judged again without the incidental
    gains; the losses stay, so that this never helps it.
    """
    scorable = [pair for pair in pairs if pair.scorable]
    if enough and silent(scorable, new):
        why = f"none of its interventions fired in {len(scorable)} episodes, so it changed nothing"
        return Judgement(1.0, why, statistics=judgement.statistics)
    gains = [pair for pair in scorable if not fired(pair, new) and pair.after.solved >= pair.before.solved]
    if judgement.undecided or judgement.value >= 0 or not gains:
        return judgement
    unchanged = {pair.after.key for pair in gains}
    again = ask(criterion, [Pair(p.before, p.before) if p.after.key in unchanged else p for p in scorable])
    if again.value < 0 and not again.undecided:
        return again
    tasks = len({pair.task for pair in gains if pair.after.solved > pair.before.solved})
    said = f"the gain rests on {tasks} {'task' if tasks == 1 else 'tasks'} where none of its interventions fired"
    return replace(again, why=f"{said}; without: {again.why}", value=max(again.value, 0.0))
