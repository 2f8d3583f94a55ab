"""What anybody's plug-in returns is checked: one sentence that names it, a skip in the loop where one proposal is meant."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import (
    BackboneError,
    ConfigError,
    CriterionFault,
    EnvironmentUnavailable,
    EstimatorFault,
    SkippedProposal,
    TrainingStopped,
)
from harnesslab.llm import Completion
from harnesslab.rollout.env import Task, step_budget
from harnesslab.rollout.registry import load_environment
from harnesslab.trainer.criterion import Judgement, hopeless, judge_all
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.proposal import Evidence, Prediction, Proposal, Proposals
from tests.trainer.test_criterion import episode, pairs
from tests.trainer.test_trainer import RIGHT, obedient, trainer
from tests.worlds import CorridorWorld

GOOD = Proposal({"contract/good.yaml": RIGHT}, "contract", "prompt", "contract/good", "Say where the door is.")


class Gives:
    """An estimator that gives whatever it was made with."""

    def __init__(self, given: Any):
        self.given = given

    def propose(self, failures: Any, harness: Any, history: Any = ()) -> Any:
        return self.given


def made(lab: Any, **parts: Any) -> hl.Trainer:
    return hl.Trainer(lab, parts.pop("llm", None) or hl.LLM.scripted(obedient), settings={"progress": False}, **parts)


# -- ranking ------------------------------------------------------------------------------------------


def flipping(name: str, count: int) -> Proposal:
    flips = tuple(f"search-{n}" for n in range(count))
    return replace(GOOD, name=name, changes={f"{name}.yaml": RIGHT + f"# {name}\n"}, prediction=Prediction(flips))


@pytest.mark.parametrize("as_list", [True, False])
def test_best_first_is_by_the_number_that_is_shown(open_lab: Callable[..., Any], as_list: bool) -> None:
    items = [flipping(f"contract/{name}", count) for name, count in (("a", 0), ("b", 3), ("c", 1), ("d", 3), ("e", 0))]
    proposals = made(open_lab(), estimator=Gives(items if as_list else Proposals(items))).propose()
    assert [p.name[-1] for p in proposals] == ["b", "d", "c", "a", "e"]
    shown = [int(line.rpartition(" ")[2]) for line in repr(proposals).split("\n") if "should flip" in line]
    assert shown == [3, 3, 1, 0, 0]


def test_another_ranking_says_so() -> None:
    items = [flipping("contract/a", 0), flipping("contract/b", 3)]
    other = Proposals(items, ranked_by="expected flips")
    assert [p.name for p in other] == ["contract/a", "contract/b"] and "ranked by expected flips" in repr(other)
    assert "ranked by expected flips" in other[:1]._repr_html_() and "ranked" not in repr(Proposals(items))


def test_the_miner_ranks_by_predicted_flips(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    llm = hl.LLM.scripted(lambda messages: "left" if "Room 0" in messages[-1]["content"] else "Action: left")
    for estimator in (hl.MiningEstimator(), hl.MiningEstimator(limit=3)):
        counts = [len(p.prediction.flips) for p in made(lab, llm=llm, estimator=estimator).propose()]
        assert counts and counts == sorted(counts, reverse=True)
    with pytest.raises(ConfigError, match="ranked by predicted flips or expected flips"):
        hl.MiningEstimator(rank="luck")  # type: ignore[arg-type]


# -- estimators ---------------------------------------------------------------------------------------

WRONG: dict[str, dict[str, Any]] = {
    "layer": {"layer": "contracts"},
    "layer's type": {"layer": None},
    "kind": {"kind": ""},
    "name": {"name": " "},
    "about": {"about": b"bytes"},
    "estimator": {"estimator": 7},
    "changes": {"changes": {"contract/good.yaml": 5}},
    "path": {"changes": {"notes.txt": "not a harness file"}},
    "flips as text": {"prediction": Prediction("search-1")},  # type: ignore[arg-type]
    "unknown flips": {"prediction": Prediction(("search-1", "search-99"))},
    "flips twice": {"prediction": Prediction(("search-1", "search-1"))},
    "trigger": {"prediction": Prediction((), 5)},  # type: ignore[arg-type]
    "prediction": {"prediction": {"flips": []}},
    "evidence": {"evidence": ("search-1",)},
    "evidence's step": {"evidence": (Evidence("search-1", None, "first", "x"),)},  # type: ignore[arg-type]
    "evidence's episode": {"evidence": (Evidence("search-1", 0.5, 0, "x"),)},  # type: ignore[arg-type]
    "surrogate": {"about": "\ud800"},
    "surrogate in the evidence": {"evidence": (Evidence("search-1", None, 0, "\ud800"),)},
}


@pytest.mark.parametrize("field", list(WRONG))
def test_a_proposal_with_a_wrong_field_is_refused_and_the_others_are_measured(
    open_lab: Callable[..., Any], field: str
) -> None:
    bad = replace(GOOD, **{"name": "contract/bad", "changes": {"contract/bad.yaml": RIGHT}, **WRONG[field]})
    lab = open_lab()
    training = made(lab, estimator=Gives([bad, GOOD]))
    proposals = training.propose()
    assert [p.name for p in proposals] == ["contract/good"] and len(proposals.refused) == 1
    assert "\n" not in proposals.refused[0][1] and len(proposals.refused[0][1]) > 20
    for loss in training.epochs(1):
        assert loss.proposal.name == "contract/good"
        loss.backward()
        training.optimizer.step()
    assert lab.repo.counts()["promoted"] == 1
    with pytest.raises(EstimatorFault, match=r"Gives\.propose"):
        made(lab, estimator=Gives([bad])).propose()


def test_a_proposal_too_large_for_a_commit_is_skipped(open_lab: Callable[..., Any]) -> None:
    evidence = tuple(Evidence("search-1", None, n, "x" * 1000) for n in range(400))
    huge = replace(GOOD, name="contract/huge", evidence=evidence)
    training = made(open_lab(), estimator=Gives([huge, flipping("contract/other", 0)]))
    with pytest.warns(SkippedProposal, match="contract/huge"):
        losses = [loss.proposal.name for loss in training.epochs(1)]
    assert losses == ["contract/other"]


# -- miners -------------------------------------------------------------------------------------------


def hint(view: Any) -> list[Idea]:
    clue = Clue(view.failed[0], 0, "it went left")
    return [Idea("prompt", "contract", "hint", "A hint.", (Variant({"text": "The door is on the right."}),),
                 ("contract mismatch", "action realization", "residual reasoning"), 0.5, clues=(clue,))]  # fmt: skip


def raises(view: Any) -> Any:
    raise KeyError("tools")


BAD_MINERS: dict[str, Any] = {
    "raises": raises,
    "nothing": lambda view: None,
    "text": lambda view: "idea",
    "numbers": lambda view: [1],
    "label": lambda view: [replace(hint(view)[0], labels=("everything",))],
    "labels as text": lambda view: [replace(hint(view)[0], labels="residual reasoning")],
    "layer": lambda view: [replace(hint(view)[0], layer="prompt")],
    "kind": lambda view: [replace(hint(view)[0], kind="magic")],
    "strength": lambda view: [replace(hint(view)[0], strength=1e9)],
    "strength's type": lambda view: [replace(hint(view)[0], strength="strong")],
    "nan": lambda view: [replace(hint(view)[0], strength=math.nan)],
    "stem": lambda view: [replace(hint(view)[0], stem=None)],
    "about": lambda view: [replace(hint(view)[0], about=None)],
    "variants": lambda view: [replace(hint(view)[0], variants=({"text": "x"},))],
    "params": lambda view: [replace(hint(view)[0], variants=(Variant({"text": object()}),))],
    "clues": lambda view: [replace(hint(view)[0], clues=("it went left",))],
}


@pytest.mark.parametrize("fault", list(BAD_MINERS))
def test_a_bad_miner_is_refused_by_name_and_the_others_go_on(open_lab: Callable[..., Any], fault: str) -> None:
    lab = open_lab()
    both = {"bad": BAD_MINERS[fault], "good": hint}
    proposals = made(lab, estimator=hl.MiningEstimator(miners=both)).propose()
    assert [p.name for p in proposals] == ["contract/hint"]
    assert [name for name, _ in proposals.refused] == ["bad"] and "the miner bad" in proposals.refused[0][1]
    training = made(lab, estimator=hl.MiningEstimator(miners={"bad": BAD_MINERS[fault]}))
    with warnings.catch_warnings(), pytest.raises(TrainingStopped, match="the miner bad"):
        warnings.simplefilter("ignore", SkippedProposal)
        list(training.epochs(2))


# -- criteria -----------------------------------------------------------------------------------------


class Judges:
    name = "Judges"

    def __init__(self, said: Any):
        self.said = said

    def judge(self, pairs: Any) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


SAID = [
    None, -1.0, True, (-1.0, "better"), Judgement(math.nan, "x"), Judgement(-math.inf, "x"), Judgement("-1", "x"),  # type: ignore[arg-type]
    Judgement(-1.0, None), Judgement(-1.0, "x", statistics={"p": object()}), Judgement(-1.0, "x", statistics=5),  # type: ignore[arg-type]
    Judgement(-1.0, "x", statistics={"p": math.nan}), Judgement(True, "x"), ZeroDivisionError("no pairs"),
]  # fmt: skip


@pytest.mark.parametrize("said", SAID, ids=range(len(SAID)))
def test_a_criterion_that_says_anything_else_is_named_and_its_proposals_are_skipped(
    open_lab: Callable[..., Any], said: Any
) -> None:
    for call in (judge_all, lambda criterion, done: hopeless(criterion, done, [episode("x", False)])):
        with pytest.raises(CriterionFault, match=r"Judges\.judge"):
            call(Judges(said), pairs("01 00"))
    lab = open_lab()
    items = [flipping(f"contract/{name}", 0) for name in "abcd"]
    training = made(lab, estimator=Gives(items), criterion=Judges(said))
    with pytest.warns(SkippedProposal, match=r"Judges\.judge"), pytest.raises(TrainingStopped, match="3 proposals"):
        list(training.epochs(4))
    training.criterion = hl.StrictPareto()
    assert len(list(training.epochs(1))) == 1


def test_numbers_of_other_types_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert judge_all(Judges(Judgement(numpy.float64(-1), "x")), pairs("01")).value == -1.0
    assert judge_all(Judges(Judgement(-2, "x")), pairs("01")).value == -2.0
    assert judge_all(Judges(Judgement(math.inf, "x")), pairs("01")).value == math.inf


# -- optimizers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, "yes", 0, 1])
def test_whether_the_baseline_moved_is_read_from_git(open_lab: Callable[..., Any], answer: Any) -> None:
    class Odd(hl.GreedyMonotonic):
        def step(self) -> Any:
            super().step()
            return answer

    training = made(open_lab(), optimizer=Odd())
    assert training.accept(GOOD, reason="sure") is True
    assert training.reject(flipping("contract/a", 0), reason="no") is False


# -- environments -------------------------------------------------------------------------------------

META: list[tuple[str, Any]] = [("version", 3), ("version", ""), ("version", None), ("max_steps", "many"), ("max_steps", 0),
                               ("max_steps", -1), ("max_steps", 2.5), ("max_steps", True)]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), META)
def test_what_an_environment_says_of_itself_is_checked(open_lab: Callable[..., Any], field: str, value: Any) -> None:
    lab = open_lab()
    object.__setattr__(lab.environment, field, value)
    with pytest.raises(EnvironmentUnavailable, match=field):
        trainer(lab).measure()


@pytest.mark.parametrize(
    ("field", "value"), [("family", None), ("seed", "7"), ("seed", 1.5), ("id", 5), ("options", [1])]
)
def test_what_a_task_holds_is_checked(open_lab: Callable[..., Any], field: str, value: Any) -> None:
    class Wrong(CorridorWorld):
        def tasks(self, split: Any) -> list[Task]:
            return [replace(task, **{field: value}) for task in super().tasks(split)]

    lab = open_lab(env=Wrong())
    with pytest.raises(EnvironmentUnavailable, match=f"{field}"):
        trainer(lab).measure()


def broken() -> Any:
    raise ValueError("no display")


def test_an_environment_that_cannot_be_made_is_a_sentence() -> None:
    with pytest.raises(EnvironmentUnavailable, match="could not be created: ValueError: no display"):
        load_environment(f"{__name__}:broken")
    assert step_budget(CorridorWorld()) == 5


# -- backbones ----------------------------------------------------------------------------------------


class Says:
    constrains = False

    def __init__(self, identity: Any):
        self._identity = identity

    @property
    def identity(self) -> Any:
        if isinstance(self._identity, Exception):
            raise self._identity
        return self._identity

    async def complete(self, request: Any, *, repeat: int = 0) -> Completion:
        return Completion(obedient(request.messages))


IDENTITIES: list[Any] = [
    None, "gpt", {}, {"model": ""}, {"model": None}, {"model": 5}, {"name": "m"}, {"model": "m", "t": math.nan},
    {"model": "m", "x": object()}, {"model": "m", ("a",): 1}, ["model"], AttributeError("model"),
]  # fmt: skip


@pytest.mark.parametrize("identity", IDENTITIES, ids=range(len(IDENTITIES)))
def test_what_a_backbone_says_that_it_is_is_checked(open_lab: Callable[..., Any], identity: Any) -> None:
    lab = open_lab()
    training = made(lab, llm=Says(identity), estimator=Gives([GOOD]))
    for call in (
        training.measure,
        training.open_sealed,
        lambda: training.evaluate(GOOD),
        lambda: list(training.epochs(1)),
    ):
        with pytest.raises(BackboneError, match="the identity of Says"):
            call()
    assert lab.runs.runs() == [] and len(lab.openings()) == 0
    row = hl.transfer(lab, [Says(identity)], progress=False)[0]
    assert "the identity of Says" in row["problem"] and row["model"] == "Says"
