"""The words for what can become of a candidate and what can be done with it. Code, REST, panels and sidebar use these."""

from __future__ import annotations

from typing import Literal, get_args

from harnesslab.store import State

Act = Literal["promote", "reject", "shelve", "override", "undo", "retry", "rollback"]
"""What a person or an optimizer can do. ``rollback`` takes a commit of the baseline's history, the others a candidate."""

ACTS: tuple[Act, ...] = get_args(Act)

OPEN: tuple[State, ...] = ("pending", "measured", "undecided")
"""States in which a candidate waits for a decision. ``pending``: not measured; ``measured``: with a verdict that nobody
acted on; ``undecided``: shelved, since the measurement could not tell."""

DECIDED: tuple[State, ...] = ("undecided", "promoted", "rejected")
"""States that somebody's decision led to; :meth:`~harnesslab.ledger.Ledger.undo` takes it back."""

Choice = Literal["promote", "reject", "undecided"]
"""What a verdict says."""

OUTCOME: dict[Choice, State] = {"promote": "promoted", "reject": "rejected", "undecided": "undecided"}
"""The state that acting on a verdict leads to."""

CHOICE: dict[str, Choice] = {state: choice for choice, state in OUTCOME.items()}
"""What led to a state, where it was decided on."""
