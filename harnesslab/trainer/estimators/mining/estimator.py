"""Proposes from the trajectories alone: deterministic, without an LLM, without knowledge of any environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, get_args

from harnesslab.errors import ConfigError, EstimatorFault, HarnessFileError, HarnesslabError, LeakFound
from harnesslab.harness.base import LAYERS
from harnesslab.harness.files import intervention_file
from harnesslab.harness.load import Harness
from harnesslab.trainer.estimators.base import PastVerdict, hit_rate, judged
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Miner
from harnesslab.trainer.estimators.mining.miners import known_miners
from harnesslab.trainer.estimators.mining.replay import Replay
from harnesslab.trainer.estimators.mining.view import View
from harnesslab.trainer.failures import Failures
from harnesslab.trainer.leak import LeakScan
from harnesslab.trainer.proposal import PREDICTED, Evidence, Prediction, Proposal, Proposals, best_first

MAX_PROPOSALS = 8
MAX_EVIDENCE = 40
"""Pieces of evidence kept with a proposal, one an episode first."""
BESIDE = 0.3
"""Worth of an episode that shows the evidence without having it as its earliest bottleneck."""
LADDER = 3
"""Rungs of an idea that are proposed at once where many proposals are wanted."""
AGAIN = 0.5
"""Factor for each earlier verdict against an intervention of the same name, on whatever baseline."""
SAME_LAYER = 0.8
"""Factor for each proposal of the same layer that is ranked higher already."""


Rank = Literal["predicted flips", "expected flips"]


@dataclass(frozen=True, slots=True)
class _Scored:
    proposal: Proposal
    score: float


class MiningEstimator:
    """Instantiates the built-in kinds from the evidence in the failures.

    Each miner looks for one pattern and offers one kind. Proposals are ranked by the number of tasks that should flip;
    equal ones by the share of them to expect, with some weight on different layers. A miner that fails is in
    ``refused`` with its reason, and the others go on. What was measured on this baseline and not promoted is never proposed again; the
    next rung of its ladder is.

    ``miners``: your own, by name, in place of the built-in ones and those of installed packages. ``limit``: proposals a call, 8 unless a screening
    asks for more. A screening is offered further rungs of the ladders as well, where the first of each are not enough: alternatives, of which a
    harness takes one. ``rank="expected flips"`` weighs the predicted flips by how often such an intervention helps, before anything else.
    """

    def __init__(
        self, *, miners: Mapping[str, Miner] | None = None, limit: int | None = None, rank: Rank = "predicted flips"
    ):
        if rank not in get_args(Rank):
            raise ConfigError(f"rank={rank!r:.60}: proposals are ranked by {' or '.join(get_args(Rank))}")
        self.rank = rank
        self.miners = dict(sorted((miners if miners is not None else known_miners()).items()))
        self._given, self.limit = limit, MAX_PROPOSALS if limit is None else limit
        self._rungs = 1

    def offering(self, count: int) -> MiningEstimator:
        """The same one, offering up to ``count`` proposals a call, unless it was given a limit of its own; alternatives too."""
        limit = self._given if self._given is not None else max(self.limit, count)
        made = MiningEstimator(miners=self.miners, limit=limit, rank=self.rank)
        made._rungs = LADDER
        return made

    def propose(self, failures: Failures, harness: Harness, history: Sequence[PastVerdict] = ()) -> Proposals:
        """At most ``limit`` proposals, best first; none for a run without failures."""
        if not len(failures):
            return Proposals()
        view = View(failures, harness)
        attempt = _Attempt(view, history)
        scored: list[list[_Scored]] = []
        faults: list[tuple[str, str]] = []
        for name, miner in self.miners.items():
            try:
                scored += _mined(name, miner, view, attempt, self._rungs)
            except EstimatorFault as fault:
                faults.append((name, str(fault)))
        if faults and len(faults) == len(self.miners):
            raise EstimatorFault(f"every miner failed; the first one: {faults[0][1]}")
        found: dict[str, Proposal] = {}
        for rung in range(self._rungs):
            ranked = _ranked([ladder[rung] for ladder in scored if rung < len(ladder)])
            for proposal in best_first(ranked) if self.rank == PREDICTED else ranked:
                found.setdefault(proposal.content, proposal)
        return Proposals(list(found.values())[: self.limit], [*attempt.refused, *faults], ranked_by=self.rank)


def _mined(name: str, miner: Miner, view: View, attempt: _Attempt, rungs: int) -> list[list[_Scored]]:
    """What comes of one miner's ideas, of each the first ``rungs`` that are worth a proposal. Raises EstimatorFault for whatever is wrong with it: it may be anybody's code."""
    try:
        ideas = list(miner(view))
        strange = next((idea for idea in ideas if not isinstance(idea, Idea)), None)
        if strange is not None:
            raise ConfigError(f"it yielded a {type(strange).__name__}, not an Idea")
        return [list(islice(attempt.realize(idea), rungs)) for idea in ideas]
    except HarnesslabError as error:
        raise EstimatorFault(f"the miner {name}: {error}") from error
    except Exception as error:
        raise EstimatorFault(f"the miner {name} raised {type(error).__name__}: {error}") from error


class _Attempt:
    """Turns ideas into proposals for one view: picks the rung, finds the evidence, scans for leaks, scores."""

    def __init__(self, view: View, history: Sequence[PastVerdict]):
        self._view = view
        self._done = judged(history, view.failures.run.commit)
        self._against = Counter(past.get("name", "") for past in history if past.get("status") != "promoted")
        self._history = history
        self._replay = Replay(view.harness, view.episodes, view.tools)
        self._leaks = LeakScan(view.episodes)
        self.refused: list[tuple[str, str]] = []

    def realize(self, idea: Idea) -> Iterator[_Scored]:
        """The proposals for the rungs that are new, have evidence and leak nothing."""
        path = f"{idea.name}.yaml"
        texts = [
            intervention_file(idea.kind, v.params, about=v.about or idea.about, when=v.when) for v in idea.variants
        ]
        start = self._start(idea, path, texts)
        for rung in range(start, len(texts)):
            proposal = Proposal(
                {path: texts[rung]},
                idea.layer,
                idea.kind,
                idea.name,
                idea.variants[rung].about or idea.about,
                estimator="mining",
            )
            if proposal.content in self._done:
                continue
            clues, harm = self._evidence(idea, path, texts[rung])
            if not clues:
                continue
            try:
                self._leaks.check(proposal.changes, self._view.harness.files)
            except LeakFound as leak:
                self.refused.append((idea.name, str(leak)))
                continue
            yield self._scored(idea, proposal, clues, harm, self._fires(path, texts[rung], clues))

    def _start(self, idea: Idea, path: str, texts: list[str]) -> int:
        """The rung from which on the ladder is new; its end where a person's own version must not be touched."""
        present = self._view.harness.files.get(path)
        if present is None:
            return len(texts) if idea.single and self._view.of_kind(idea.kind) else 0
        text = present.decode("utf-8", "replace")
        return texts.index(text) + 1 if text in texts else len(texts)

    def _evidence(self, idea: Idea, path: str, text: str) -> tuple[Sequence[Clue], float]:
        """The steps of failed episodes that speak for it, and the share of solved episodes that it would disturb."""
        if idea.clues is not None:
            return idea.clues, 0.0
        try:
            hits = self._replay.hits(path, text)
        except HarnessFileError as error:
            self.refused.append((idea.name, str(error)))
            return (), 0.0
        clues = [Clue(hit.episode, hit.step.index, hit.what) for hit in hits if not hit.episode.solved]
        disturbed = {hit.episode.key for hit in hits if hit.episode.solved and hit.changes and not hit.step.invalid}
        return clues, len(disturbed) / max(1, len(self._view.solved))

    def _fires(self, path: str, text: str, clues: Sequence[Clue]) -> float:
        """The share of tasks on which it would have fired in the record."""
        try:
            tasks = {hit.episode.task_id for hit in self._replay.hits(path, text)}
        except HarnessFileError:
            tasks = set()
        tasks |= {clue.episode.task_id for clue in clues}
        return len(tasks) / max(1, len({episode.task_id for episode in self._view.episodes}))

    def _scored(self, idea: Idea, proposal: Proposal, clues: Sequence[Clue], harm: float, fires: float) -> _Scored:
        meant = {f.episode.key: set(f.diagnosis.steps) for f in self._view.failures if f.label in idea.labels}
        touched = {clue.episode.key for clue in clues}
        helped = {clue.episode.key for clue in clues if clue.step in meant.get(clue.episode.key, ())}
        expected = idea.strength * (len(helped) + BESIDE * len(touched - helped))
        expected *= (1.0 - harm) * AGAIN ** self._against[idea.name]
        # What such proposals predicted before and did not hold lowers what this one is expected to bring.
        expected *= 2 * hit_rate(self._history, idea.kind)
        labels = Counter(f.label for f in self._view.failures if f.label in idea.labels and f.episode.key in helped)
        flips = tuple(dict.fromkeys(e.task_id for e in self._view.failed if e.key in helped))
        predicted = Prediction(
            flips=flips,
            trigger=idea.name,
            fires=round(min(1.0, fires), 4),
            cause=labels.most_common(1)[0][0] if labels else "",
            gain=round(min(1.0, expected / max(1, len(self._view.episodes))), 4),
        )
        finished = replace(proposal, evidence=tuple(_evidence(clues)), prediction=predicted)
        return _Scored(finished, expected)


def _evidence(clues: Iterable[Clue]) -> list[Evidence]:
    """The clues as evidence, the first of each episode before the second of any, at most MAX_EVIDENCE."""
    seen: Counter[tuple[str, int]] = Counter()
    ranked: list[tuple[int, int, Clue]] = []
    for clue in clues:
        ranked.append((seen[clue.episode.key], len(ranked), clue))
        seen[clue.episode.key] += 1
    chosen = sorted(ranked, key=lambda item: item[:2])[:MAX_EVIDENCE]
    return [Evidence(clue.episode.task_id, clue.episode.id, clue.step, clue.what) for _, _, clue in chosen]


def _ranked(scored: Sequence[_Scored]) -> list[Proposal]:
    """By expected flips, each further proposal of a layer counting less; ties in the order of layers and names."""
    left = sorted(scored, key=lambda s: (-s.score, LAYERS.index(s.proposal.layer), s.proposal.name))
    taken: Counter[str] = Counter()
    ranked: list[Proposal] = []
    while left:
        best = max(left, key=lambda s: s.score * SAME_LAYER ** taken[s.proposal.layer])
        left.remove(best)
        taken[best.proposal.layer] += 1
        ranked.append(best.proposal)
    return ranked
