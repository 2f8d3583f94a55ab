"""Screening: many proposals at once, their effects, one bundle, one verdict; by hand, in the loop, and after a kill."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harnesslab as hl
from harnesslab.errors import BudgetExceeded, ConfigError, OrderError
from harnesslab.rollout.env import Task
from harnesslab.trainer.design import bundle_of, exclusive, fold_over, halves
from harnesslab.trainer.panel import in_turn
from harnesslab.trainer.proposal import Proposal
from tests.trainer.test_trainer import RIGHT, WRONG, obedient
from tests.worlds import CorridorWorld

HINT = "kind: prompt\nabout: {0}\nparams:\n  text: {0}\n"


def proposal(name: str, *paths: str, text: str = "x") -> Proposal:
    return Proposal(dict.fromkeys(paths or (f"contract/{name}.yaml",), text), "contract", "prompt", name, name)


NAMES = st.lists(st.sampled_from("abcdefghij"), max_size=10, unique=True)


@given(NAMES, st.integers(0, 40), st.integers(0, 5), st.integers(0, 5), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_a_design_is_the_same_for_the_same_seeds_and_folds_over(
    names: list[str], count: int, seed: int, number: int, dice: random.Random
) -> None:
    tasks = [f"t{n}" for n in range(count)]
    given_ = [proposal(name) for name in names]
    design = fold_over(tasks, given_, seed=seed, number=number)
    assert list(design) == tasks
    assert design == fold_over(tasks, dice.sample(given_, len(given_)), seed=seed, number=number)
    for first, second in zip(tasks[::2], tasks[1::2], strict=False):
        assert {p.name for p in design[first]} ^ {p.name for p in design[second]} == set(names)
        assert not {p.name for p in design[first]} & {p.name for p in design[second]}


@given(st.lists(st.sets(st.sampled_from("abcd"), min_size=1, max_size=2), max_size=8), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_exclusive_proposals_are_never_on_together(files: list[set[str]], seed: int) -> None:
    some = [proposal(f"p{n}", *(f"action/{f}.yaml" for f in sorted(own)), text=str(n)) for n, own in enumerate(files)]
    for side in halves(some, random.Random(seed)):
        assert not any(exclusive(one, other) for one in side for other in side if one is not other)


def test_each_proposal_is_on_in_about_half_of_the_episodes_and_sizes_vary() -> None:
    some = [proposal(name) for name in "abcdef"]
    design = fold_over([f"t{n}" for n in range(400)], some, seed=0, number=0)
    for one in some:
        assert 150 < sum(one in on for on in design.values()) < 250
    assert {len(on) for on in design.values()} >= {1, 2, 3, 4, 5}, "or the sum of all effects could not be told"
    assert design != fold_over(list(design), some, seed=1, number=0) != fold_over(list(design), some, seed=1, number=1)


def test_tasks_are_gone_through_in_turn() -> None:
    assert [in_turn("abcde", 2, n) for n in range(3)] == [["a", "b"], ["c", "d"], ["e", "a"]]
    assert in_turn("abc", 24, 7) and sorted(in_turn("abc", 24, 7)) == ["a", "b", "c"]


def test_a_bundle_refuses_what_excludes_each_other() -> None:
    with pytest.raises(ConfigError, match="same file"):
        bundle_of([proposal("a"), proposal("b", "contract/a.yaml")])
    with pytest.raises(ConfigError, match="at least one"):
        bundle_of([])
    assert bundle_of([proposal("a")]) == proposal("a")
    both = bundle_of([proposal("a"), proposal("b")])
    assert Proposal.from_json(both.to_json()) == both and both.parts == (proposal("a"), proposal("b"))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"proposals": 0}, "proposals"),
        ({"tasks": 1}, "tasks"),
        ({"helps": 2}, "helps"),
        ({"seed": "x"}, "seed"),
        ({"surplus": -1}, "surplus"),
        ({"surplus": math.nan}, "surplus"),
    ],
)
def test_wrong_settings_are_named(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        hl.Screening(**arguments)


def screened(lab: Any, *texts: str, llm: Any = None, design: Any = None, **settings: Any) -> hl.Trainer:
    estimator = hl.ManualEstimator(scan=False)
    for number, text in enumerate(texts):
        estimator.add_text(f"contract/hint{number}.yaml", text)
    return hl.Trainer(
        lab,
        llm or hl.LLM.scripted(obedient),
        estimator,
        criterion=hl.AnytimeTest(),
        design=design or hl.Screening(tasks=8),
        settings={"progress": False, **settings},
    )


NEUTRAL = [HINT.format(text) for text in ("Be kind.", "Be brief.", "Think first.")]


def test_by_hand_screen_look_bundle_evaluate(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = screened(lab, RIGHT, *NEUTRAL)
    made.screen()
    for _ in range(4):
        effects = made.screen()
    assert effects[0].name == "contract/hint0" and effects[0].helps > 0.9 and 40 < effects.episodes <= 8 * 6
    assert effects["contract/hint0"].fired == effects["contract/hint0"].on > 10
    assert "contract/hint0" in effects._repr_html_() and effects.plot() is not None
    assert {run["purpose"] for run in lab.runs.runs(split="search")} == {"screen", "measure"}
    row = lab.runs.runs(split="search", purpose="screen")[0]
    failures = made.diagnose(lab.run(row["id"]))
    assert len(failures.run) == 8 and 0 < failures.run.solved < 8
    bundle = effects.bundle("contract/hint1", without=["contract/hint2", "contract/hint3"])
    assert bundle is not None and {part.name for part in bundle.parts} == {"contract/hint0", "contract/hint1"}
    with pytest.raises(ConfigError, match="nobody"):
        effects.bundle("nobody")
    start = lab.repo.baseline()
    loss = made.evaluate(bundle)
    assert float(loss) < 0 and loss.verdict.baseline == start
    loss.backward()
    grad = made.harness.grad
    assert grad is not None and grad.verdict is loss.verdict and grad.effects is effects
    assert made.optimizer.step() is True
    log = lab.repo.history()
    assert [entry.subject.partition(":")[0] for entry in log][:2] == ["contract/hint0", "contract/hint1"]
    assert log[2].commit == start, "one commit for each intervention, and a fast-forward"
    assert set(lab.repo.files(log[1].commit)) - set(lab.repo.files(start)) == {"contract/hint1.yaml"}
    made.undo()
    assert lab.repo.baseline() == start


def test_a_rejected_bundle_is_one_rejected_ref(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = screened(lab, WRONG, *NEUTRAL)
    start = lab.repo.baseline()
    loss = made.evaluate(bundle_of(made.propose()[:3]))
    loss.backward()
    made.reject(loss, "no")
    rows = lab.repo.candidates().rows
    assert [(row.state, row.parent) for row in rows] == [("rejected", start)] and lab.repo.baseline() == start
    assert [part["name"] for part in rows[0].meta["parts"]] == [part.name for part in loss.proposal.parts]


def test_the_loop_finds_what_helps_and_ends(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = screened(lab, WRONG, RIGHT, *NEUTRAL)
    losses = []
    for loss in made.epochs(6):
        loss.backward()
        losses.append((made.harness.grad.effects is not None, made.optimizer.step()))
    assert losses and losses[0][0] and any(moved for _, moved in losses)
    files = lab.repo.files(lab.repo.baseline())
    assert "contract/hint1.yaml" in files and "contract/hint0.yaml" not in files
    with pytest.raises(OrderError):
        next(made.resume())


@pytest.mark.parametrize(("surplus", "criterion", "rounds"), [
    (0, hl.AnytimeTest(), 1), (1e6, hl.AnytimeTest(), 3), (1e6, hl.PairedTest(), 1),
])  # fmt: skip
def test_a_bundle_that_promises_too_little_waits_for_more_rounds(
    open_lab: Callable[..., Any], surplus: float, criterion: Any, rounds: int
) -> None:
    made = screened(open_lab(), RIGHT, design=hl.Screening(tasks=8, patience=3, surplus=surplus, helps=0.5))
    made.criterion = criterion
    next(iter(made.epochs(1)))
    assert len(made.lab.runs.runs(split="search", purpose="screen")) == rounds
    effects = made.screened
    assert effects is not None and effects.predicted(made.propose()[0]) == pytest.approx(effects[0].points)


def test_the_same_seeds_give_the_same_rounds(open_lab: Callable[..., Any]) -> None:
    played = []
    for name in ("one", "two"):
        made = screened(open_lab(name), RIGHT, *NEUTRAL)
        made.screen()
        effects = made.screen()
        runs = made.lab.runs.runs(split="search", purpose="screen")
        played.append(([run["meta"]["on"] for run in runs], effects.to_json()))
    assert played[0] == played[1]


def test_a_round_goes_on_where_it_was_interrupted(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = screened(lab, RIGHT, *NEUTRAL)
    made.measure()
    made.meter.budget = hl.Budget(calls=made.meter.usage().calls + 12)
    with pytest.raises(BudgetExceeded):
        made.screen()
    half = lab.runs.runs(split="search", purpose="screen")
    done = {row["task_id"]: row["id"] for row in lab.runs.episodes(half[0]["id"])}
    assert 0 < len(done) < 8
    made.meter.budget = hl.Budget()
    again = screened(lab, RIGHT, *NEUTRAL, WRONG)
    again.screen()
    runs = lab.runs.runs(split="search", purpose="screen")
    assert [run["id"] for run in runs] == [half[0]["id"]], "the same round, with the proposals that it began with"
    after = {row["task_id"]: row["id"] for row in lab.runs.episodes(runs[0]["id"])}
    assert len(after) == 8 and done.items() <= after.items(), "nothing is played twice"


def test_the_loop_resumes_inside_a_round(open_lab: Callable[..., Any]) -> None:
    """Interrupted anywhere, it plays the same episodes and comes to the same verdict as without."""

    def verdicts(made: hl.Trainer, losses: Any) -> list[tuple[Any, ...]]:
        found = []
        for loss in losses:
            loss.backward()
            found.append((loss.verdict.decision, loss.verdict.counts, loss.proposal.content))
            made.optimizer.step()
        return found

    def rounds(lab: Any) -> list[Any]:
        runs = lab.runs.runs(split="search", purpose="screen")
        return [(run["meta"]["on"], len(lab.runs.episodes(run["id"]))) for run in runs]

    whole = screened(open_lab("whole"), WRONG, RIGHT, *NEUTRAL)
    wanted = verdicts(whole, whole.epochs(3))
    lab = open_lab("halves")
    first = screened(lab, WRONG, RIGHT, *NEUTRAL)
    first.measure()
    first.meter.budget = hl.Budget(calls=first.meter.usage().calls + 12)
    with pytest.raises(BudgetExceeded):
        next(iter(first.epochs(3)))
    assert [count for _, count in rounds(lab)] != [8], "it stopped inside the round"
    second = screened(lab, WRONG, RIGHT, *NEUTRAL)
    second.meter.budget = hl.Budget()
    assert verdicts(second, second.resume()) == wanted
    assert rounds(lab) == rounds(whole.lab)


def test_where_nothing_is_solved_progress_counts(open_lab: Callable[..., Any]) -> None:
    """Two steps are too few for any door of the long corridors, but the right hint comes closer to it."""

    class Deep(CorridorWorld):
        def tasks(self, split: Any) -> list[Task]:
            return [Task(f"{split}-{n}", split, "f", n, {"length": 4}) for n in range(12)]

    made = screened(open_lab(env=Deep()), WRONG, RIGHT, *NEUTRAL, design=hl.Screening(tasks=12), budget=2)
    for _ in range(3):
        effects = made.screen()
    assert effects.outcome == "progress" and "no episode was solved" in repr(effects)
    assert effects[0].name == "contract/hint1" and effects[0].helps > 0.9 and effects[0].points > 0
    bundle = effects.bundle()
    assert bundle is not None and "contract/hint1.yaml" in bundle.changes


def test_an_episode_that_would_be_the_same_counts_once(open_lab: Callable[..., Any]) -> None:
    made = screened(open_lab(), RIGHT)
    many = [made.screen() for _ in range(6)]
    assert many[-1].episodes <= 2 * 8, "eight tasks, with and without"
    assert many[-1][0].error == pytest.approx(many[3][0].error, rel=0.35), "no certainty from playing the same again"


def test_the_miner_offers_as_many_as_are_screened() -> None:
    assert hl.MiningEstimator().offering(24).limit == 24 and hl.MiningEstimator().limit == 8
    assert hl.MiningEstimator(limit=3).offering(24).limit == 3


def test_a_design_that_is_none_is_named(open_lab: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="design"):
        hl.Trainer(open_lab(), hl.LLM.scripted(obedient), design="screening")  # type: ignore[arg-type]
    made = screened(open_lab("other"), RIGHT)
    with pytest.raises(ConfigError, match="Proposal"):
        made.screen(["x"])  # type: ignore[list-item]
