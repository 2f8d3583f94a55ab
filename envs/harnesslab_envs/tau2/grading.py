"""Judges an episode by what tau2-bench's evaluators look at, but for assertions that need a model as a judge.

The database after the ground truth's actions, assertions on the world, actions that must have been made, and facts that
must have been told. Own code, same rules; hashes, assertions and the comparison of actions are the package's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from tau2.data_model.message import ToolCall
from tau2.data_model.tasks import RewardType
from tau2.data_model.tasks import Task as Tau2Task
from tau2.environment.environment import Environment as World

from harnesslab_envs.tau2.domains import Domain


class Judge:
    """Judges the tasks of one domain; keeps the hash that each task's ground truth leads to."""

    def __init__(self, domain: Domain):
        self._domain = domain
        self._hashes: dict[str, tuple[str | None, str | None]] = {}

    def failed(self, task: Tau2Task, world: World, calls: Sequence[ToolCall], said: str) -> list[str]:
        """What the episode failed, by tau2-bench's names; empty where it is solved."""
        criteria = task.evaluation_criteria
        assert criteria is not None
        basis = set(criteria.reward_basis)
        held = {
            RewardType.DB: RewardType.DB not in basis or _hashes(world) == self._gold(task),
            RewardType.ENV_ASSERTION: RewardType.ENV_ASSERTION not in basis or _assertions_hold(task, world),
            RewardType.ACTION: RewardType.ACTION not in basis or matched(task, calls) == len(criteria.actions or []),
            # Also where the basis has a model as a judge: these facts are what of its judgement can be had without one.
            RewardType.COMMUNICATE: _told(said, criteria.communicate_info or []),
        }
        return [kind.value for kind, good in held.items() if not good]

    def _gold(self, task: Tau2Task) -> tuple[str | None, str | None]:
        if task.id not in self._hashes:
            world = self._domain.world(task)
            assert task.evaluation_criteria is not None
            for action in task.evaluation_criteria.actions or []:
                # As in tau2-bench: an action of the ground truth that fails changes nothing.
                with suppress(Exception):
                    world.make_tool_call(tool_name=action.name, requestor=action.requestor, **action.arguments)
            self._hashes[task.id] = _hashes(world)
        return self._hashes[task.id]


def matched(task: Tau2Task, calls: Sequence[ToolCall]) -> int:
    """How many of the ground truth's actions were made."""
    criteria = task.evaluation_criteria
    actions = (criteria.actions or []) if criteria is not None else []
    return sum(any(action.compare_with_tool_call(call) for call in calls) for action in actions)


def _hashes(world: World) -> tuple[str | None, str | None]:
    return world.get_db_hash(), world.get_user_db_hash()


def _assertions_hold(task: Tau2Task, world: World) -> bool:
    assert task.evaluation_criteria is not None
    assertions = task.evaluation_criteria.env_assertions or []
    return all(world.run_env_assertion(assertion, raise_assertion_error=False) for assertion in assertions)


def _told(said: str, facts: Sequence[str]) -> bool:
    text = said.lower().replace(",", "")
    return all(fact.lower() in text for fact in facts)
