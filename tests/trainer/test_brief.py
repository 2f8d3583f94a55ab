"""What an estimator is given and told: all of the search split, and nothing of the others."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import BudgetExceeded, ConfigError, EstimatorFault, SkippedProposal, TrainingStopped
from harnesslab.rollout.env import Split, Task
from harnesslab.trainer.estimators.brief import MEMO_LINES
from tests.trainer.test_trainer import RIGHT, WRONG, obedient
from tests.worlds import CorridorWorld

MARK = "zanzibar"


class Marked(CorridorWorld):
    """A corridor whose gate, sealed split and private info all carry a marker."""

    def tasks(self, split: Split) -> list[Task]:
        extra = {} if split == "search" else {"secret": f"{MARK}-{split}"}
        name = split if split == "search" else f"{MARK}-{split}"
        return [
            Task(f"{name}-{n}", split, ("odd", "even")[n % 2], seed=n, options={"length": 1 + n % 4, **extra})
            for n in range(8)
        ]

    def make(self) -> Any:
        env = super().make()
        reset, step = env.reset, env.step

        def marked(*, seed: int | None = None, options: Mapping[str, Any] | None = None) -> Any:
            seen, info = reset(seed=seed, options=options)
            env.secret = (options or {}).get("secret")  # type: ignore[attr-defined]
            info["private"]["gold"] = f"{MARK} gold"
            if env.secret:  # type: ignore[attr-defined]
                info["public"]["instruction"] += f" This one is {env.secret}."  # type: ignore[attr-defined]
            return seen, info

        def stepped(action: Any) -> Any:
            seen, reward, done, cut, info = step(action)
            info["private"]["gold"] = f"{MARK} gold"
            if env.secret:  # type: ignore[attr-defined]
                info["public"]["instruction"] += f" This one is {env.secret}."  # type: ignore[attr-defined]
            return seen, reward, done, cut, info

        env.reset, env.step = marked, stepped  # type: ignore[method-assign]
        return env


def reachable(root: Any) -> Iterator[Any]:
    """Everything that attributes, items, slots, closures, bound methods and the collector lead to; modules and classes end the walk."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        thing = stack.pop()
        if id(thing) in seen or isinstance(thing, type | type(sys)):
            continue
        seen.add(id(thing))
        yield thing
        if isinstance(thing, Mapping):
            stack += [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset):
            stack += list(thing)
        elif not isinstance(thing, str | bytes | int | float):
            stack += list(getattr(thing, "__dict__", {}).values())
            slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
            stack += [getattr(thing, name) for name in slots if isinstance(name, str) and hasattr(thing, name)]
            if isinstance(thing, FunctionType):  # not its globals, which lead everywhere
                stack += [cell.cell_contents for cell in thing.__closure__ or ()]
            else:
                stack += gc.get_referents(thing)


class Curious:
    """Proposes what it was given, writes a memo, and keeps every brief."""

    def __init__(self, *texts: str, memo: str = "bottleneck: direction"):
        self.texts, self.memo = list(texts), memo
        self.briefs: list[hl.Brief] = []
        self.remembered: list[hl.Brief] = []

    def diagnose(self, brief: hl.Brief) -> str:
        return f"{len(brief.failures)} failed"

    def propose(self, failures: Any, harness: Any, history: Any = (), brief: Any = None) -> list[hl.Proposal]:
        assert failures is brief.failures and harness is brief.harness and history is brief.history
        self.briefs.append(brief)
        return [proposed(n, text) for n, text in enumerate(self.texts)]

    def remember(self, brief: hl.Brief) -> str:
        self.remembered.append(brief)
        return self.memo


def proposed(number: int, text: str) -> hl.Proposal:
    name = f"contract/hint{number}"
    return hl.Proposal({f"{name}.yaml": text}, "contract", "prompt", name, "Say where the door is.")


def trained(lab: Any, estimator: Any, epochs: int = 2, **settings: Any) -> hl.Trainer:
    made = hl.Trainer(lab, hl.LLM.scripted(obedient), estimator, settings={"progress": False, **settings})
    for loss in made.epochs(epochs):
        loss.backward()
        made.optimizer.step()
    return made


def test_it_is_told_everything_of_the_search_split(open_lab: Callable[..., Any]) -> None:
    lab, estimator = open_lab(), Curious(WRONG, RIGHT)
    made = trained(lab, estimator)
    (brief,) = estimator.briefs
    assert [c.cause for c in brief.failures.clusters] and brief.diagnosis == "8 failed"
    step = brief.failures.run.episodes[0].steps[0]
    assert step.request["messages"][0]["role"] == "system" and step.replies[0]["text"] == "Action: left"
    assert {kind["kind"] for kind in brief.kinds} >= {"prompt", "snap", "loop_breaker"}
    assert all(kind["params"]["type"] == "object" for kind in brief.kinds)
    assert 0 < brief.left <= made.settings.proposer_deadline

    made.propose()
    brief = estimator.briefs[-1]
    rejected, promoted = brief.history
    assert (rejected["status"], promoted["status"]) == ("rejected", "promoted")
    assert rejected["changes"] == {"contract/hint0.yaml": WRONG} and promoted["decided_by"] == "criterion"
    assert promoted["solved"] == (0, 8, 8) and promoted["flips"] == {"gained": 8, "lost": 0, "incidental": 0}
    assert promoted["fired"] == 1.0 and "episodes" not in rejected
    # The promoted one is the baseline now, and was played on the search split.
    assert {e.task_id for e in promoted["episodes"]} == {f"search-{n}" for n in range(8)}
    assert promoted["episodes"][0].steps[0].fired == ("contract/hint1",)
    assert brief.memo == "bottleneck: direction" == made.memo


def test_nothing_of_the_gate_the_sealed_split_or_private_info_is_within_reach(open_lab: Callable[..., Any]) -> None:
    lab, estimator = open_lab(env=Marked()), Curious(WRONG, RIGHT)
    made = trained(lab, estimator)
    made.open_sealed()
    made.reject(made.evaluate(proposed(7, WRONG)), reason=f"it loses {MARK}-gate-3")
    made.memo = f"look at {MARK}-gate-1"
    made.send_back(proposed(8, WRONG), f"as in {MARK}-sealed-1")
    made.propose()
    assert len(estimator.briefs[-1].history) == 3 and estimator.briefs[-1].comments
    for brief in [*estimator.briefs, *estimator.remembered]:
        texts = [thing for thing in reachable(brief) if isinstance(thing, str | bytes)]
        assert len(texts) > 200
        assert not [
            text for text in texts if MARK in (text if isinstance(text, str) else text.decode("utf-8", "replace"))
        ]


def test_the_walk_would_find_a_marker(open_lab: Callable[..., Any]) -> None:
    lab = open_lab(env=Marked())
    failures = hl.Trainer(lab, hl.LLM.scripted(obedient), settings={"progress": False}).diagnose()
    assert failures.trainer is not None
    assert any(isinstance(thing, Marked) for thing in reachable(failures))


def test_the_memo_is_cut_survives_and_is_written_after_each_verdict(open_lab: Callable[..., Any]) -> None:
    lab, estimator = open_lab(), Curious(WRONG, RIGHT, memo="\n".join(map(str, range(400))))
    made = trained(lab, estimator)
    assert made.memo.split("\n") == [str(n) for n in range(MEMO_LINES)]
    assert len(estimator.remembered) == 3 and len(estimator.remembered[-1].history) == 2
    again = hl.Trainer(lab, hl.LLM.null(), Curious(), settings={"progress": False})
    assert again.memo == made.memo
    with pytest.raises(ConfigError, match="memo is text"):
        again.memo = 3  # type: ignore[assignment]


def test_an_estimator_of_three_parameters_still_works(open_lab: Callable[..., Any]) -> None:
    class Plain:
        def propose(self, failures: Any, harness: Any, history: Any = ()) -> Any:
            return [proposed(0, RIGHT)] if not history else []

    assert trained(open_lab(), Plain()).lab.repo.history()[0].subject.startswith("contract/hint0")


@pytest.mark.parametrize(
    ("method", "answer"),
    [("diagnose", 3), ("diagnose", KeyError("x")), ("remember", b"x"), ("remember", KeyError("x"))],
)
def test_a_wrong_optional_method_is_named(open_lab: Callable[..., Any], method: str, answer: Any) -> None:
    estimator = Curious(RIGHT)

    def wrong(brief: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    setattr(estimator, method, wrong)
    made = hl.Trainer(open_lab(), hl.LLM.scripted(obedient), estimator, settings={"progress": False})
    if method == "diagnose":
        with pytest.raises(EstimatorFault, match=r"Curious\.diagnose"):
            made.propose()
    else:
        with pytest.warns(SkippedProposal, match=r"Curious\.remember"):
            assert len(made.propose()) == 1


def test_what_was_sent_back_is_told_and_not_offered_again(open_lab: Callable[..., Any]) -> None:
    estimator = Curious(WRONG, RIGHT)
    made = hl.Trainer(open_lab(), hl.LLM.scripted(obedient), estimator, settings={"progress": False})
    made.send_back(made.propose()[0], "other layer", who="Ada")
    again = made.propose()
    assert [p.name for p in again] == ["contract/hint1"] and again.refused == (
        ("contract/hint0", "sent back: other layer"),
    )
    (comment,) = estimator.briefs[-1].comments
    assert (comment.name, comment.comment, comment.who) == ("contract/hint0", "other layer", "Ada")
    for bad in ("", "  ", None):
        with pytest.raises(ConfigError, match="needs a comment"):
            made.send_back(again[0], bad)  # type: ignore[arg-type]


def test_its_spending_is_on_the_meter_and_stopped_by_it(open_lab: Callable[..., Any]) -> None:
    class Asks:
        at_most = {"calls": 3, "tokens": None, "seconds": 60.0}  # noqa: RUF012

        def propose(self, failures: Any, harness: Any, history: Any = (), brief: Any = None) -> Any:
            brief.meter.charge(calls=2, prompt_tokens=100, completion_tokens=10, seconds=1.5, money=0.25)
            brief.meter.check()
            assert brief.meter.used["money"] == 0.25
            return [proposed(0, RIGHT)]

    made = hl.Trainer(open_lab(), hl.LLM.scripted(obedient), Asks(), settings={"progress": False})
    made.propose()
    used = made.meter.usage("proposer")
    assert (used.calls, used.tokens, used.money) == (2, 110, 0.25)
    agent, proposer = made.preview(epochs=4)
    assert agent["episodes"] > 0 and (proposer["calls"], proposer["tokens"], proposer["seconds"]) == (12, None, 240.0)
    made.meter.budget = hl.Budget(money=0.3)
    with pytest.raises(BudgetExceeded):
        made.propose()


def test_a_skip_stops_the_loop_after_two_and_nothing_is_lost(open_lab: Callable[..., Any]) -> None:
    class Broken:
        asked = 0

        def propose(self, failures: Any, harness: Any, history: Any = ()) -> Any:
            self.asked += 1
            raise hl.errors.ProposerSkip("the agent changed nothing", cause="no_change")

    estimator = Broken()
    made = hl.Trainer(open_lab(), hl.LLM.scripted(obedient), estimator, settings={"progress": False})
    with (
        pytest.warns(SkippedProposal, match="changed nothing"),
        pytest.raises(TrainingStopped, match="2 times in a row"),
    ):
        next(made.epochs(3))
    assert estimator.asked == 2
    made.estimator = Curious(RIGHT)
    assert float(next(made.resume())) < 0


def test_rules_come_from_the_lab_s_folder(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab, estimator = open_lab(), Curious()
    made = hl.Trainer(lab, hl.LLM.scripted(obedient), estimator, settings={"progress": False})
    (lab.path / "program.md").write_text("Only contracts, please.", encoding="utf-8")
    made.propose()
    assert estimator.briefs[-1].rules == "Only contracts, please."
    secret = tmp_path / "secret"
    secret.write_text("s3cret", encoding="utf-8")
    (lab.path / "program.md").unlink()
    (lab.path / "program.md").symlink_to(secret)
    made.propose()
    assert estimator.briefs[-1].rules == "" and estimator.briefs[-1].deadline > time.monotonic()
