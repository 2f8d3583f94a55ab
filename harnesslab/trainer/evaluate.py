"""Turns a proposal into a candidate commit and measures it beside the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harnesslab.errors import UnmeasurableRun
from harnesslab.harness.files import check_changes
from harnesslab.harness.load import load_harness
from harnesslab.lab import Lab
from harnesslab.ledger import OPEN, Verdict, now
from harnesslab.plaintext import clip
from harnesslab.rollout.identity import is_greedy
from harnesslab.rollout.metrics import METRICS
from harnesslab.rollout.progress import Bar
from harnesslab.rollout.records import Episode, Run
from harnesslab.rollout.tasks import solved_tasks
from harnesslab.store import Candidate
from harnesslab.trainer.criterion import (
    Criterion,
    Judgement,
    NetSolve,
    StrictPareto,
    foregone,
    is_sequential,
    judge_all,
)
from harnesslab.trainer.looks import look_at
from harnesslab.trainer.loss import Loss
from harnesslab.trainer.measure import Measurer
from harnesslab.trainer.mechanism import drifted, explained, quiet
from harnesslab.trainer.pairs import Pair, comparable, flips, pair_up, prefix, unplayed
from harnesslab.trainer.panel import Panel
from harnesslab.trainer.parameter import Parameter
from harnesslab.trainer.power import false_rate, least_gain
from harnesslab.trainer.predictions import check
from harnesslab.trainer.proposal import Proposal


def make_candidate(lab: Lab, proposal: Proposal, written_with: str) -> Candidate:
    """Commit the proposal as a candidate, a direct child of the baseline; checked before it is written.

    A candidate with the same content on the same baseline that waits already is used again. Raises
    HarnessFileError for files that do not load or are none of a harness, StoreError when nothing changes.
    """
    check_changes(proposal.changes)
    baseline = lab.repo.baseline()
    harness = load_harness(proposal.apply(lab.repo.files(baseline)), unconfined=lab.unconfined)
    for intervention in harness.interventions:
        if proposal.changes.get(f"{intervention.name}.py") is not None:
            intervention.check()
    for waiting in lab.repo.candidates(state=OPEN, limit=500).rows:
        if waiting.parent == baseline and waiting.meta.get("content") == proposal.content:
            return waiting
    data = proposal.to_json()
    meta = {key: value for key, value in data.items() if key not in ("changes", "parts")} | {
        "written_with": written_with
    }
    if proposal.parts:
        meta["parts"] = [{"name": part.name, "content": part.content} for part in proposal.parts]
    steps = [(part.changes, _subject(part)) for part in proposal.parts]
    return lab.repo.propose(proposal.changes, steps[-1][1] if steps else _subject(proposal), meta, steps)


def _subject(proposal: Proposal) -> str:
    return clip(f"{proposal.name}: {' '.join(proposal.about.split())}", 100)


async def evaluate(
    measurer: Measurer, parameter: Parameter, proposal: Proposal, candidate: Candidate, panel: Panel, bar: Bar,
    criterion: Criterion,
) -> Loss:  # fmt: skip
    """Measure the candidate beside its baseline on the panel and judge it; the verdict is on record at once.

    A criterion that counts its looks is told which one this is, and judges what earlier looks at the candidate found, too.
    Raises UnmeasurableRun when untrusted episodes could turn the verdict.
    """
    look = look_at(measurer.lab, candidate, criterion, greedy=is_greedy(measurer.backbone))
    earlier = [
        pair
        for first in look.earlier
        for pair in comparable(
            pair_up(
                *(measurer.open_run(commit, replace(panel, first=first), "gate")
                  for commit in (candidate.parent, candidate.commit))
            )
        )
    ]  # fmt: skip
    panel = replace(panel, first=look.first)
    files = [measurer.lab.repo.files(commit) for commit in (candidate.parent, candidate.commit)]
    new = changed_interventions(*files)
    before, after, early = await measurer.compare(
        candidate.parent, candidate.commit, panel, bar, look.criterion, earlier, new
    )
    drift = drifted(comparable(pair_up(before, after)), new) if is_greedy(measurer.backbone) else []
    if drift:
        # Equal requests had equal replies once; what is compared must come from the same time.
        before = await measurer.measure(candidate.parent, panel, bar, purpose="gate", fresh=True)
    played = pair_up(before, after)
    pairs = [*earlier, *comparable(played)]
    aside = sorted({pair.task for pair in played} - {pair.task for pair in pairs})
    first = prefix(panel.keys, before, after)
    if quiet(first, new):
        judgement = explained(look.criterion, Judgement(1.0, ""), first, new)
    else:
        judgement = judged(look.criterion, pairs, unplayed(before, after) if early else [])
        judgement = explained(look.criterion, judgement, pairs, new, enough=not early)
    if drift:
        again = f"outcomes differed on {', '.join(drift[:5])} though nothing of it fired there: something drifted, so the baseline was measured again"
        judgement = replace(judgement, why=f"{judgement.why}; {again}")
    lost = sorted({pair.task for pair in pairs} - {pair.task for pair in pairs if pair.scorable})
    for what, tasks in (("set aside", aside), ("not scorable with the candidate", lost)):
        if tasks:
            judgement = replace(judgement, why=f"{judgement.why}; {what}: {', '.join(tasks)}")
    judgement = replace(
        judgement, statistics={**judgement.statistics, **_shown(criterion, look.criterion, before, panel), **look.note}
    )
    verdict = _verdict(criterion, judgement, candidate, pairs, (before, after), early, new, len(panel))
    verdict = replace(verdict, predictions=check(proposal.prediction, pairs, new, measurer.lab.load_steps))
    measurer.lab.ledger.measured(candidate.id, verdict)
    return Loss(parameter, candidate.id, verdict, proposal=proposal, baseline=before, measured=after)


def _shown(criterion: Criterion, asked: Criterion, before: Run, panel: Panel) -> dict[str, Any]:
    """What the measurement could have shown, and where the criterion promises nothing, how often it promotes what changes nothing."""
    at_look = getattr(asked, "needs", None)
    found: dict[str, Any] = {"resolvable": least_gain(asked, before) if at_look is None else at_look}
    if type(criterion) is StrictPareto or type(criterion) is NetSolve:
        share = (sum(episode.solved for episode in before.scorable) + 1) / (len(before.scorable) + 2)
        # In tenths: a finer one says no more, and each is simulated once.
        mean = min(0.9, max(0.1, round(share, 1)))
        found["false_promotions"] = round(false_rate(criterion, len(panel.tasks), panel.repeats, mean), 3)
    return found


def judged(criterion: Criterion, pairs: Sequence[Pair], left: Sequence[Episode]) -> Judgement:
    """The judgement; where the measurement stopped with episodes ``left``, one that the whole panel would have given, too."""
    if not left or is_sequential(criterion):
        return judge_all(criterion, pairs)
    sure = foregone(criterion, pairs, left)
    try:
        said = judge_all(criterion, pairs)
    except UnmeasurableRun:
        if sure is None:
            raise
    else:
        if sure is None or (said.value >= 0 and not said.undecided):
            return said
    return replace(sure, why=f"even if all that is left were solved: {sure.why}")


def changed_interventions(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> frozenset[str] | None:
    """Names of interventions that were added, changed or removed; ``None`` when the base itself changed,
    which concerns every step."""
    paths = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    if "harness.toml" in paths:
        return None
    return frozenset(path.rpartition(".")[0] for path in paths)


def _verdict(
    criterion: Criterion,
    judgement: Judgement,
    candidate: Candidate,
    pairs: list[Pair],
    runs: tuple[Run, Run],
    early: bool,
    new: frozenset[str] | None,
    total: int,
) -> Verdict:
    scorable = [pair for pair in pairs if pair.scorable]
    sides = {"baseline": [pair.before for pair in scorable], "candidate": [pair.after for pair in scorable]}
    fresh = runs[1].episodes
    replies = [reply for episode in fresh for step in episode.steps for reply in step.replies]
    return Verdict(
        criterion=criterion.name,
        value=judgement.value,
        decision="undecided" if judgement.undecided else "promote" if judgement.value < 0 else "reject",
        baseline=candidate.parent,
        candidate=candidate.commit,
        solved={side: sorted(solved_tasks(episodes)) for side, episodes in sides.items()},
        flips=flips(scorable, new),
        metrics={
            name: (metric.mean(sides["baseline"]), metric.mean(sides["candidate"])) for name, metric in METRICS.items()
        },
        statistics=dict(judgement.statistics),
        cost={
            "episodes": len(fresh),
            "calls": sum(episode.length for episode in fresh) if not replies else len(replies),
            "prompt_tokens": sum(episode.prompt_tokens for episode in fresh),
            "completion_tokens": sum(episode.completion_tokens for episode in fresh),
            "seconds": round(sum(episode.seconds for episode in fresh), 3),
        },
        identity=runs[0].identity,
        runs={"baseline": runs[0].id, "candidate": runs[1].id},
        tasks=len({pair.task for pair in scorable}),
        settled_early=early,
        when=now(),
        why=judgement.why + (f"; stopped after {len(fresh)} of {total} episodes" if early else ""),
    )
