"""Replay: the contexts of the record are those of the episode, and hits say what would have changed."""

from __future__ import annotations

from harnesslab.harness import load_harness
from harnesslab.trainer.estimators.mining.replay import Replay, contexts
from tests.trainer.trajectories import episode

EMPTY = load_harness({"harness.toml": b'name = "demo"\n'})
REWRITE = "kind: rewrite\nparams: {pattern: '^grab', replacement: take}\n"


def test_a_context_holds_what_was_seen_before_the_step() -> None:
    made = episode("secret task", ("a", "one"), ("b", "two"), (None, "three"), budget=9)
    first, second, third = contexts(made, "text", None)
    assert (first.step, first.observation, first.history) == (0, "start", ())
    assert (second.observation, second.history[0].action, second.history[0].result) == ("one", "a", "one")
    assert (third.steps_left, len(third.history)) == (7, 2)
    assert "secret" not in repr(third)


def test_a_hit_says_what_would_change() -> None:
    hits = Replay(EMPTY, [episode("a", ("look", "x"), ("grab mug", "y"))], None).hits("action/r.yaml", REWRITE)
    assert [(hit.step.index, hit.what, hit.changes) for hit in hits] == [(1, "grab mug would become take mug", True)]


def test_a_shaping_intervention_hits_where_its_trigger_holds() -> None:
    made = episode("a", ("look", "x"), (None, "y"), ("look", "z"))
    hits = Replay(EMPTY, [made], None).hits("contract/r.yaml", "kind: reminder\nwhen: {last_invalid: true}\n")
    assert [(hit.step.index, hit.changes) for hit in hits] == [(2, False)]


def test_what_is_in_the_harness_already_is_replaced_not_doubled() -> None:
    harness = load_harness({**EMPTY.files, "action/r.yaml": REWRITE.encode()})
    other = REWRITE.replace("take", "seize")
    hits = Replay(harness, [episode("a", ("grab mug", "y"))], None).hits("action/r.yaml", other)
    assert [hit.what for hit in hits] == ["grab mug would become seize mug"]
    assert harness["action/r"].params.replacement == "take"  # type: ignore[attr-defined]


def test_an_intervention_that_fails_on_the_record_has_no_hits() -> None:
    slow = "kind: rewrite\nparams: {pattern: '(a|a|b)*c', replacement: x}\n"
    made = episode("a", ("ab" * 4000, "y"))
    assert Replay(EMPTY, [made], None).hits("action/r.yaml", slow) == []
