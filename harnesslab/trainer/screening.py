"""A round of screening: search tasks played with random sets of proposals, and what is learned from all rounds so far."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harnesslab.analysis.effects import Effect, Effects, Trial, estimate
from harnesslab.errors import ConfigError, HarnessFileError, OrderError
from harnesslab.harness.load import Harness, load_harness
from harnesslab.harness.pipeline import Pipeline
from harnesslab.lab import Lab
from harnesslab.rollout.identity import identity_of, is_greedy
from harnesslab.rollout.progress import Bar
from harnesslab.rollout.records import Run
from harnesslab.trainer.design import Screening, bundle_of, exclusive, fold_over, merged
from harnesslab.trainer.measure import SCREEN, Measurer
from harnesslab.trainer.panel import Panel, in_turn
from harnesslab.trainer.proposal import Proposal

RUNS = 2_000
"""Runs of the search split that are looked through: more than any training makes."""
SURE = 6
"""Episodes in which a proposal was on and never fired, after which it is no longer offered for a bundle."""


class Screen(Effects):
    """The effects after a round, with the proposals that they are of. ``bundle()`` makes the one to judge."""

    def __init__(self, effects: Effects, proposals: Mapping[str, Proposal], open_: Iterable[str], design: Screening):
        """``proposals`` by label; ``open_``: labels of those that are not part of the baseline."""
        super().__init__(
            effects, outcome=effects.outcome, episodes=effects.episodes, tasks=effects.tasks, level=effects.level
        )
        self.proposals, self.open, self.design = dict(proposals), frozenset(open_), design

    def covers(self, proposal: Proposal) -> bool:
        """Whether the proposal, or a part of the bundle that it is, was screened."""
        return any(part in self.proposals.values() for part in proposal.parts or (proposal,))

    def predicted(self, proposal: Proposal) -> float:
        """The sum of the estimated effects, in points, of what is in a bundle."""
        parts = proposal.parts or (proposal,)
        return sum(effect.points for effect in self if self.proposals[effect.name] in parts)

    def bundle(self, *also: str, without: Sequence[str] = (), helps: float | None = None) -> Proposal | None:
        """The proposals that probably help, as one to judge: ``trainer.evaluate(effects.bundle())``; None for none.

        ``also`` and ``without`` name proposals that a person ticks or clears. ``helps``: in place of the design's bound. What was promoted
        before and has fallen below the design's ``doubt`` is taken out again. Raises ConfigError for an unknown name,
        or two that exclude each other.
        """
        for name in (*also, *without):
            if name not in self.open:
                raise ConfigError(
                    f"{name!r:.80} is not among the open proposals: {', '.join(sorted(self.open)) or 'none'}"
                )
        bound = self.design.helps if helps is None else helps
        chosen = [self.proposals[name] for name in also]
        for effect in self:
            proposal = self.proposals[effect.name]
            wanted = effect.name in self.open and effect.helps > bound and not _idle(effect)
            if not wanted or effect.name in (*also, *without):
                continue
            if not any(exclusive(proposal, other) for other in chosen):
                chosen.append(proposal)
        for effect in self:
            if effect.name not in self.open and effect.helps < self.design.doubt:
                removal = _removal(self.proposals[effect.name])
                if not any(exclusive(removal, other) for other in chosen):
                    chosen.append(removal)
        return bundle_of(chosen) if chosen else None


def _idle(effect: Effect) -> bool:
    return effect.on >= SURE and not effect.fired


def _removal(proposal: Proposal) -> Proposal:
    """The proposal to take another one out again."""
    return Proposal(
        changes=dict.fromkeys(proposal.changes),
        layer=proposal.layer,
        kind=proposal.kind,
        name=proposal.name,
        about=f"Remove it; after more episodes it probably does not help. It said: {proposal.about}",
        estimator=proposal.estimator,
    )


def most_promising(proposals: Sequence[Proposal], seen: Screen, design: Screening) -> list[Proposal]:
    """The proposals to screen next, at most as many as the design takes: new ones first, then by probability to help.

    What has fallen below the design's ``doubt``, or was on and never fired, is left out.
    """
    labels = {proposal.content: label for label, proposal in seen.proposals.items()}
    ranked: list[tuple[float, int, Proposal]] = []
    for place, proposal in enumerate(proposals):
        effect = next((effect for effect in seen if effect.name == labels.get(proposal.content)), None)
        if effect is None or not effect.on:
            ranked.append((-1.0, place, proposal))
        elif effect.helps >= design.doubt and not _idle(effect):
            ranked.append((-effect.helps, place, proposal))
    return [proposal for _, _, proposal in sorted(ranked, key=lambda item: item[:2])[: design.proposals]]


@dataclass(slots=True)
class Screener:
    """Plays rounds for one lab and reads back what all of them say."""

    lab: Lab
    measurer: Measurer
    panel: Panel
    design: Screening

    def rounds(self) -> list[Mapping[str, Any]]:
        """The rounds on record under the same conditions, oldest first, as rows of the store."""
        rows = self.lab.runs.runs(split="search", purpose=SCREEN, limit=RUNS)
        return [row for row in reversed(rows) if self._comparable(row["identity"])]

    async def play(self, proposals: Sequence[Proposal], bar: Bar) -> Run:
        """Play the next round, or the rest of one that was interrupted; each episode is kept when it ends.

        ``proposals``: what is switched on and off, for a new round. Raises OrderError for none.
        """
        baseline = self.lab.repo.baseline()
        past = self.rounds()
        left = past[-1] if past and past[-1]["status"] != "done" and past[-1]["commit"] == baseline else None
        number = int(left["meta"]["round"]) if left else len(past)
        chosen = [Proposal.from_json(data) for data in left["meta"]["proposals"]] if left else list(proposals)
        if not chosen:
            raise OrderError("there is no open proposal to screen: trainer.propose() offers none")
        tasks = tuple(in_turn(self.panel.tasks, self.design.tasks, number))
        sets = fold_over([task.id for task in tasks], chosen, seed=self.design.seed, number=number)
        files = self.lab.repo.files(baseline)
        playable = {task: self._playable(files, on) for task, on in sets.items()}
        mixed = {
            "round": number,
            "proposals": [proposal.to_json() for proposal in sorted(chosen, key=lambda p: p.content)],
            "on": {task: [proposal.content for proposal in on] for task, (on, _) in playable.items()},
        }
        first = 0 if is_greedy(self.measurer.backbone) else number + 1
        panel = Panel("search", tasks, 1, first)
        bar.total = len(panel)
        pipelines = {task: Pipeline(harness) for task, (_, harness) in playable.items()}
        return await self.measurer.measure_mixed(baseline, panel, bar, pipelines, mixed)

    def effects(self, open_: Sequence[Proposal]) -> Screen:
        """The effects of everything that was screened up to now, and of the ``open_`` proposals, from all episodes so far."""
        rounds = self.rounds()
        known = {proposal.content: proposal for proposal in open_}
        for row in rounds:
            for data in row["meta"].get("proposals", ()):
                proposal = Proposal.from_json(data)
                known.setdefault(proposal.content, proposal)
        labels = _labels(known.values())
        inside = _InForce(self.lab, list(known.values()))
        trials: list[Trial] = []
        for row in rounds:
            on = {task: frozenset(names) for task, names in row["meta"].get("on", {}).items()}
            trials += self._trials(row, inside, labels, known, on)
        for row in self.lab.runs.runs(split="search", purpose="measure", limit=RUNS):
            if self._comparable(row["identity"]):
                trials += self._trials(row, inside, labels, known, {})
        if is_greedy(self.measurer.backbone):
            # The same task under the same harness is the same episode, however often it was played.
            trials = list({(trial.task, trial.on): trial for trial in trials}.values())
        present = inside.at(self.lab.repo.baseline(), ())
        effects = estimate(trials, labels.values())
        offered = {labels[proposal.content] for proposal in open_ if proposal.content not in present}
        shown = [e for e in effects if e.name in offered or e.name in {labels[content] for content in present}]
        kept = Effects(
            shown, outcome=effects.outcome, episodes=effects.episodes, tasks=effects.tasks, level=effects.level
        )
        return Screen(kept, {labels[content]: proposal for content, proposal in known.items()}, offered, self.design)

    def _trials(
        self,
        row: Mapping[str, Any],
        inside: _InForce,
        labels: Mapping[str, str],
        known: Mapping[str, Proposal],
        on: Mapping[str, frozenset[str]],
    ) -> list[Trial]:
        trials = []
        for episode in self.lab.load_run(row).scorable:
            active = inside.at(row["commit"], on.get(episode.task_id, ()))
            fired = {content for content in active if any(episode.fired.get(name) for name in _stems(known[content]))}
            trials.append(
                Trial(
                    episode.task_id,
                    frozenset(labels[content] for content in active),
                    episode.solved,
                    min(1.0, max(0.0, episode.progress or 0.0)),
                    frozenset(labels[content] for content in fired),
                )
            )
        return trials

    def _playable(self, files: Mapping[str, bytes], on: Sequence[Proposal]) -> tuple[list[Proposal], Harness]:
        """The harness with the proposals switched on; without those that do not load together with the ones before them."""
        try:
            return list(on), self._harness(files, on)
        except HarnessFileError:
            kept: list[Proposal] = []
            for proposal in on:
                try:
                    self._harness(files, [*kept, proposal])
                except HarnessFileError:
                    continue
                kept.append(proposal)
            return kept, self._harness(files, kept)

    def _harness(self, files: Mapping[str, bytes], on: Sequence[Proposal]) -> Harness:
        together = Proposal(merged(on), "base", "set", "set", "")
        return load_harness({**together.apply(files), **self.measurer.base}, unconfined=self.lab.unconfined)

    def _comparable(self, identity: Mapping[str, Any]) -> bool:
        """Whether a run was played in the same environment with the same backbone, budget and seed."""
        own = self.measurer.identity(self.panel)
        keys = ("environment", "version", "budget", "seed", "base")
        backbone = identity_of(self.measurer.backbone)
        return identity.get("backbone") == backbone and all(identity.get(key) == own.get(key) for key in keys)


def screen(screener: Screener, proposals: Sequence[Proposal], *, show: bool) -> tuple[Coroutine[Any, Any, Screen], Bar]:
    """The work of one round with the most promising of the proposals, not started, and its bar."""
    for given in proposals:
        if not isinstance(given, Proposal):
            raise ConfigError(f"screen takes a list of Proposal, not of {type(given).__name__}")
    chosen = most_promising(proposals, screener.effects(proposals), screener.design)
    bar = Bar("screen", screener.design.tasks, show=show)

    async def work() -> Screen:
        await screener.play(chosen, bar)
        return screener.effects(proposals)

    return work(), bar


class _InForce:
    """Which proposals are part of a harness, told by its files: at a commit, with others switched on on top of it."""

    def __init__(self, lab: Lab, proposals: Sequence[Proposal]):
        self._lab, self._proposals = lab, {proposal.content: proposal for proposal in proposals}
        self._files: dict[str, Mapping[str, bytes]] = {}
        self._found: dict[tuple[str, frozenset[str]], frozenset[str]] = {}

    def at(self, commit: str, on: Iterable[str]) -> frozenset[str]:
        key = (commit, frozenset(on))
        if key not in self._found:
            if commit not in self._files:
                self._files[commit] = self._lab.repo.files(commit)
            files: dict[str, bytes | None] = dict(self._files[commit])
            for content in key[1]:
                for path, text in self._proposals[content].changes.items():
                    files[path] = None if text is None else text.encode()
            self._found[key] = frozenset(
                content
                for content, proposal in self._proposals.items()
                if all(
                    files.get(path) == (None if text is None else text.encode())
                    for path, text in proposal.changes.items()
                )
                and any(text is not None for text in proposal.changes.values())
            )
        return self._found[key]


def _stems(proposal: Proposal) -> list[str]:
    return [path.rpartition(".")[0] for path in proposal.changes]


def _labels(proposals: Iterable[Proposal]) -> dict[str, str]:
    """A name for each content: the proposal's own, with a few digits where several have the same."""
    given = sorted(proposals, key=lambda proposal: proposal.content)
    names = [proposal.name for proposal in given]
    return {
        proposal.content: proposal.name
        if names.count(proposal.name) == 1
        else f"{proposal.name} ({proposal.content[:6]})"
        for proposal in given
    }
