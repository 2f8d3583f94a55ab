"""What each intervention of the baseline has done up to now: fired, helped, hurt, and its effect with an interval.

All stored episodes of the search and gate splits count that were played in one environment with one backbone under one budget: with the baseline,
with earlier and rejected harnesses, with screening's random sets, and with single interventions taken out. An intervention is on
in an episode when its file was the one that the baseline has. Effects come from :func:`harnesslab.analysis.effects.estimate`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harnesslab.analysis.effects import Effects, Trial, estimate
from harnesslab.analysis.table import Table
from harnesslab.harness.base import LAYERS
from harnesslab.plaintext import counted
from harnesslab.rollout.tasks import won_tasks
from harnesslab.store import LabRepo, RunStore

RUNS = 2_000
"""Latest runs that are read: more than any training makes."""
SPLITS = ("search", "gate")
COLUMNS = ["intervention", "on", "off", "fired", "helped", "hurt", "points", "low", "high", "P(helps)"]

Files = Mapping[str, bytes]


class Standing(Table):
    """One row an intervention of the baseline. ``effects`` has the estimates behind it; ``plot()`` draws them."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], effects: Effects, title: str):
        super().__init__(rows, title=title, columns=COLUMNS)
        self.effects = effects

    def plot(self) -> Any:
        """A forest plot: each effect in points with its interval (a matplotlib Figure)."""
        return self.effects.plot()


@dataclass(frozen=True, slots=True)
class _Played:
    """One run: its rows of episodes, the harness files that each was played with, and what makes it comparable."""

    identity: Mapping[str, Any]
    panel: str
    episodes: Sequence[Mapping[str, Any]]
    files: Mapping[str, Files]
    """By task; under the empty name for the tasks that are not named."""

    def of(self, task: str) -> Files:
        return self.files.get(task, self.files[""])


def interventions(files: Files) -> dict[str, dict[str, bytes]]:
    """The interventions among the files of a harness, by name (``layer/stem``), each with its own files."""
    found: dict[str, dict[str, bytes]] = {}
    for path, data in files.items():
        layer, _, rest = path.partition("/")
        if layer in LAYERS and rest and "/" not in rest and path.endswith((".yaml", ".yml", ".py")):
            found.setdefault(path.rpartition(".")[0], {})[path] = data
    return found


def standing(repo: LabRepo, runs: RunStore | None, backbone: str | None = None) -> Standing:
    """The table. ``backbone``: a model's name, by default that of the latest run with a model; ``runs``: None for no record yet."""
    present = interventions(repo.files(repo.baseline()))
    played = _Reader(repo, runs, backbone).played if runs is not None else []
    trials = [trial for run in played for trial in _trials(run, present)]
    names = {name for trial in trials for name in trial.on} | set(present)
    effects = _only(estimate(trials, names), present)
    helped, hurt = _flips(played, present)
    rows = [
        {
            "intervention": effect.name,
            "on": effect.on,
            "off": effect.off,
            "fired": effect.fired,
            "helped": len(helped[effect.name]),
            "hurt": len(hurt[effect.name]),
            "points": round(effect.points, 1),
            "low": round(effect.low, 1),
            "high": round(effect.high, 1),
            "P(helps)": round(effect.helps, 2),
        }
        for effect in effects
    ]
    said = f" with {played[0].identity['backbone']['model']}" if played else ""
    table = Standing(rows, effects, f"interventions of the baseline: {counted(len(trials), 'episode')}{said}")
    if rows:
        table.notes.append(
            "on, off, fired: episodes. helped, hurt: tasks that only the harness with it solved, or only the one without, where it fired. "
            f"points: change of the solve rate, with its {effects.level:.0%} interval."
        )
    idle = [str(row["intervention"]) for row in rows if row["on"] and not row["fired"]]
    if idle:
        table.notes.append(f"Never fired: {', '.join(idle)}. hl.ablate(lab) proposes to retire what does not help.")
    alone = [str(row["intervention"]) for row in rows if row["on"] and not row["off"]]
    if alone:
        table.notes.append(
            f"Never off, so the estimate is the prior: {', '.join(alone)}. hl.ablate(lab) measures without it."
        )
    return table


class _Reader:
    """Reads the runs that can be compared with the latest one."""

    def __init__(self, repo: LabRepo, runs: RunStore, backbone: str | None):
        self._repo, self._runs, self._backbone = repo, runs, backbone
        self._files: dict[str, Files] = {}

    @cached_property
    def played(self) -> list[_Played]:
        """All of them, the latest first."""
        rows = [row for row in self._runs.runs(limit=RUNS) if row["split"] in SPLITS and self._wanted(row)]
        own = _condition(rows[0]["identity"]) if rows else None
        return [self._read(row) for row in rows if _condition(row["identity"]) == own]

    def _wanted(self, row: Mapping[str, Any]) -> bool:
        identity = row["identity"].get("backbone")
        if not isinstance(identity, Mapping) or "model" not in identity:
            return False
        if self._backbone is not None:
            return bool(identity["model"] == self._backbone)
        return "deaf" not in identity and not str(identity.get("kind", "")).endswith("control")

    def _read(self, row: Mapping[str, Any]) -> _Played:
        files = {"": self._at(row["commit"])}
        proposals = {data["content"]: data["changes"] for data in _list(row["meta"].get("proposals"))}
        sets = dict(row["meta"].get("on") or {})
        alike = len({frozenset(on) for on in sets.values()}) == 1
        for task, on in sets.items():
            together: dict[str, bytes] = dict(files[""])
            for content in on:
                for path, text in proposals.get(content, {}).items():
                    together.pop(path, None)
                    if text is not None:
                        together[path] = text.encode()
            files["" if alike else task] = together
            if alike:
                break
        episodes = [episode for episode in self._runs.episodes(row["id"]) if episode["status"] == "finished"]
        panel = repr([row["identity"].get(key) for key in ("panel", "repeats", "seed", "first")])
        return _Played(row["identity"], panel, episodes, files)

    def _at(self, commit: str) -> Files:
        if commit not in self._files:
            self._files[commit] = self._repo.files(commit)
        return self._files[commit]


def _condition(identity: Mapping[str, Any]) -> tuple[Any, ...]:
    keys = ("environment", "version", "backbone", "budget", "base")
    return tuple(repr(identity.get(key)) for key in keys)


def _list(value: Any) -> list[Mapping[str, Any]]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, Mapping) and "content" in item and "changes" in item]


def _trials(run: _Played, present: Mapping[str, Mapping[str, bytes]]) -> Iterator[Trial]:
    labels: dict[int, dict[str, str]] = {}
    for episode in run.episodes:
        files = run.of(episode["task_id"])
        if id(files) not in labels:
            # Another version of an intervention is another one, so that it does not stand for this one.
            labels[id(files)] = {
                name: name if present.get(name) == own else f"{name} ({_digest(own)})"
                for name, own in interventions(files).items()
            }
        on = labels[id(files)]
        yield Trial(
            episode["task_id"],
            frozenset(on.values()),
            bool(episode["solved"]),
            min(1.0, max(0.0, float(episode["progress"] or 0.0))),
            frozenset(on[name] for name, times in (episode["fired"] or {}).items() if times and name in on),
        )


def _digest(own: Mapping[str, bytes]) -> str:
    return hashlib.sha256(repr(sorted(own.items())).encode()).hexdigest()[:6]


def _only(effects: Effects, names: Iterable[str]) -> Effects:
    kept = [effect for effect in effects if effect.name in set(names)]
    return Effects(kept, outcome=effects.outcome, episodes=effects.episodes, tasks=effects.tasks, level=effects.level)


def _flips(
    played: Sequence[_Played], present: Mapping[str, Mapping[str, bytes]]
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """For each intervention the tasks that it won and lost, over all pairs of runs that differ in nothing else."""
    helped: dict[str, set[str]] = {name: set() for name in present}
    hurt: dict[str, set[str]] = {name: set() for name in present}
    single = [run for run in played if len(run.files) == 1]
    for name, own in present.items():
        groups: dict[tuple[Any, ...], tuple[list[_Played], list[_Played]]] = {}
        for run in single:
            files = run.of("")
            with_it = all(files.get(path) == data for path, data in own.items())
            if not with_it and any(path in files for path in own):
                continue  # another version of it
            rest = frozenset((path, data) for path, data in files.items() if path not in own)
            groups.setdefault((run.panel, rest), ([], []))[0 if with_it else 1].append(run)
        for ons, offs in groups.values():
            for on, off in ((on, off) for on in ons for off in offs):
                fired = {e["task_id"] for e in on.episodes if (e["fired"] or {}).get(name)}
                won, lost = _won(on), _won(off)
                both = {e["task_id"] for e in on.episodes} & {e["task_id"] for e in off.episodes} & fired
                helped[name] |= (won - lost) & both
                hurt[name] |= (lost - won) & both
    return helped, hurt


def _won(run: _Played) -> set[str]:
    return won_tasks((episode["task_id"], bool(episode["solved"])) for episode in run.episodes)
