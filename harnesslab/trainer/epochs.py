"""The epochs: measure, diagnose, propose, evaluate, and the journal that lets them go on after an interrupt.

One epoch is one candidate with a verdict; with screening, a round on search tasks comes before it, and the candidate is a bundle. Proposals are queued; a promotion empties the queue, because the failures
have changed. The journal holds what cannot be found again in git and the runs: how many epochs are left, the queue,
the proposal that is being measured and since when, and those that were skipped or left undecided on this baseline.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from harnesslab.errors import (
    ConfigError,
    CriterionFault,
    EstimatorFault,
    HarnessFileError,
    HarnesslabError,
    LeakFound,
    OrderError,
    SkippedProposal,
    StoreError,
    TrainingStopped,
    UndecidedLoss,
    UnmeasurableRun,
    readers_line,
)
from harnesslab.lab import Lab
from harnesslab.llm.types import MinimalBackbone
from harnesslab.rollout.env import Split
from harnesslab.rollout.identity import is_greedy
from harnesslab.rollout.owners import IN_A_ROW
from harnesslab.rollout.records import Run
from harnesslab.trainer.callbacks import Callbacks, Training
from harnesslab.trainer.criterion import Criterion
from harnesslab.trainer.design import Design, Screening
from harnesslab.trainer.failures import Failures
from harnesslab.trainer.history import LIMIT
from harnesslab.trainer.looks import coming, looks_of
from harnesslab.trainer.loss import Loss
from harnesslab.trainer.panel import Panel
from harnesslab.trainer.parameter import Parameter
from harnesslab.trainer.proposal import Proposal, Proposals

JOURNAL = "epochs"
LOOKS = 3
"""How often an undecided candidate is measured at most."""


def _is_skip(error: HarnesslabError) -> bool:
    """Whether it is this proposal that cannot be measured, so that the next one may be."""
    if isinstance(error, StoreError):
        return error.cause == "proposal"
    return isinstance(error, HarnessFileError | LeakFound | UnmeasurableRun | CriterionFault)


class Bundles(Protocol):
    """The effects after a round, as far as the epochs need them."""

    def bundle(self) -> Proposal | None: ...

    def predicted(self, proposal: Proposal) -> float: ...


class Steps(Protocol):
    """The steps of an epoch, as a :class:`~harnesslab.Trainer` makes them."""

    design: Design
    criterion: Criterion

    @property
    def llm(self) -> MinimalBackbone: ...

    def screen(self, proposals: Sequence[Proposal] | None = None) -> Bundles: ...

    @property
    def lab(self) -> Lab: ...

    @property
    def harness(self) -> Parameter: ...

    @property
    def callbacks(self) -> Callbacks: ...

    def training(self, epochs: int) -> Training: ...

    def panel(self, split: Split) -> Panel: ...

    def measure(self, split: Split) -> Run: ...

    def diagnose(self, run: Run) -> Failures: ...

    def propose(self, failures: Failures) -> Proposals: ...

    def remember(self) -> None: ...

    def evaluate(self, proposal: Proposal, *, epoch: int | None = None) -> Loss: ...


class Epochs:
    """Makes losses, one an epoch, by the steps of one trainer."""

    def __init__(self, trainer: Steps):
        self._trainer = trainer

    def start(self, count: int) -> Iterator[Loss]:
        """Start ``count`` epochs; forgets an older journal."""
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ConfigError(f"epochs needs a whole number of at least 1, not {count!r}")
        return self._go({"total": count, "done": 0, "baseline": None, "queue": [], "current": None, "passed": []})

    def resume(self) -> Iterator[Loss]:
        """Continue from the journal."""
        lab = self._trainer.lab
        state = lab.runs.journal_get(0, JOURNAL) if lab.recorded else None
        if state:
            # A kernel that died between the decision and the journal has finished that epoch all the same.
            self._count(state)
        if not state or state["done"] >= state["total"]:
            raise OrderError("no epochs were interrupted in this lab: start with trainer.epochs(n)")
        return self._go(state)

    def _go(self, state: dict[str, Any]) -> Iterator[Loss]:
        self._require_no_grad()
        # A setting that leaves no task must not leave a new lab either.
        splits: tuple[Split, ...] = ("search", "gate")
        for split in splits:
            self._trainer.panel(split)
        # Before the first measurement, too, which is often the longest.
        self._put(state)
        call, training = self._trainer.callbacks.call, self._trainer.training(state["total"])
        call("on_train_start", training)
        try:
            yield from self._play(state)
        finally:
            call("on_train_end", training)

    def _play(self, state: dict[str, Any]) -> Iterator[Loss]:
        call = self._trainer.callbacks.call
        skipped = started = 0
        while state["done"] < state["total"]:
            if started != state["done"] + 1:
                started = state["done"] + 1
                call("on_epoch_start", started)
            screening = isinstance(self._trainer.design, Screening)
            proposal = self._next_bundle(state) if screening else self._next(state)
            if proposal is None:
                break
            # Written before the measurement: a kernel that dies in it resumes with this very proposal.
            self._put(state)
            try:
                loss = self._trainer.evaluate(proposal, epoch=state["done"] + 1)
            except HarnesslabError as error:
                if not _is_skip(error):
                    raise
                skipped += 1
                self._skip(state, proposal, error, skipped)
                continue
            skipped = 0
            for run in (loss.baseline, loss.measured):
                call("on_measured", run)
            try:
                yield loss
            finally:
                call("on_epoch_end", loss)
            self._require_no_grad()
            if not self._count(state):
                self._leave(state, loss)
            self._trainer.remember()
        state["done"] = state["total"]
        self._put(state)

    def _next(self, state: dict[str, Any]) -> Proposal | None:
        """The proposal to measure now; ``None`` when the estimator has nothing left."""
        trainer = self._trainer
        baseline = trainer.lab.repo.baseline()
        if state["current"] is not None and state["baseline"] == baseline:
            return Proposal.from_json(state["current"])
        if state["baseline"] != baseline:
            state.update(passed=[], undecided=[])
        if state["baseline"] != baseline or not state["queue"]:
            run = trainer.measure("search")
            trainer.callbacks.call("on_measured", run)
            proposals = self._propose(trainer.diagnose(run))
            fresh = [proposal.to_json() for proposal in proposals if proposal.content not in state.get("passed", ())]
            state.update(baseline=baseline, queue=fresh)
        if not state["queue"] and self._accumulates():
            # Nothing new is left: more evidence on what could not be told.
            state["queue"] = state.pop("undecided", [])
        if not state["queue"]:
            return None
        state.update(current=state["queue"].pop(0), since=time.time())
        return Proposal.from_json(state["current"])

    def _next_bundle(self, state: dict[str, Any]) -> Proposal | None:
        """Screen until there is a bundle to judge; ``None`` when nothing is left, or no bundle comes of several rounds."""
        trainer = self._trainer
        design, baseline = trainer.design, trainer.lab.repo.baseline()
        assert isinstance(design, Screening)
        if state["current"] is not None and state["baseline"] == baseline:
            return Proposal.from_json(state["current"])
        if state["baseline"] != baseline:
            files = trainer.lab.repo.files(baseline)
            offered = [*self._propose(trainer.diagnose(trainer.measure("search")))]
            offered += [Proposal.from_json(data) for data in state["queue"]]
            pool = {p.content: p.to_json() for p in offered if p.apply(files) != dict(files)}
            state.update(baseline=baseline, queue=list(pool.values()), passed=[])
            self._put(state)
        pool_ = [Proposal.from_json(data) for data in state["queue"]]
        for left in reversed(range(design.patience if pool_ else 0)):
            try:
                effects = trainer.screen(pool_)
                bundle = effects.bundle()
            except OrderError:  # nothing of the pool is worth another episode
                return None
            if bundle is None or (left and effects.predicted(bundle) < self._worth_a_look(design)):
                continue
            if bundle.content not in state.get("passed", ()) and self._open_to(bundle, baseline):
                state.update(current=bundle.to_json(), since=time.time())
                return bundle
        return None

    def _worth_a_look(self, design: Screening) -> float:
        """The gain in points that a bundle must promise: one that the gate can hardly resolve costs more there than a round does."""
        trainer = self._trainer
        needs = getattr(coming(trainer.lab, trainer.criterion, 1)[0], "needs", 0)
        return 100 * design.surplus * needs / len(trainer.panel("gate").tasks)

    def _open_to(self, proposal: Proposal, baseline: str) -> bool:
        """Whether a verdict on the proposal is still wanted on this baseline: it has none, or more evidence may decide it."""
        rows = self._trainer.lab.repo.candidates(limit=LIMIT).rows
        known = [row for row in rows if row.parent == baseline and row.meta.get("content") == proposal.content]
        if any(row.state == "rejected" for row in known):
            return False
        undecided = [row for row in known if row.state == "undecided"]
        return not undecided or (self._accumulates() and all(len(looks_of(row)) < LOOKS for row in undecided))

    def _accumulates(self) -> bool:
        """Whether measuring an undecided candidate again adds to what is known of it."""
        return hasattr(self._trainer.criterion, "at") and not is_greedy(self._trainer.llm)

    def _propose(self, failures: Failures) -> Proposals:
        """What the estimator proposes; one that fails is asked again a few times. Raises TrainingStopped."""
        for tried in range(1, IN_A_ROW + 1):
            try:
                return self._trainer.propose(failures)
            except EstimatorFault as error:
                self._tell("estimator", str(error))
                if tried == min(IN_A_ROW, error.patience):
                    raise TrainingStopped(
                        f"the estimator failed {tried} times in a row: {error}. Nothing is lost; trainer.resume() continues"
                    ) from error
        raise AssertionError("not reached")

    def _skip(self, state: dict[str, Any], proposal: Proposal, error: HarnesslabError, count: int) -> None:
        """Note that a proposal could not be measured and do without it. Raises TrainingStopped after some in a row."""
        state.update(current=None, passed=[*state.get("passed", ()), proposal.content])
        self._put(state)
        self._tell(proposal.name, str(error))
        if count >= IN_A_ROW:
            raise TrainingStopped(
                f"{count} proposals in a row could not be measured; the last one, {proposal.name}: {error}. Nothing is "
                "lost; trainer.resume() continues with the next one"
            ) from error

    def _tell(self, name: str, reason: str) -> None:
        self._trainer.lab.runs.add_event("skipped", {"name": name, "reason": reason})
        warnings.warn(f"skipped {name}: {reason}", SkippedProposal, stacklevel=readers_line())

    def _leave(self, state: dict[str, Any], loss: Loss) -> None:
        """Nobody decided on the loss: its candidate stays pending, and is not measured a second time."""
        if not state.get("told"):
            warnings.warn(
                f"the loss of candidate {loss.candidate} ({loss.proposal.name}) was not acted on, so nothing was promoted "
                "or rejected: call loss.backward() and optimizer.step() in the loop, or decide in the panel or with "
                "trainer.promote(loss, reason=...). It stays pending; the next proposal is measured",
                UndecidedLoss,
                stacklevel=readers_line(),
            )
        passed = [*state.get("passed", ()), loss.proposal.content]
        state.update(done=state["done"] + 1, current=None, passed=passed, told=True)
        self._put(state)

    def _count(self, state: dict[str, Any]) -> bool:
        """Count the epoch of the current proposal if it was decided since it was taken up; returns whether it was.

        Git is asked, so that it does not matter who decided, in which process, or whether that one lived on.
        """
        current = state["current"]
        if current is None:
            return False
        content = Proposal.from_json(current).content
        rows = self._trainer.lab.repo.candidates(state=("promoted", "rejected", "undecided"), limit=LIMIT).rows
        # Some clocks of git have whole seconds.
        since = math.floor(state.get("since", 0.0))
        own = [row for row in rows if row.meta.get("content") == content and row.parent == state["baseline"]]
        decided = any((row.decided_at or 0) >= since for row in own)
        if decided:
            if own[0].state == "undecided" and len(looks_of(own[0])) < LOOKS:
                state["undecided"] = [*state.get("undecided", []), current]
            state.update(done=state["done"] + 1, current=None)
            self._put(state)
        return decided

    def _put(self, state: dict[str, Any]) -> None:
        self._trainer.lab.runs.journal_put(0, JOURNAL, state)

    def _require_no_grad(self) -> None:
        if self._trainer.harness.grad is not None:
            raise OrderError("the last loss was not acted on: call optimizer.step() after loss.backward()")
