"""The environment: one episode is one visit to the shop, which ends with a purchase."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from harnesslab.data import data_dir
from harnesslab.errors import ConfigError, EnvironmentFault, OrderError
from harnesslab.rollout.env import JSON, SPLITS, Action, Policy, Split, Task
from harnesslab_envs.picking import picked
from harnesslab_envs.webshop import pages, sample
from harnesslab_envs.webshop.goals import Goal, Kind, make_goals, share
from harnesslab_envs.webshop.oracle import plan
from harnesslab_envs.webshop.records import find_files, read_products
from harnesslab_envs.webshop.scoring import Score, score
from harnesslab_envs.webshop.visit import Shop, Visit

MAX_STEPS = 20
"""As AgentBench allows."""
SAMPLE = "sample"


@dataclass(frozen=True, slots=True)
class Content:
    """What was read: the shop, the goals by id and by split, and what names the data in the version."""

    shop: Shop
    goals: Mapping[str, Goal]
    shares: Mapping[Split, Sequence[Goal]]
    data: str


class ShopEnv:
    """One instance; ``options["goal"]`` of :meth:`reset` names the goal.

    Private info: ``solved``; ``progress``, the reward of the purchase; after it, the parts of the reward by their published
    names: ``r_type``, ``r_att``, ``r_option`` (None where the goal names no option), ``r_price``.
    """

    def __init__(self, shop: Shop, goals: Mapping[str, Goal]):
        self._shop, self._goals = shop, goals
        self._goal: Goal | None = None
        self._visit: Visit | None = None
        self._score: Score | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """The search page; ``seed`` changes nothing, as nothing here is random."""
        goal = picked(options, "goal", self._goals)
        self._goal, self._visit, self._score = goal, Visit(self._shop), None
        return pages.render(self._visit.parts), self._info()

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Search or click; see :class:`harnesslab.rollout.env.TextEnv`. The purchase ends the episode."""
        goal, visit = self._goal, self._visit
        if goal is None or visit is None or visit.bought is not None:
            raise OrderError("No episode is running: call reset() first.")
        fault = visit.act(action if isinstance(action, str) else "")
        page = pages.render(visit.parts)
        if fault:
            return f"{fault}\n{page}", 0.0, False, False, self._info(invalid=True)
        if visit.bought is None:
            return page, 0.0, False, False, self._info()
        self._score = score(goal, visit.bought, visit.chosen)
        return page, self._score.total, True, False, self._info()

    def close(self) -> None:
        """Forget the episode. Safe to call twice."""
        self._visit = None

    def _info(self, invalid: bool = False) -> dict[str, Any]:
        assert self._goal is not None and self._visit is not None
        public: dict[str, Any] = {"instruction": self._goal.text, "invalid": invalid}
        things = pages.clickable(self._visit.parts)
        # A search may be of any words, so the search page has no list.
        if things:
            public["admissible"] = [f"click[{thing}]" for thing in things]
        won = self._score
        private: dict[str, Any] = {"solved": won is not None and won.total == 1, "progress": won.total if won else 0.0}
        if won is not None:
            parts = {"r_type": won.type, "r_att": won.attributes, "r_option": won.options, "r_price": float(won.price)}
            private |= parts
        return {"public": public, "private": private}


class ShopTasks:
    """The environment over one catalogue, which is read when it is first needed."""

    name = "webshop"

    def __init__(self, folder: Path, kind: Kind, *, attributes: bool, max_steps: int):
        self.max_steps = max_steps
        self._folder, self._kind, self._attributes = folder, kind, attributes

    @property
    def version(self) -> str:
        """Holds a hash of the files, and that of what ranks the results. Raises EnvironmentUnavailable, ConfigError."""
        return f"1+{self._content.data}.bm25s{importlib.metadata.version('bm25s')}"

    def tasks(self, split: Split) -> Sequence[Task]:
        """The goals of a split. Raises EnvironmentUnavailable where files are missing, ConfigError where one is wrong."""
        if split not in SPLITS:
            raise EnvironmentFault(f"webshop has no split '{split}'; it has {', '.join(SPLITS)}.")
        goals = self._content.shares[split]
        return [Task(goal.id, split, goal.product.category, options={"goal": goal.id}) for goal in goals]

    def make(self) -> ShopEnv:
        """A new instance. All share the catalogue."""
        return ShopEnv(self._content.shop, self._content.goals)

    def oracle(self, task: Task) -> Policy:
        """Buys the product that the goal was written for, with its options."""
        actions = iter(plan(self._content.shop, self._content.goals[task.id]))
        return lambda _observation, _info: next(actions, "")

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return Path(__file__).parent / "starter"

    @cached_property
    def _content(self) -> Content:
        files = find_files(self._folder)
        products = list(read_products(files).values())
        goals = make_goals(products, self._kind)
        shares = share(goals)
        if not all(shares.values()):
            raise ConfigError(
                f"The catalogue in {self._folder} has {len(goals)} {self._kind} goals, too few for three splits. "
                "There may be more of the other kind: goals='synthetic' or goals='human'."
            )
        marks = ["sample"] if self._folder == sample.FOLDER else []
        marks += [files.digest()[:12], *([self._kind] if self._kind != "human" else [])]
        marks += ["attributes"] if self._attributes else []
        shop = Shop(products, attributes=self._attributes)
        return Content(shop, {goal.id: goal for goal in goals}, shares, ".".join(marks))


def environment(
    data: str = "", *, goals: str = "human", attributes: bool = False, max_steps: int = MAX_STEPS
) -> ShopTasks:
    """``data``: a folder with the published files, or "sample" for the catalogue of our own; by default ``webshop`` in the
    data folder (HARNESSLAB_DATA) where that is there, else the sample.

    ``goals``: "human", what people wrote, or "synthetic", what templates make. ``attributes``: offer the page that tells a
    product's attributes, which the published shop hides. ``max_steps``: the action budget of an episode.
    """
    if goals not in get_args(Kind):
        raise ConfigError(f"goals must be one of {', '.join(get_args(Kind))}, not {goals!r}.")
    if max_steps < 1:
        raise ConfigError(f"max_steps must be 1 or more, not {max_steps}.")
    official = data_dir() / "webshop"
    if data and data != SAMPLE:
        folder = Path(data).expanduser()
    else:
        folder = official if not data and official.is_dir() else sample.FOLDER
    kind: Kind = "human" if goals == "human" else "synthetic"
    return ShopTasks(folder, kind, attributes=attributes, max_steps=max_steps)
