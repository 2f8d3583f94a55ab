"""The record of what happened: steps, episodes, runs. Plain data that goes to the store as JSON.

Records are written by the trusted loop only. They hold what an intervention must not see
(reward, progress, task id), and they never go back into a Context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harnesslab.extras import comes_with
from harnesslab.markup import LIMIT, block, table
from harnesslab.plaintext import clip, columns, counted
from harnesslab.rollout.env import Action, Split, Task
from harnesslab.rollout.inspectlog import write_inspect_log
from harnesslab.rollout.owners import Owner, owner_of
from harnesslab.rollout.report import Report, run_report
from harnesslab.rollout.tasks import solved_shares, solved_tasks

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["finished", "unscorable"]


@dataclass(slots=True)
class Step:
    """One observe, decide, act.

    ``request`` is the exact body that was sent; ``replies`` are the raw replies, one a sample, as
    ``{"text", "tool_calls", "model", "finish_reason", "prompt_tokens", "completion_tokens", "seconds", "cached"}``.
    ``raw`` is the chosen reply, ``action`` what was read from it (``None`` if nothing was), ``executed``
    whether the environment was stepped with it. ``result`` is the observation that came back, with the
    ``note`` of a regulation at its end. ``choices`` counts the actions that the harness left to the model
    (0: not constrained). ``seconds`` is the wall time of the whole step. ``forced``
    says whether the harness decided the executed action (:mod:`harnesslab.rollout.own`); None in older records.
    ``seen`` is the observation as the environment gave it, where the harness has rewritten it. A reply with the key
    ``again`` was not the last of its step: the model was asked again with that text.
    """

    index: int
    observation: str
    request: Mapping[str, Any]
    replies: Sequence[Mapping[str, Any]]
    raw: str
    action: Action | None
    executed: bool
    problem: str
    result: str
    invalid: bool
    reward: float
    fired: tuple[str, ...] = ()
    note: str = ""
    admissible: tuple[str, ...] | None = None
    choices: int = 0
    seconds: float = 0.0
    forced: bool | None = None
    seen: str = ""

    @property
    def tool(self) -> str:
        """The tool that the action calls; empty for a text action and for none."""
        return str(self.action.get("name", "")) if isinstance(self.action, dict) else ""

    def to_json(self) -> dict[str, Any]:
        """All fields as plain JSON."""
        return {name: getattr(self, name) for name in STEP_FIELDS}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Step:
        """The inverse of :meth:`to_json`; unknown keys are ignored, so that newer records can be read."""
        values = {name: data[name] for name in STEP_FIELDS if name in data}
        values["fired"] = tuple(values.get("fired", ()))
        if values.get("admissible") is not None:
            values["admissible"] = tuple(values["admissible"])
        return cls(**values)


STEP_FIELDS: tuple[str, ...] = tuple(Step.__dataclass_fields__)


@dataclass(slots=True, repr=False)
class Episode:
    """One attempt at one task.

    ``reward`` is the sum of the step rewards, ``progress`` the environment's share of subgoals (0 to 1,
    1.0 when solved), ``reason`` why it ended, in words. An ``unscorable`` episode says nothing about the
    harness. ``owner`` and ``cause`` say who failed and how, by :data:`harnesslab.rollout.owners.RULES`; the owner of
    an episode that simply ended is ``policy``, and its cause is empty.
    ``fired`` counts, for each intervention, the steps in which it fired.
    """

    task_id: str
    family: str
    instruction: str
    repeat: int = 0
    seed: int = 0
    solved: bool = False
    reward: float = 0.0
    progress: float = 0.0
    status: Status = "finished"
    owner: Owner = "policy"
    cause: str = ""
    reason: str = ""
    invalid: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    budget: int = 0
    tools: tuple[str, ...] = ()
    fired: dict[str, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    id: int | None = None
    """Number in the store; ``None`` until it is stored."""
    length: int = 0
    """Number of steps; also there when ``steps`` was not loaded."""

    @classmethod
    def unscorable(cls, task: Task, repeat: int, budget: int, reason: str, cause: str = "crash") -> Episode:
        """The record of an episode that never came about."""
        made = cls(task.id, task.family, "", repeat=repeat, seed=task.seed, budget=budget)
        made.fail(cause, reason)
        return made

    def fail(self, cause: str, reason: str) -> None:
        """Note that the episode ended by a failure, and who owns it; only the harness's own count as played."""
        self.owner, self.cause, self.reason, self.solved = owner_of(cause), cause, reason, False
        self.status = "finished" if self.owner == "harness" else "unscorable"

    @property
    def set_aside(self) -> bool:
        """Whether the task itself cannot be played; no measurement tries it again unless asked to."""
        return self.status == "unscorable" and self.owner == "task"

    @property
    def key(self) -> tuple[str, int]:
        """What pairs an episode with that of another run: task and repeat."""
        return (self.task_id, self.repeat)

    @property
    def outcome(self) -> str:
        """``solved``, ``failed`` or ``unscorable``."""
        return "solved" if self.solved else "failed" if self.status == "finished" else "unscorable"

    @property
    def ended(self) -> str:
        """How the episode ended; for a failure with its owner and cause in front."""
        return f"{self.owner}, {self.cause}: {self.reason}" if self.cause else self.reason

    def __repr__(self) -> str:
        """A transcript: what was seen, what was answered, what came of it."""
        lines = [f"task: {clip(self.instruction, 200)}"]
        for step in self.steps:
            lines += [
                f"{step.index + 1:>3}  sees    {clip(step.observation, 160)}",
                f"     answers {clip(step.raw, 120)}" + ("" if step.executed else "   [not executed]"),
            ]
        tokens = self.prompt_tokens + self.completion_tokens
        lines.append(f"{self.outcome}: {self.ended} ({self.length} steps, {tokens} tokens, {self.seconds:.1f} s)")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return str(block(repr(self), limit=2 * LIMIT))

    def summary(self) -> dict[str, Any]:
        """The row that the store keeps beside the trace."""
        return {name: getattr(self, name) for name in SUMMARY_FIELDS} | {
            "steps": self.length,
            "extra": {"instruction": self.instruction, "budget": self.budget, "tools": list(self.tools)},
            "label": "",
        }

    @classmethod
    def from_summary(cls, row: Mapping[str, Any], steps: list[Step] | None = None) -> Episode:
        """An episode from a stored row; ``steps`` stay empty unless given."""
        extra = row.get("extra") or {}
        row = {**extra, **row}
        values = {name: row[name] for name in SUMMARY_FIELDS if row.get(name) is not None}
        if values.get("owner") == "intervention":  # the harness's name in older records
            values["owner"], values["cause"] = "harness", "intervention"
        return cls(
            **values,
            instruction=str(extra.get("instruction", "")),
            budget=int(extra.get("budget", 0)),
            tools=tuple(extra.get("tools", ())),
            steps=steps or [],
            id=row.get("id"),
            length=int(row["steps"]),
        )


SUMMARY_FIELDS: tuple[str, ...] = (
    "task_id", "family", "repeat", "seed", "solved", "reward", "progress", "status", "owner", "cause", "reason",
    "invalid", "prompt_tokens", "completion_tokens", "seconds", "fired",
)  # fmt: skip


@dataclass(slots=True)
class Run:
    """Episodes of one harness commit on one panel of tasks with one backbone.

    ``identity`` is the measurement's identity; two runs compare only when theirs are equal.
    ``episodes`` are in the order of the panel, repeats of a task beside each other.
    """

    id: str
    commit: str
    split: Split
    identity: Mapping[str, Any]
    episodes: list[Episode] = field(default_factory=list)
    purpose: str = "measure"
    backbone: str = ""
    served: tuple[str, ...] = ()
    """Models that the server said it answered with; more than one is a mix that no comparison should rest on."""

    def __iter__(self) -> Iterator[Episode]:
        return iter(self.episodes)

    def __len__(self) -> int:
        return len(self.episodes)

    @property
    def scorable(self) -> list[Episode]:
        """The episodes that say something about the harness."""
        return [episode for episode in self.episodes if episode.status == "finished"]

    @property
    def tasks(self) -> int:
        """How many tasks have a scorable episode."""
        return len({episode.task_id for episode in self.scorable})

    @property
    def solved(self) -> int:
        """How many tasks were solved, by :data:`harnesslab.rollout.tasks.RULE`: repeats of a task count as one task."""
        return len(self.solved_tasks())

    @property
    def rate(self) -> float:
        """The mean over tasks of the share of a task's scorable episodes that reached the goal; 0.0 for an empty run."""
        shares = solved_shares(self.episodes).values()
        return sum(shares) / len(shares) if shares else 0.0

    def solved_tasks(self) -> set[str]:
        """The tasks that count as solved, by :data:`harnesslab.rollout.tasks.RULE`."""
        return solved_tasks(self.episodes)

    def failures(self) -> list[Episode]:
        """Scorable episodes that missed the goal."""
        return [episode for episode in self.scorable if not episode.solved]

    def to_frame(self) -> pd.DataFrame:
        """One row an episode (extra ``lab``); columns in :data:`EPISODE_COLUMNS`."""
        with comes_with("lab"):
            import pandas as pd

        return pd.DataFrame([_frame_row(episode) for episode in self.episodes], columns=list(EPISODE_COLUMNS))

    def report(self) -> Report:
        """The run as one self-contained HTML file and a DataFrame: ``run.report().save("run.html")``."""
        return run_report(self)

    def save_inspect(self, path: str | Path) -> Path:
        """Write the run as an eval log that ``inspect view`` opens (extra ``inspect``); see :mod:`harnesslab.rollout.inspectlog`."""
        return write_inspect_log(self, path)

    def unscored(self) -> str:
        """How many episodes could not be scored, and who owns that."""
        gone = [episode for episode in self.episodes if episode.status != "finished"]
        owners = Counter(f"{e.owner}, {e.cause}" if e.cause else e.owner for e in gone)
        parts = "; ".join(f"{owner}: {count}" for owner, count in owners.most_common())
        return f"{counted(len(gone), 'more episode')} could not be scored ({parts})"

    def _head(self) -> str:
        """One line: what was played, with what, and how many tasks were solved."""
        played = len(self.scorable)
        repeats = f" ({counted(played, 'episode')})" if played > self.tasks else ""
        broken = f", {self.unscored()}" if len(self) > played else ""
        backbone = f" with {self.backbone}" if self.backbone else ""
        head = f"{self.split} run {self.id}{backbone}, harness {self.commit[:10]}"
        return f"{head}: {self.solved} of {counted(self.tasks, 'task')} solved{repeats}{broken}"

    def _rest(self) -> list[str]:
        return [f"... and {len(self) - ROWS} more episodes; .to_frame() has them all"] if len(self) > ROWS else []

    def __repr__(self) -> str:
        return "\n".join([self._head(), *columns([_HEAD, *map(_cells, self.episodes[:ROWS])]), *self._rest()])

    def _repr_html_(self) -> str:
        return str(table(_HEAD, map(_cells, self.episodes[:ROWS]), caption=self._head(), below=self._rest()))


ROWS = 20
"""Episodes that a run shows of itself; ``to_frame()`` has them all."""
EPISODE_COLUMNS = (
    "id", "task_id", "family", "repeat", "solved", "progress", "reward", "steps", "invalid", "prompt_tokens",
    "completion_tokens", "seconds", "status", "owner", "cause", "reason", "fired",
)  # fmt: skip
"""Columns of a DataFrame of episodes. ``seconds`` is wall time; ``fired`` maps interventions to steps."""
_HEAD = ("task", "family", "outcome", "progress", "steps", "invalid", "tokens", "how it ended")


def _frame_row(episode: Episode) -> dict[str, Any]:
    same = {name: getattr(episode, name) for name in EPISODE_COLUMNS if name not in ("steps", "fired")}
    return same | {"steps": episode.length, "fired": dict(episode.fired)}


def _cells(episode: Episode) -> Sequence[str]:
    return (
        clip(episode.task_id, 40) + (f" #{episode.repeat}" if episode.repeat else ""),
        clip(episode.family, 24),
        episode.outcome,
        f"{episode.progress:.0%}",
        str(episode.length),
        str(episode.invalid),
        str(episode.prompt_tokens + episode.completion_tokens),
        clip(episode.ended, 60),
    )
