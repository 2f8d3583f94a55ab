"""The no-repeat kind."""

from __future__ import annotations

from typing import Any

from harnesslab.harness import Turn

BOTH = {"action/c.yaml": "kind: constrain\n", "regulation/n.yaml": "kind: no_repeat\nparams: {allow: ^wait$}\n"}


def test_choices_lose_what_was_tried_here(pipeline: Any, context: Any, history: Any) -> None:
    now = context(
        "room", admissible=("a", "b", "wait"), history=history(("room", "A"), ("hall", "b"), ("room", "wait"))
    )
    assert pipeline(BOTH).begin(now, True).draft.choices == ("b", "wait")


def test_choices_are_never_emptied(pipeline: Any, context: Any, history: Any) -> None:
    now = context("room", admissible=("a",), history=history(("room", "a")))
    prepared = pipeline(BOTH).begin(now, True)
    assert prepared.draft.choices == ("a",) and "regulation/n" not in prepared.fired


def test_withholds_without_choices_but_not_for_ever(pipeline: Any, context: Any, reply: Any) -> None:
    pipe = pipeline("kind: no_repeat\nparams: {limit: 2, message: Again?}\n", "regulation")

    def turn(fired: tuple[str, ...] = ()) -> Turn:
        return Turn("room", "", "a", "Again?", bool(fired), fired)

    first = pipe.choose(context("room", history=(turn(),)), [reply("Action: a")])
    assert first.decision.withhold and first.decision.note == "Again?"
    # What it said itself is no new situation.
    second = pipe.choose(context("Again?", history=(turn(), turn(("regulation/it",)))), [reply("Action: a")])
    assert second.decision.withhold
    past = (turn(), turn(("regulation/it",)), turn(("regulation/it",)))
    assert pipe.choose(context("Again?", history=past), [reply("Action: a")]).decision is None
    assert pipe.choose(context("room", history=(turn(),)), [reply("Action: b")]).decision is None


def test_the_last_thing_left_may_be_done(pipeline: Any, context: Any, history: Any, reply: Any) -> None:
    pipe = pipeline("kind: no_repeat\n", "regulation")
    now = context("room", admissible=("a",), history=history(("room", "a")))
    assert pipe.choose(now, [reply("Action: a")]).decision is None
