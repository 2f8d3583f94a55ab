"""The Trainer: the loop, whole or step by step, and what a person does with its results."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from harnesslab.analysis.table import Table
from harnesslab.errors import ConfigError, OrderError
from harnesslab.harness.files import has_meaning
from harnesslab.lab import Lab
from harnesslab.ledger import whoami
from harnesslab.llm.types import MinimalBackbone
from harnesslab.rollout.certify import Fork, certify
from harnesslab.rollout.env import SPLITS, Split, tasks_of
from harnesslab.rollout.identity import identity_of
from harnesslab.rollout.loop import run_async, run_sync
from harnesslab.rollout.progress import Bar
from harnesslab.rollout.records import Episode, Run
from harnesslab.trainer.briefing import Briefed, Briefing
from harnesslab.trainer.callbacks import Callback, Callbacks, Training
from harnesslab.trainer.conditions import Conditions, make_meter
from harnesslab.trainer.config import Settings, TrainFile, make_settings, open_lab, open_llm, read_config
from harnesslab.trainer.controls import Controls
from harnesslab.trainer.criterion import Criterion, StrictPareto
from harnesslab.trainer.decide import Decider
from harnesslab.trainer.design import Design, Screening, make_design, screening_of
from harnesslab.trainer.epochs import Epochs
from harnesslab.trainer.estimators.base import Estimator
from harnesslab.trainer.estimators.manual import ManualEstimator
from harnesslab.trainer.estimators.registry import make_estimator
from harnesslab.trainer.evaluate import evaluate, make_candidate
from harnesslab.trainer.failures import Failures
from harnesslab.trainer.latest import note
from harnesslab.trainer.loss import Loss
from harnesslab.trainer.measure import Measurer
from harnesslab.trainer.optimizer import GreedyMonotonic, Optimizer
from harnesslab.trainer.panel import Panel, check_ids
from harnesslab.trainer.parameter import Parameter
from harnesslab.trainer.parts import check_parts
from harnesslab.trainer.plan import Plan, plan, preview
from harnesslab.trainer.probe import Probe, probe
from harnesslab.trainer.proposal import Proposal, Proposals
from harnesslab.trainer.scan import refuse_leaks
from harnesslab.trainer.sealed import open_sealed, sealed_cost

if TYPE_CHECKING:
    from harnesslab.trainer.screening import Screen

T = TypeVar("T")


class Trainer(Briefed):
    """Trains the harness of a lab around a frozen backbone.

    The loop is ``for loss in trainer.epochs(n): loss.backward(); optimizer.step()``. Each part can also be
    called by itself: :meth:`measure`, :meth:`diagnose`, :meth:`propose`, :meth:`evaluate`, :meth:`promote`, :meth:`reject`.
    ``trainer.harness`` is the Parameter.
    """

    def __init__(
        self,
        lab: Lab | None = None,
        llm: MinimalBackbone | None = None,
        estimator: Estimator | str | None = None,
        criterion: Criterion | None = None,
        optimizer: Optimizer | None = None,
        *,
        design: Design | None = None,
        config_path: str | Path | None = None,
        settings: Settings | dict[str, Any] | None = None,
        executor: Executor | None = None,
        callbacks: Sequence[Callback] | None = None,
    ):
        """What is not given is taken from the file at ``config_path``, else the default: ManualEstimator,
        StrictPareto, GreedyMonotonic, OneAtATime. Paths in the file are relative to it. Nothing is written before the first
        measurement; a lab that the file names is made then. ``estimator``: an object, or the name of a known one, such as
        ``"mining"``. ``settings``: see :class:`~harnesslab.trainer.config.Settings`. ``executor``: plays the episodes, for
        example ``distributed.Client(...).get_executor()`` (extra ``dask``); set ``settings={"workers": n}`` to keep its
        workers busy. ``callbacks``: see :class:`~harnesslab.trainer.callbacks.Callback`.

        Raises ConfigError when no lab or no backbone is known, or a part or a setting is wrong.
        """
        check_parts(lab=lab, llm=llm, estimator=estimator, criterion=criterion, optimizer=optimizer)
        config = read_config(config_path) if config_path is not None else TrainFile()
        self.settings = make_settings(settings, config.settings)
        self.lab = lab if lab is not None else open_lab(config)
        self.llm: MinimalBackbone = llm if llm is not None else open_llm(config, trust=self.lab.trust)
        estimator = estimator if estimator is not None else config.estimator or "manual"
        self.estimator: Estimator = make_estimator(estimator) if isinstance(estimator, str) else estimator
        self.criterion: Criterion = criterion if criterion is not None else StrictPareto()
        self.optimizer: Optimizer = optimizer if optimizer is not None else GreedyMonotonic()
        self.executor = executor
        self.callbacks = Callbacks(callbacks)
        self.harness = Parameter(self.lab)
        self.optimizer.bind(self.harness)
        self.meter = make_meter(self.lab, self.settings)
        """What all calls of this lab used, in this kernel and before; its ``budget`` stops them."""
        self.forked: set[str] = set()
        """Tasks that :meth:`certify` found to differ between replays."""
        check_ids(self.lab.environment, self.settings.leave_out)
        self.design = make_design(design)
        self.screened: Screen | None = None
        self._decider = Decider(self.lab, self.harness, self.optimizer)
        self._briefing = Briefing(self.lab, self.settings, self.meter)
        self._epochs = Epochs(self)
        note(self)
        if lab is None and self.settings.progress:
            print(
                f"lab: {self.lab.path}"
                + ("" if self.lab.exists else " (new; created when the first measurement starts)")
            )

    # -- one step at a time ---------------------------------------------------------------------------

    def measure(
        self,
        split: Split = "search",
        *,
        commit: str | None = None,
        llm: MinimalBackbone | None = None,
        fresh: bool = False,
    ) -> Run:
        """Play a split with the baseline (or another ``commit``); nothing is played twice.

        ``fresh`` plays everything again, as a separate run. Opening the sealed split is recorded. Raises BackboneError and
        BudgetExceeded; finished episodes are kept.
        """
        return self._wait(*self._measure(split, commit, llm, fresh))

    async def measure_async(
        self,
        split: Split = "search",
        *,
        commit: str | None = None,
        llm: MinimalBackbone | None = None,
        fresh: bool = False,
    ) -> Run:
        """The ``await`` twin of :meth:`measure`."""
        return await self._await(*self._measure(split, commit, llm, fresh))

    def watch(self, split: Split = "search", *, index: int = 0, llm: MinimalBackbone | None = None) -> Episode:
        """Play one task of a split with the baseline and show the transcript. Nothing is stored.

        The sealed split cannot be watched: it is opened as a whole, and that is recorded.
        """
        if split == "sealed":
            raise OrderError("the sealed split is opened with trainer.open_sealed(); watch a search or gate task")
        tasks = self.panel(split).tasks
        if not 0 <= index < len(tasks):
            raise ConfigError(f"index {index} is out of range: the {split} panel has {len(tasks)} tasks")
        return run_sync(self.measurer(llm).watch(self.lab.harness(), tasks[index]))

    def diagnose(self, run: Run | None = None) -> Failures:
        """Why episodes failed: labelled, clustered, each with the earliest step that went wrong.

        Without a run, the baseline's on the search split. Raises OrderError for a run of another split: proposers
        learn from ``search`` alone.
        """
        run = run if run is not None else self.measure("search")
        if run.split != "search":
            raise OrderError(
                f"run {run.id} was played on the {run.split} split; diagnose a run of the search split: "
                "trainer.diagnose(trainer.measure())"
            )
        for episode in run:
            self.lab.load_steps(episode)
        failures = Failures(run)
        failures.trainer = self
        return failures

    def propose(self, failures: Failures | None = None) -> Proposals:
        """What the estimator would change, best first. Nothing is measured and nothing is committed yet."""
        failures = failures if failures is not None else self.diagnose()
        estimator = self.estimator
        if isinstance(self.design, Screening) and hasattr(estimator, "offering"):
            estimator = estimator.offering(self.design.proposals)
        proposals = self._briefing.ask(estimator, failures, self.screened)
        proposals.trainer = self
        proposals.leave_out([path for path in self.lab.repo.dirty() if has_meaning(path)])
        return proposals

    def screen(self, proposals: Sequence[Proposal] | None = None) -> Screen:
        """Play one round of search tasks with random sets of proposals switched on; the effects by all rounds so far.

        ``proposals``: what to screen, by default what the estimator offers, those most likely to help first. A round that was interrupted is
        finished, with its own proposals. How many proposals and tasks: ``design=Screening(...)``. ``effects.bundle()`` is
        what to evaluate next.
        """
        return self._wait(*self._screen(proposals))

    async def screen_async(self, proposals: Sequence[Proposal] | None = None) -> Screen:
        """The ``await`` twin of :meth:`screen`."""
        return await self._await(*self._screen(proposals))

    def evaluate(self, proposal: Proposal, *, epoch: int | None = None) -> Loss:
        """Commit the proposal as a candidate and measure it beside the baseline on the gate split."""
        return self._wait(*self._evaluate(proposal, epoch))

    async def evaluate_async(self, proposal: Proposal, *, epoch: int | None = None) -> Loss:
        """The ``await`` twin of :meth:`evaluate`."""
        return await self._await(*self._evaluate(proposal, epoch))

    def prepare(self, proposal: Proposal) -> tuple[Coroutine[Any, Any, Loss], Bar]:
        """The work of :meth:`evaluate`, not started yet, and a progress bar that counts without drawing.

        For callers that wait in their own way, as panels do; run it on :func:`harnesslab.rollout.loop.loop`.
        """
        work, bar = self._evaluate(proposal, None)
        bar.show = False
        return work, bar

    # -- a person decides -----------------------------------------------------------------------------

    def promote(self, what: Loss | Proposal, reason: str, *, who: str | None = None) -> bool:
        """Promote, by a person's decision; recorded as theirs, and as an override if the criterion said no.

        A Proposal can be promoted without a measurement; its record then says so.
        Returns whether the baseline moved.
        """
        return self._decider.decide(what, "promote", reason, who or whoami(self.lab.path))

    accept = promote

    def reject(self, what: Loss | Proposal, reason: str, *, who: str | None = None) -> bool:
        """Reject, by a person's decision; kept under its rejected ref with the reason."""
        return self._decider.decide(what, "reject", reason, who or whoami(self.lab.path))

    def undo(self, candidate_id: str | None = None) -> None:
        """Take back the last decision (a rollback, too), or that on a candidate, where git allows it.

        The candidate waits for a decision again.
        """
        self._decider.undo(candidate_id, whoami(self.lab.path))

    def refuse_leaks(self, proposal: Proposal) -> None:
        """Raise LeakFound where what a person wrote carries text of a single task, unless the estimator is ``ManualEstimator(scan=False)``."""
        if not isinstance(self.estimator, ManualEstimator) or self.estimator.scan:
            refuse_leaks(self.lab, proposal)

    # -- the loop -------------------------------------------------------------------------------------

    def epochs(self, count: int) -> Iterator[Loss]:
        """At most ``count`` losses, one candidate each; fewer when the estimator has nothing left to propose.

        After each, call ``loss.backward()`` and ``optimizer.step()``.
        """
        return self._epochs.start(count)

    def resume(self) -> Iterator[Loss]:
        """Continue the epochs that an interrupt or a killed kernel left unfinished, inside the epoch.

        Raises OrderError when there is nothing to continue.
        """
        return self._epochs.resume()

    # -- how far the numbers can be trusted -------------------------------------------------------------

    def probe(self, *, placebos: Sequence[str] = ("text",)) -> Probe:
        """A/A and placebos: the baseline twice on the gate, the second time with new seeds, and once under each change that means nothing.

        Reports the noise, the least gain that the panel can show, the cost, whether one request always gets the same reply, and which criterion and
        panel to use. ``placebos``: names of :data:`~harnesslab.trainer.probe.PLACEBOS`. Spends two runs and one for each placebo.
        """
        bar = Bar("probe", len(self.panel("gate")), show=self.settings.progress)
        return self._wait(probe(self.measurer(), self.panel("gate"), self.lab.repo.baseline(), bar, placebos), bar)

    def certify(self, run: Run | None = None) -> list[Fork]:
        """Replay a run's action chains (default: the baseline's on the gate) in fresh environments.

        Tasks whose observations differ are *forked*: they leave this trainer's panels from now on. Returns the forks.
        """
        run = run if run is not None else self.measure("gate")
        tasks = {task.id: task for task in tasks_of(self.lab.environment, run.split)}
        episodes = [self.lab.load_steps(episode) for episode in run]
        forks = run_sync(certify(self.lab.environment, tasks, episodes))
        self.forked |= {fork.task for fork in forks}
        return forks

    def open_sealed(self, controls: Controls = None, *, seeds: int | None = None) -> Table:
        """The held-out result, with controls beside it. Each opening is recorded.

        ``controls``: names of :data:`~harnesslab.trainer.controls.CONTROLS` (``random``, ``first``, ``overlap``, ``deaf``,
        ``sampling``), ``"all"``, or backbones; by default the random control. ``seeds``: of those that draw, by default 3, and 1
        for the default control. :meth:`preview_sealed` says what it costs.
        """
        return open_sealed(self.conditions, self.measure, self.llm, controls, seeds)

    def preview_sealed(self, controls: Controls = None, *, seeds: int | None = None) -> Table:
        """What :meth:`open_sealed` would cost at most: episodes, calls, tokens, money, seconds. Opens and spends nothing."""
        return sealed_cost(self.conditions, self.llm, controls, seeds)

    # -- panels ---------------------------------------------------------------------------------------

    def panel(self, split: Split) -> Panel:
        """The tasks that are played of a split. Raises ConfigError for an unknown split."""
        if split not in SPLITS:
            raise ConfigError(f"unknown split {split!r}; splits are {', '.join(SPLITS)}")
        return self.conditions.panel(split)

    def preview(self, epochs: int = 1) -> Table:
        """Upper bound on what epochs would cost, estimated from the stored runs. Spends nothing."""
        return preview(self.conditions, self.design, epochs, self.estimator)

    def plan(self, epochs: int = 30) -> Plan:
        """What a training will cost, the smallest gain that its gate can resolve, and its rate of false promotions. Spends nothing.

        The rates are simulated with the criterion itself on a panel of this size. Costs come from stored episodes of this backbone; what is not known
        yet is None.
        """
        return plan(self.conditions, self.criterion, self.design, self.llm, epochs, self.estimator)

    def measurer(self, llm: MinimalBackbone | None = None) -> Measurer:
        """What plays panels for this trainer; ``llm`` in place of its own backbone, on the same meter."""
        return self.conditions.measurer(llm if llm is not None else self.llm)

    def training(self, epochs: int) -> Training:
        """What callbacks are given at the start and the end of so many ``epochs``."""
        parts = {"estimator": self.estimator, "criterion": self.criterion, "optimizer": self.optimizer}
        names = {role: type(part).__name__ for role, part in parts.items()}
        return Training(self.lab, identity_of(self.llm), self.settings, names, epochs)

    @property
    def conditions(self) -> Conditions:
        """What all measurements of this training have in common."""
        return Conditions(self.lab, self.settings, self.meter, self.executor, self.forked)

    def __repr__(self) -> str:
        parts = (type(part).__name__ for part in (self.estimator, self.criterion, self.optimizer))
        return f"Trainer({self.lab!r}, llm={self.llm!r}, {', '.join(parts)})"

    # -- work -----------------------------------------------------------------------------------------

    def _measure(
        self, split: Split, commit: str | None, llm: MinimalBackbone | None, fresh: bool
    ) -> tuple[Coroutine[Any, Any, Run], Bar]:
        panel = self.panel(split)
        baseline = self.lab.repo.baseline()
        commit = self.lab.repo.resolve(commit) if commit else baseline
        # Several bars may be shown below one another: whatever is unusual is named.
        harness = f" at {commit[:10]}" if commit != baseline else ""
        model = f" with {identity_of(llm)['model']}" if llm is not None else ""
        bar = Bar(f"measure {split}{harness}{model}", len(panel), show=self.settings.progress)
        self.conditions.remember()
        measurer = self.measurer(llm)
        measurer.record_opening(commit, panel)
        return measurer.measure(commit, panel, bar, fresh=fresh), bar

    def _evaluate(self, proposal: Proposal, epoch: int | None) -> tuple[Coroutine[Any, Any, Loss], Bar]:
        if not isinstance(proposal, Proposal):
            raise ConfigError(f"evaluate takes one Proposal, not {type(proposal).__name__}: for example proposals[0]")
        candidate = make_candidate(self.lab, proposal, identity_of(self.llm)["model"])
        panel = self.panel("gate")
        self.conditions.remember()
        bar = Bar(f"evaluate {proposal.name}", 2 * len(panel), show=self.settings.progress)
        work = evaluate(self.measurer(), self.harness, proposal, candidate, panel, bar, self.criterion)

        async def numbered() -> Loss:
            loss = await work
            loss.epoch, loss.trainer = epoch, self
            if self.screened is not None and self.screened.covers(proposal):
                loss.effects = self.screened
            return loss

        return numbered(), bar

    def _screen(self, proposals: Sequence[Proposal] | None) -> tuple[Coroutine[Any, Any, Screen], Bar]:
        # Its packages come with the extra "lab"; a training without screening does without them.
        from harnesslab.trainer.screening import Screener, screen

        self.conditions.remember()
        open_ = list(proposals if proposals is not None else self.propose())
        screener = Screener(self.lab, self.measurer(), self.panel("search"), screening_of(self.design))
        work, bar = screen(screener, open_, show=self.settings.progress)

        async def kept() -> Screen:
            self.screened = await work
            return self.screened

        return kept(), bar

    @staticmethod
    def _wait(work: Coroutine[Any, Any, T], bar: Bar) -> T:
        try:
            return run_sync(work, bar.tick)
        finally:
            bar.close()

    @staticmethod
    async def _await(work: Coroutine[Any, Any, T], bar: Bar) -> T:
        try:
            return await run_async(work, bar.tick)
        finally:
            bar.close()
