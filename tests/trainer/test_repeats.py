"""With repeats, every count is of tasks, and every place that shows one says the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harnesslab as hl
from harnesslab.analysis.show import verdict_html
from harnesslab.llm import Completion
from harnesslab.rollout.progress import Bar
from harnesslab.rollout.records import Episode, Run
from harnesslab.rollout.tasks import solved_shares, won_tasks
from harnesslab.server.core import overview
from harnesslab.trainer.criterion import PairedTest
from harnesslab.trainer.pairs import Pair
from harnesslab.trainer.report import result_row
from tests.trainer.test_trainer import trainer
from tests.worlds import Corridor, CorridorWorld

HINT = "kind: prompt\nparams:\n  text: The door is on the right.\n"


class Fickle:
    """A model that opens the door in some repeats of a task only, by a table (task, repeat) that tells the harness too."""

    identity: ClassVar[dict[str, Any]] = {"model": "fickle"}
    constrains = False

    def __init__(self, table: dict[tuple[str, int], Any]):
        self.table = table

    async def complete(self, request: Any, *, repeat: int = 0) -> Completion:
        text = json.dumps([message["content"] for message in request.messages])
        length = int(re.search(r"Corridor (\d+)", text)[1])  # type: ignore[index]
        side = "after" if "door is on the right" in text else "before"
        return Completion("Action: right" if self.table[side, length, repeat] else "Action: left", model="fickle")


class Named(CorridorWorld):
    """Corridors of one room whose observation is their number."""

    def tasks(self, split: Any) -> list[Any]:
        return [replace(task, options={"length": 1, "number": task.seed}) for task in super().tasks(split)]

    def make(self) -> Any:
        class Room(Corridor):
            def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict]:
                self.number = options["number"]
                return f"Corridor {self.number}.", super().reset(seed=seed, options=options)[1]

            def step(self, action: Any) -> Any:
                return (f"Corridor {self.number}.", *super().step(action)[1:])

        return Room()


def played(before: str, after: str, lab: Any) -> tuple[Any, Any]:
    """The loss and the trainer where task n has the outcomes of the n-th word, one digit a repeat."""
    sides = {"before": before.split(), "after": after.split()}
    repeats = len(sides["before"][0])
    table = {
        (side, n, repeat): words[n][repeat] == "1"
        for side, words in sides.items()
        for n in range(len(words))
        for repeat in range(repeats)
    }
    made = trainer(lab, HINT, llm=Fickle(table), repeats=repeats, gate=len(sides["before"]), search=1, budget=1)
    return made.evaluate(made.propose(made.diagnose(made.measure()))[0]), made


CASES = [
    ("000 001 011 111", "001 011 011 111", 2, 3, 4),  # one task turns, one repeat more does not turn another
    ("00 01 11 00", "01 11 01 00", 1, 1, 4),  # a tie is not solved
    ("0 1 1 0", "1 1 1 0", 2, 3, 4),
    ("0001 0011 0111 1111", "1000 1100 1110 1111", 2, 2, 4),
]


@pytest.mark.parametrize(("before", "after", "old", "new", "tasks"), CASES)
def test_every_place_counts_tasks(
    open_lab: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    after: str,
    old: int,
    new: int,
    tasks: int,
) -> None:
    notes: list[str] = []
    advance = Bar.advance
    monkeypatch.setattr(Bar, "advance", lambda bar, note="": (notes.append(note), advance(bar, note))[1])
    lab = open_lab(env=Named())
    loss, made = played(before, after, lab)
    verdict = loss.verdict
    assert (len(verdict.solved["baseline"]), len(verdict.solved["candidate"]), verdict.tasks) == (old, new, tasks)
    assert verdict.gain == new - old == sum(f.after - f.before for f in verdict.flips)
    assert f"solved {old} -> {new} of {tasks} tasks" in repr(loss)
    assert f"Solved {old} → {new} of {tasks} tasks." in loss._repr_html_()
    for run, count in ((loss.baseline, old), (loss.measured, new)):
        assert (run.solved, run.tasks, len(run.solved_tasks())) == (count, tasks, count)
        assert (
            f"{count} of {tasks} tasks solved" in repr(run) and f"{count} of {tasks} tasks solved" in run._repr_html_()
        )
        assert ("episodes)" in repr(run).split("\n")[0]) == (len(run) > tasks)
        row = result_row(lab, run, harness="x")
        assert (row["solved"], row["of"]) == (count, tasks) and row["rate"] == round(100 * run.rate, 1)
        again = lab.run(run.id)
        assert (again.solved, again.rate) == (run.solved, run.rate)
    assert f"baseline: {old} of {tasks} tasks solved" in notes and f"candidate: {new} of {tasks} tasks solved" in notes
    loss.decide("promote", "for the curve", "me")
    loss.backward()
    made.optimizer.step()
    curve = lab.curve()[0]
    assert (curve["baseline"], curve["solved"], curve["tasks"], curve["gain"]) == (old, new, tasks, new - old)
    assert lab.log()[0]["solved"] == f"{old} -> {new} of {tasks} tasks"

    class Looked:
        repo, runs = lab.repo, lab.runs

    score, _, _ = overview._measured(Looked(), lab.repo, loss.measured.commit)  # type: ignore[arg-type]
    assert score is not None
    assert score.model_dump() == {"solved": new, "total": tasks, "split": "gate"}


def test_the_probe_counts_tasks_that_turn(open_lab: Callable[..., Any]) -> None:
    flaky = {("before", n, repeat): repeat % 3 == 0 for n in range(8) for repeat in range(99)}
    made = trainer(open_lab(env=Named()), llm=Fickle(flaky), repeats=3, budget=1)
    found = made.probe()
    assert (found.tasks, found.episodes, found.flips, found.minimum) == (8, 24, 0, 5)
    assert "A/A on 8 tasks (24 episodes): 0 flipped" in repr(found) and "a net gain of 5 tasks or more" in repr(found)


@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_tables_say_how_repeats_count(open_lab: Callable[..., Any], repeats: int) -> None:
    always = {("before", n, repeat): True for n in range(8) for repeat in range(3)}
    made = trainer(open_lab(env=Named()), llm=Fickle(always), repeats=repeats, budget=1)
    table = made.open_sealed(controls=[])
    assert (table[0]["solved"], table[0]["of"]) == (8, 8) and "8 tasks" in table.title
    assert (f"with {repeats} repeats" in table.title) == (repeats > 1)
    assert any("more than half" in note and "a tie does not" in note for note in table.notes) == (repeats > 1)


def test_what_could_not_be_scored_is_in_none_of_the_counts(open_lab: Callable[..., Any]) -> None:
    """A task without a score on the candidate's side is neither among the tasks nor among the solved, and is named."""

    class Breaks(Fickle):
        async def complete(self, request: Any, *, repeat: int = 0) -> Completion:
            text = json.dumps([message["content"] for message in request.messages])
            if "Corridor 0." in text and "door is on the right" in text:
                raise RuntimeError("out of memory")
            return await super().complete(request, repeat=repeat)

    table = {(side, n, 0): side == "after" or n == 0 for side in ("before", "after") for n in range(8)}
    lab = open_lab(env=Named())
    made = trainer(lab, HINT, llm=Breaks(table), budget=1, search=1)
    made.criterion = hl.NetSolve()
    loss = made.evaluate(made.propose(made.diagnose(made.measure()))[0])
    verdict = loss.verdict
    assert verdict.tasks == 7 and (len(verdict.solved["baseline"]), len(verdict.solved["candidate"])) == (0, 7)
    assert "not scorable with the candidate: gate-0" in verdict.why
    assert "Solved 0 → 7 of 7 tasks." in verdict_html(verdict.to_json())


outcomes = st.lists(
    st.lists(st.sampled_from(["solved", "failed", "unscorable"]), min_size=1, max_size=5), min_size=0, max_size=8
)


def made_run(table: list[list[str]]) -> Run:
    return Run("r", "c" * 40, "gate", {}, episodes=[
        Episode(f"t{n}", "f", "", repeat=r, solved=o == "solved", status="unscorable" if o == "unscorable" else "finished")
        for n, row in enumerate(table) for r, o in enumerate(row)
    ])  # fmt: skip


@given(outcomes)
def test_the_rule_is_the_majority_of_the_scorable_repeats(table: list[list[str]]) -> None:
    run = made_run(table)
    scorable = [[o for o in row if o != "unscorable"] for row in table]
    assert run.tasks == sum(bool(row) for row in scorable)
    assert run.solved == sum(row.count("solved") > row.count("failed") for row in scorable)
    shares = [row.count("solved") / len(row) for row in scorable if row]
    assert run.rate == pytest.approx(sum(shares) / len(shares) if shares else 0.0)
    assert list(solved_shares(run.episodes).values()) == pytest.approx(shares)


@given(outcomes, st.integers(2, 4))
def test_more_repeats_of_the_same_change_no_count(table: list[list[str]], times: int) -> None:
    one, many = made_run(table), made_run([row * times for row in table])
    assert (one.solved, one.tasks) == (many.solved, many.tasks) and one.rate == pytest.approx(many.rate)


def test_ties_of_even_repeats_are_not_solved() -> None:
    assert won_tasks([("a", True), ("a", False), ("b", True), ("b", True), ("c", False)]) == {"b"}


def pairs(before: str, after: str) -> list[Pair]:
    return [
        Pair(Episode(f"t{n}", "f", "", repeat=r, solved=x == "1"), Episode(f"t{n}", "f", "", repeat=r, solved=y == "1"))
        for n, (b, a) in enumerate(zip(before.split(), after.split(), strict=True))
        for r, (x, y) in enumerate(zip(b, a, strict=True))
    ]


def test_the_paired_test_counts_tasks_and_tests_shares() -> None:
    turned = PairedTest().judge(pairs("000 " * 6, "111 " * 6))
    assert turned.statistics["gained"] == 6 and turned.value == -6 and "6 gained, 0 lost, p" in turned.why
    shifted = PairedTest().judge(pairs("000 " * 6, "001 " * 6))
    assert shifted.statistics["gained"] == 0 and shifted.value == pytest.approx(-2) and not shifted.undecided
    assert "0 gained, 0 lost, +2 tasks in solved shares" in shifted.why
    worse = PairedTest().judge(pairs("011 " * 6, "001 " * 6))
    assert worse.statistics["lost"] == 6 and worse.value > 0
    assert PairedTest().judge(pairs("011 000", "101 000")).value == 1.0


@settings(max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=8), st.integers(2, 3))
def test_repeats_that_agree_gain_and_lose_the_same_tasks(sides: list[tuple[bool, bool]], times: int) -> None:
    def judged(repeats: int) -> Any:
        words = [" ".join(str(int(side[place])) * repeats for side in sides) for place in (0, 1)]
        return PairedTest().judge(pairs(*words))

    one, many = judged(1), judged(times)
    assert (one.statistics["gained"], one.statistics["lost"]) == (many.statistics["gained"], many.statistics["lost"])
    assert one.value == many.value or one.undecided != many.undecided
