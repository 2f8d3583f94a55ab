"""One bad thing stops nothing: requests that are refused, environments that break, proposals that cannot be measured."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import harnesslab as hl
from harnesslab.errors import (
    BackboneError,
    ConfigError,
    EnvironmentUnavailable,
    HarnesslabError,
    SkippedProposal,
    TrainingStopped,
    UndecidedLoss,
    UnmeasurableRun,
)
from harnesslab.ledger import Ledger
from harnesslab.llm import Completion
from harnesslab.rollout.owners import RULES
from harnesslab.trainer.proposal import Proposal
from tests.conftest import always
from tests.trainer.test_trainer import RIGHT, WRONG, obedient, trainer
from tests.worlds import CorridorWorld

ONE_TASK = [cause for cause, rule in RULES.items() if rule.owner in ("backbone", "task")]


class Corner(CorridorWorld):
    """Tells the agent in which corridor it is, so that a backbone can trip over one of them."""

    def make(self) -> Any:
        env = super().make()
        reset = env.reset

        def told(*, seed: int | None = None, options: Any = None) -> Any:
            observation, info = reset(seed=seed, options=options)
            info["public"]["instruction"] = f"Corridor {seed}."
            return observation, info

        env.reset = told  # type: ignore[method-assign]
        return env


class Trips:
    """Obedient, but fails where ``when`` says so of the whole request."""

    constrains = False
    identity: ClassVar[dict[str, str]] = {"model": "trips"}

    def __init__(self, when: Callable[[str], bool], cause: str):
        self.when, self.cause = when, cause

    async def complete(self, request: Any, *, repeat: int = 0) -> Completion:
        if self.when("\n".join(str(message["content"]) for message in request.messages)):
            raise BackboneError("HTTP 400 content_filter", cause=self.cause)
        return Completion(obedient(request.messages), model="trips")


def train(made: hl.Trainer, losses: Any) -> list[Any]:
    found = []
    for loss in losses:
        loss.backward()
        made.optimizer.step()
        found.append(loss)
    return found


@pytest.mark.parametrize("cause", ONE_TASK)
def test_one_task_whose_request_fails_does_not_stop_training(open_lab: Callable[..., Any], cause: str) -> None:
    lab = open_lab(env=Corner())
    llm = Trips(lambda text: "Corridor 3." in text, cause)
    made = trainer(lab, WRONG, RIGHT, llm=llm)
    run = made.measure()
    broken = [(e.task_id, e.owner, e.cause) for e in run if e.status == "unscorable"]
    assert broken == [("search-3", RULES[cause].owner, cause)]
    losses = train(made, made.epochs(2))
    assert [loss.verdict.decision for loss in losses] == ["reject", "promote"]
    frame = run.to_frame()
    assert list(frame.loc[frame.task_id == "search-3", "cause"]) == [cause]
    again = lab.run(run.id)
    assert [(e.owner, e.cause) for e in again if e.status == "unscorable"] == [(RULES[cause].owner, cause)]


@pytest.mark.parametrize(("cause", "charged"), [("context", "outgrown"), ("refused", "provoked")])
@pytest.mark.parametrize("workers", [1, 4])
def test_a_request_that_only_the_candidate_makes_too_long_is_its_fault(
    open_lab: Callable[..., Any], cause: str, charged: str, workers: int
) -> None:
    lab = open_lab(env=Corner())
    llm = Trips(lambda text: "on the right" in text and "Corridor 3." in text, cause)
    made = trainer(lab, RIGHT, llm=llm, workers=workers)
    (loss,) = train(made, made.epochs(1))
    charge = [(e.task_id, e.status, e.solved) for e in loss.measured if e.owner == "harness"]
    assert charge == [("gate-3", "finished", False)]
    assert {e.cause for e in loss.measured if e.owner == "harness"} == {charged}
    assert loss.baseline.episodes[3].status == "finished"
    assert lab.repo.candidates(state="rejected").total + lab.repo.candidates(state="promoted").total == 1


@pytest.mark.parametrize("cause", ONE_TASK)
def test_an_endpoint_that_fails_every_time_stops_with_one_sentence_and_resume_goes_on(
    open_lab: Callable[..., Any], cause: str
) -> None:
    lab = open_lab()
    with pytest.raises(BackboneError, match="in a row got no reply"):
        next(trainer(lab, RIGHT, llm=Trips(lambda text: True, cause)).epochs(1))
    made = trainer(lab, RIGHT, llm=Trips(lambda text: False, cause))
    assert [loss.verdict.decision for loss in train(made, made.resume())] == ["promote"]
    assert all(e.status == "finished" for e in made.measure())


def test_a_task_on_which_the_environment_breaks_is_tried_again_and_set_aside(open_lab: Callable[..., Any]) -> None:
    lab = open_lab(env=CorridorWorld(fault="step", faulty=["2"]))
    made = trainer(lab, RIGHT)
    (loss,) = train(made, made.epochs(1))
    assert loss.verdict.decision == "promote" and "set aside: gate-2" in loss.verdict.why
    assert {(e.owner, e.cause) for e in loss.baseline if e.status == "unscorable"} == {("task", "unplayable")}
    world = lab.environment
    before = len(world.made)
    made.measure("gate", commit=lab.repo.root())
    assert len(world.made) == before, "what was set aside is not played again"
    made.measure("gate", commit=lab.repo.root(), fresh=True)
    assert len(world.made) > before


def test_an_environment_that_breaks_once_is_played_again(open_lab: Callable[..., Any]) -> None:
    world = CorridorWorld(fault="step", faulty=["2"])
    made_ = world.make

    def heals() -> Any:
        if len(world.made) >= 1:
            world.fault = ""
        return made_()

    world.make = heals  # type: ignore[method-assign]
    run = trainer(open_lab(env=world)).measure()
    assert [e.status for e in run] == ["finished"] * 8


@pytest.mark.parametrize("fault", ["reset", "step", "exit", "lie"])
def test_an_environment_that_always_breaks_stops_with_one_sentence(open_lab: Callable[..., Any], fault: str) -> None:
    lab = open_lab(env=CorridorWorld(fault=fault))
    with pytest.raises(UnmeasurableRun, match="the environment broke in the first 3 episodes"):
        train(trainer(lab, RIGHT), trainer(lab, RIGHT).epochs(1))
    lab.environment.fault = ""
    made = trainer(lab, RIGHT)
    assert len(train(made, made.resume())) == 1


@pytest.mark.parametrize(
    ("tolerance", "raises"), [(0, True), (1, True), (2, False), (0.2, True), (0.25, False), (1.0, False)]
)
def test_the_tolerance_bounds_what_may_be_unscorable(
    open_lab: Callable[..., Any], tolerance: float, raises: bool
) -> None:
    made = trainer(open_lab(env=CorridorWorld(fault="step", faulty=["3", "6"])), tolerance=tolerance)
    if raises:
        with pytest.raises(UnmeasurableRun, match=r"more than the .* tolerance allows \(search-"):
            made.measure()
    else:
        assert len(made.measure().scorable) == 6


@pytest.mark.parametrize("tolerance", [-1, 1.5, "many", True, None, float("nan")])
def test_a_tolerance_is_a_number_or_a_share(open_lab: Callable[..., Any], tolerance: Any) -> None:
    with pytest.raises(ConfigError, match="tolerance"):
        trainer(open_lab(), tolerance=tolerance)


def test_tasks_are_left_out_by_name_and_that_is_another_measurement(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    whole, some = trainer(lab), trainer(lab, leave_out=["search-2", "gate-5"])
    assert "search-2" not in {e.task_id for e in some.measure()} and len(some.measure()) == 7
    assert some.measure("gate").identity["leave_out"] == ["gate-5", "search-2"]
    assert "leave_out" not in whole.measure().identity and "tolerance" not in whole.measure().identity
    strict = trainer(lab, tolerance=0.1)
    assert strict.measure().identity["tolerance"] == 0.1 and strict.measure().id != whole.measure().id
    with pytest.raises(ConfigError, match=r"leave_out.*no task 'gate-55'; did you mean 'gate-5'\?"):
        trainer(lab, leave_out=["gate-55"])


def test_the_configuration_file_knows_them(open_lab: Callable[..., Any], tmp_path: Any) -> None:
    file = tmp_path / "train.yaml"
    file.write_text("settings: {tolerance: 2, leave_out: [search-2], deadline: 5, max_calls: 9, progress: false}\n")
    made = hl.Trainer(open_lab(), always("left"), config_path=file)
    assert made.settings.tolerance == 2 and len(made.panel("search")) == 7


def test_tasks_that_cannot_be_listed_are_one_sentence(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab)
    for tasks in (lambda split: 1 / 0, lambda split: ["gate-1"], lambda split: None):
        lab.environment.tasks = tasks
        with pytest.raises(EnvironmentUnavailable, match="tasks"):
            made.measure()


def proposal(name: str, text: Any) -> Proposal:
    return Proposal({f"{name}.yaml": text}, "contract", "prompt", name, "about")


class Estimator:
    """Gives what it is given."""

    def __init__(self, *given: Any):
        self.given = given

    def propose(self, failures: Any, harness: Any, history: Any = ()) -> Any:
        answer = self.given[0]
        self.given = self.given[1:] or self.given
        if isinstance(answer, Exception):
            raise answer
        return answer


BROKEN = [
    proposal("contract/a", "kind: nothing\n"),
    proposal("contract/b", "kind: [\n"),
    proposal("contract/c", "kind: prompt\nparms: {}\n"),
    proposal("contract/\x00", RIGHT),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda item: repr(item.name))
def test_a_proposal_that_does_not_load_is_skipped(open_lab: Callable[..., Any], broken: Proposal) -> None:
    lab = open_lab()
    made = hl.Trainer(
        lab, hl.LLM.scripted(obedient), Estimator([broken, proposal("contract/good", RIGHT)]),
        settings={"progress": False},
    )  # fmt: skip
    with pytest.warns(SkippedProposal, match="skipped"):
        losses = train(made, made.epochs(1))
    assert [(loss.epoch, loss.verdict.decision) for loss in losses] == [(1, "promote")]
    assert lab.runs.events("skipped")[0]["data"]["name"] == broken.name


def test_a_proposal_outside_the_harness_is_passed_over(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    items = [proposal("../escape", RIGHT), proposal("contract/good", RIGHT)]
    made = hl.Trainer(lab, hl.LLM.scripted(obedient), Estimator(items), settings={"progress": False})
    assert [loss.proposal.name for loss in train(made, made.epochs(1))] == ["contract/good"]
    assert lab.repo.candidates().total == 1 and not (lab.path.parent / "escape.yaml").exists()


def test_only_broken_proposals_stop_after_three_and_nothing_is_lost(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    good = proposal("contract/good", RIGHT)
    made = hl.Trainer(lab, hl.LLM.scripted(obedient), Estimator([*BROKEN[:3], good]), settings={"progress": False})
    with pytest.warns(SkippedProposal), pytest.raises(TrainingStopped, match="3 proposals in a row"):
        train(made, made.epochs(1))
    assert [loss.proposal.name for loss in train(made, made.resume())] == ["contract/good"]


@pytest.mark.parametrize(
    "answer", [None, 5, "text", {"a": 1}, [None], ["x"], ValueError("no idea"), [proposal("a", 5)]]
)
def test_an_estimator_that_fails_is_named_and_asked_again(open_lab: Callable[..., Any], answer: Any) -> None:
    lab = open_lab()
    made = hl.Trainer(lab, hl.LLM.scripted(obedient), Estimator(answer), settings={"progress": False})
    with pytest.warns(SkippedProposal), pytest.raises(TrainingStopped, match="estimator failed 3 times"):
        train(made, made.epochs(1))
    made.estimator = Estimator(answer, [proposal("contract/good", RIGHT)])
    with pytest.warns(SkippedProposal, match="estimator"):
        assert len(train(made, made.resume())) == 1


def test_a_loss_that_nobody_acts_on_is_told_once_and_not_measured_twice(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, WRONG, RIGHT)
    with pytest.warns(UndecidedLoss, match=r"loss\.backward\(\) and optimizer\.step\(\)") as told:
        losses = list(made.epochs(10))
    assert [loss.proposal.name for loss in losses] == ["contract/hint0", "contract/hint1"]
    assert len([w for w in told if w.category is UndecidedLoss]) == 1
    assert lab.repo.candidates(state="measured").total == 2
    assert made.accept(losses[1], reason="later") is True


def test_a_person_may_decide_between_two_losses(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, WRONG, RIGHT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = made.epochs(2)
        made.reject(next(losses), reason="no")
        made.accept(next(losses), reason="yes")
        assert list(losses) == []


def test_a_decision_in_another_process_counts_too(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, WRONG, RIGHT)
    losses = made.epochs(2)
    loss = next(losses)
    Ledger(lab.repo).reject(loss.candidate, loss.verdict.to_json())  # as the sidebar does
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert next(losses).epoch == 2


def test_the_budget_belongs_to_the_lab(open_lab: Callable[..., Any]) -> None:
    lab, calls = open_lab(), []

    def counting(messages: Any) -> str:
        calls.append(1)
        return "Action: left"

    llm = hl.LLM.scripted(counting)
    with pytest.raises(HarnesslabError, match="Call budget exhausted"):
        trainer(lab, llm=llm, max_calls=12).measure()
    assert len(calls) == 12
    for again in (trainer(lab, llm=llm), trainer(lab, llm=llm, max_calls=12)):
        with pytest.raises(HarnesslabError, match="Call budget exhausted"):
            again.measure()
    assert len(calls) == 12, "a restart spends nothing more"
    with pytest.raises(HarnesslabError, match="20 of 20"):
        trainer(lab, llm=llm, max_calls=20).measure()
    last = trainer(lab, llm=llm)
    last.meter.reset()
    assert last.meter.usage().calls == 0
    last.meter.budget = type(last.meter.budget)()
    assert len(last.measure()) == 8 and trainer(lab).meter.budget == last.meter.budget


def test_two_notebooks_share_one_budget(open_lab: Callable[..., Any]) -> None:
    lab, calls, lock = open_lab(), [], threading.Lock()

    def counting(messages: Any) -> str:
        with lock:
            calls.append(1)
        return "Action: left"

    both = [trainer(lab, llm=hl.LLM.scripted(counting, name=name), max_calls=30) for name in "ab"]
    for made, split in ((both[0], "search"), (both[1], "gate")):
        with pytest.raises(HarnesslabError, match="budget exhausted"):
            made.measure(split, fresh=True)  # type: ignore[arg-type]
            made.measure("gate", fresh=True)
    assert len(calls) == 30


class Bare:
    """An environment with nothing optional."""

    name, version = "bare", "1"

    def __init__(self) -> None:
        self._world = CorridorWorld()
        self.tasks, self.starter = self._world.tasks, self._world.starter

    def make(self) -> Any:
        env = self._world.make()

        class Two:
            reset, step = env.reset, env.step

        return Two()


def test_an_environment_without_optional_members_is_trained_and_opened(open_lab: Callable[..., Any]) -> None:
    lab = open_lab(env=Bare())
    made = trainer(lab, RIGHT)
    assert len(train(made, made.epochs(1))) == 1 and made.certify() == []
    table = made.open_sealed()
    assert [row["backbone"] for row in table if row["harness"] == "none"] == ["null agent", "first option"]
    assert len(lab.openings()) == 3 and made.preview() is not None


@pytest.mark.parametrize("kind", ["raises", "hangs", "plays badly"])
def test_an_oracle_that_fails_costs_its_row_and_no_opening(open_lab: Callable[..., Any], kind: str) -> None:
    never = threading.Event()

    class Poor(CorridorWorld):
        deadline = 0.1

        def oracle(self, task: Any) -> Any:
            if kind == "raises":
                raise RuntimeError("no way known")
            if kind == "hangs":
                never.wait()
            return lambda observation, info: 1 / 0

    lab = open_lab(env=Poor())
    try:
        table = trainer(lab).open_sealed()
    finally:
        never.set()
    rows = {row["backbone"]: row["solved"] for row in table if row["harness"] == "none"}
    assert rows == {"null agent": 0, "first option": 0} | ({"oracle": 0} if kind == "plays badly" else {})


def test_nothing_is_opened_before_what_can_fail_is_checked(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    with pytest.raises(ConfigError, match="llm must be"):
        trainer(lab).open_sealed([object()])  # type: ignore[list-item]
    assert len(lab.openings()) == 0
