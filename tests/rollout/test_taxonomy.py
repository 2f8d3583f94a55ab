"""The label of a failed episode: the four of them, their order, and that no record breaks the diagnosis."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.harness.protocol import parse
from harnesslab.rollout.records import Episode, Step
from harnesslab.rollout.taxonomy import LABELS, action_text, bare_result, diagnose, is_error, nearest, signature

Act = str | dict | None


def make_step(index: int, action: Act, result: str, **fields: object) -> Step:
    """One step; an action of ``None`` was never read."""
    values: dict = {
        "observation": f"state {index}",
        "request": {},
        "replies": [],
        "raw": str(action),
        "executed": action is not None,
        "problem": "",
        "invalid": action is None,
        "reward": 0.0,
    }
    return Step(index=index, action=action, result=result, **(values | fields))


def make_episode(*moves: tuple, budget: int = 20, **fields: object) -> Episode:
    """An unsolved episode of (action, result) or (action, result, fields) moves, each observing the last result."""
    episode = Episode(task_id="t1", family="f", instruction="Put the mug on the shelf.", budget=budget, **fields)
    observation = "start"
    for index, (action, result, *more) in enumerate(moves):
        extra = more[0] if more else {}
        episode.steps.append(make_step(index, action, result, **({"observation": observation} | extra)))
        observation = result
    episode.length = len(episode.steps)
    return episode


def test_no_action_in_the_reply() -> None:
    found = diagnose(make_episode(("look", "a room"), (None, "say Action: ..."), (None, "say Action: ...")))
    assert (found.label, found.cause) == ("action realization", "no action in the reply")
    assert (found.step, found.steps) == (1, (1, 2))


def test_a_cut_reply_is_truncated_and_the_remedy_is_named() -> None:
    spent = {"raw": "", "replies": [{"text": "", "finish_reason": "length"}], "request": {"max_tokens": 64}}
    found = diagnose(make_episode((None, "say Action: ...", spent)))
    assert (found.label, found.cause) == ("action realization", "truncated")
    assert "raise max_tokens (it was 64)" in found.reason


def test_a_reply_of_several_actions_is_ambiguous() -> None:
    problem = parse("Action: a\nAction: b", (), "text").problem
    found = diagnose(make_episode((None, "one only", {"raw": "Action: a\nAction: b", "problem": problem})))
    assert found.cause == "several actions in one reply"


def test_parallel_calls_that_were_left_out_are_named() -> None:
    calls = [{"name": "look", "arguments": {}}, {"function": {"name": "take", "arguments": "{}"}}]
    step = {"raw": "", "replies": [{"text": "", "tool_calls": calls}]}
    found = diagnose(make_episode(({"name": "look", "arguments": {}}, "a room", step)))
    assert found.cause == "parallel calls, only the first was executed" and "take" in found.reason
    same = {"raw": "", "replies": [{"text": "", "tool_calls": calls[:1] * 2}]}
    assert diagnose(make_episode(({"name": "look", "arguments": {}}, "a room", same))).cause != found.cause


def test_almost_an_admissible_action() -> None:
    near = {"invalid": True, "admissible": ("go to the fridge", "take mug")}
    found = diagnose(make_episode(("go to fridge", "Nothing happens.", near)))
    assert (found.label, found.cause) == ("action realization", "almost an admissible action")
    assert found.reason == "go to fridge is almost go to the fridge"


def test_refused_by_the_environment_is_a_contract_mismatch() -> None:
    far = {"invalid": True, "admissible": ("open fridge",)}
    found = diagnose(make_episode(("dance wildly", "I do not understand dance wildly.", far)))
    assert (found.label, found.cause) == ("contract mismatch", "refused by the environment")
    assert found.signature == "I do not understand …."


def test_an_error_that_the_environment_does_not_flag_is_found_by_its_text() -> None:
    found = diagnose(make_episode(("SELECT x", "Error: no such column: x"), ("SELECT y", "Error: no such column: y")))
    assert found.label == "contract mismatch"
    assert found.signature == "Error: no such column: …"


def test_withheld_again_and_again() -> None:
    held = {"executed": False, "invalid": True, "problem": "not again"}
    found = diagnose(make_episode(("look", "not again", held), ("look", "not again", held)))
    assert (found.label, found.cause) == ("trajectory degeneration", "withheld again and again")


def test_repetition() -> None:
    found = diagnose(make_episode(*[("look", "start")] * 5))
    assert (found.label, found.cause, found.step) == ("trajectory degeneration", "repeated itself", 1)


def test_repetition_is_seen_through_the_notes_of_a_regulation() -> None:
    moves = [("look", f"start\nnote {n}", {"note": f"note {n}"}) for n in range(5)]
    assert diagnose(make_episode(*moves)).cause == "repeated itself"


def test_nothing_new_was_seen() -> None:
    moves = [("north", "hall"), ("south", "start"), *[(f"push wall {n}", "start") for n in range(6)]]
    found = diagnose(make_episode(*moves))
    assert (found.label, found.cause, found.step) == ("trajectory degeneration", "nothing new was seen", 1)


def test_finished_at_once() -> None:
    assert diagnose(make_episode(("answer 4", "done"))).cause == "finished at once"


def test_finished_after_an_error() -> None:
    moves = [(f"query {n}", f"rows {n}") for n in range(6)] + [("query x", "error: bad x"), ("answer 4", "done")]
    assert diagnose(make_episode(*moves)).cause == "finished after an error"


def test_ran_out_of_steps() -> None:
    found = diagnose(make_episode(*[(f"look {n}", f"room {n}") for n in range(4)], budget=4, progress=0.5))
    assert found.cause == "ran out of steps"
    assert "50%" in found.reason


def test_the_rest_is_residual_reasoning() -> None:
    found = diagnose(make_episode(("query", "rows"), ("answer 4", "done")))
    assert (found.label, found.step) == ("residual reasoning", 1)


def test_an_episode_without_steps_gets_a_label_too() -> None:
    assert diagnose(Episode("t", "f", "i")).cause == "no step was made"


def test_a_broken_intervention_is_named() -> None:
    found = diagnose(make_episode(("a", "b"), owner="harness", cause="intervention", reason="action/x crashed"))
    assert found.cause == "an intervention failed"
    assert "action/x crashed" in found.reason


def test_the_earliest_bottleneck_wins_in_the_fixed_order() -> None:
    # Loops as well as unreadable replies: the replies come first.
    moves = [("look", "start"), ("look", "start"), (None, "what?"), (None, "what?")]
    assert diagnose(make_episode(*moves)).label == LABELS[0]


def test_one_slip_in_a_long_episode_is_not_the_bottleneck() -> None:
    moves = [(None, "what?"), *[("look", "start")] * 9]
    assert diagnose(make_episode(*moves)).label == "trajectory degeneration"


def test_an_error_word_deep_in_a_result_is_no_error() -> None:
    assert not is_error(make_step(0, "read", "line\n" * 40 + "error"))


def test_a_note_is_not_part_of_the_result() -> None:
    assert bare_result(make_step(0, "a", "room\nhurry", note="hurry")) == "room"


@pytest.mark.parametrize(
    ("action", "text"),
    [(None, ""), ("go", "go"), ({"name": "f", "arguments": {"b": 1, "a": "ü"}}, 'f {"a": "ü", "b": 1}')],
)
def test_action_text(action: Act, text: str) -> None:
    assert action_text(action) == text


def test_nearest_without_options() -> None:
    assert nearest("x", ()) == ("", 0.0)


def test_signature_masks_quotes_numbers_and_own_words() -> None:
    assert signature('near "Sales": line 12 of big red mug\nmore', "take Big Red Mug") == "near …: line N of …"


ACTIONS = st.none() | st.text(max_size=8) | st.fixed_dictionaries({"name": st.text(max_size=4)})
MOVES = st.lists(
    st.tuples(
        ACTIONS,
        st.text(max_size=30),
        st.fixed_dictionaries(
            {"invalid": st.booleans(), "executed": st.booleans(), "note": st.text(max_size=5)},
            optional={"admissible": st.none() | st.lists(st.text(max_size=6), max_size=3).map(tuple)},
        ),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(MOVES, st.integers(0, 9))
def test_every_episode_gets_one_label_and_a_step_of_its_own(moves: list, budget: int) -> None:
    episode = make_episode(*moves, budget=budget)
    found = diagnose(episode)
    assert found.label in LABELS
    assert found == diagnose(episode)
    assert "\n" not in found.reason
    if moves:
        assert found.step == min(found.steps) and max(found.steps) < len(moves)
