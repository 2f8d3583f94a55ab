"""The kitchen behind the protocol of :mod:`harnesslab.rollout.env`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harnesslab.errors import EnvironmentFault, OrderError
from harnesslab.rollout.env import JSON, Action, Policy, Split, Task
from harnesslab_envs.kitchen import text
from harnesslab_envs.kitchen.scene import FAMILIES, kinds, make_scene
from harnesslab_envs.kitchen.tasks import panel, scene_of
from harnesslab_envs.kitchen.world import PATIENCE, World

VERBS = ("go", "open", "take", "put", "clean", "heat")


class KitchenEnv:
    """One instance. Public info lists what is admissible; private info is ``solved`` and ``progress``."""

    def __init__(self) -> None:
        self._world: World | None = None
        self._left = 0

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start the scene of ``options["family"]``, ``options["kind"]`` and ``seed`` (0 where it is None).

        Without options: the first family and its first kind. Raises EnvironmentFault for a family or a kind that
        is not known.
        """
        given = options or {}
        family = str(given.get("family", FAMILIES[0]))
        kind = str(given.get("kind", kinds(family)[0]))
        if family not in FAMILIES or kind not in kinds(family):
            raise EnvironmentFault(f"The kitchen has no tasks of the family {family!r} about a {kind!r}.")
        scene = make_scene(family, kind, seed or 0)
        self._world = World(scene)
        self._left = PATIENCE * len(scene.plan)
        return text.opening(scene), self._info(self._world)

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Do one action; see :class:`harnesslab.rollout.env.TextEnv`. An impossible one costs the guest's patience too.

        Raises OrderError before the first reset and after the end of an episode.
        """
        world = self._world
        if world is None or world.over or not self._left:
            raise OrderError("No episode is running: call reset() first.")
        self._left -= 1
        command = read(action)
        invalid = command not in world.admissible()
        if invalid:
            seen = text.NOT_NOW if command.split(" ")[0] in VERBS else text.NOT_UNDERSTOOD
        else:
            seen = world.act(command)
        truncated = not self._left and not world.over
        if truncated:
            seen = f"{seen} {text.TOO_LATE}"
        return seen, float(world.solved), world.over, truncated, self._info(world, invalid)

    def close(self) -> None:
        """Forget the episode. Safe to call twice."""
        self._world = None

    @staticmethod
    def _info(world: World, invalid: bool = False) -> dict[str, Any]:
        return {
            "public": {
                "instruction": text.instruction(world.scene),
                "admissible": world.admissible() if not world.over else [],
                "invalid": invalid,
            },
            "private": {"solved": world.solved, "progress": world.progress},
        }


class Kitchen:
    """The environment: tasks, instances, oracle and baseline harness."""

    name = "kitchen"
    version = "2"
    max_steps = 12

    def tasks(self, split: Split) -> Sequence[Task]:
        """60 tasks, 12 of each family."""
        return panel(split)

    def make(self) -> KitchenEnv:
        """A new instance."""
        return KitchenEnv()

    def oracle(self, task: Task) -> Policy:
        """Follows the shortest plan, from its start; good for one episode."""
        plan = iter(scene_of(task).plan)
        return lambda _observation, _info: next(plan)

    def starter(self) -> Path:
        """The baseline harness."""
        return Path(__file__).parent / "starter"


def read(action: Action) -> str:
    """The command in an action: lower case, single spaces, no articles, no full stop. Empty for what is no text."""
    if not isinstance(action, str) or len(action) > 200:
        return ""
    words = action.lower().replace(".", " ").split()
    return " ".join(word for word in words if word not in ("the", "a", "an"))
