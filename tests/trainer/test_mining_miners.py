"""Each miner: it fires on its evidence, is silent without it, and what it offers loads as a harness file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.harness import Harness, Pipeline, load_harness
from harnesslab.harness.files import intervention_file
from harnesslab.harness.load import load_yaml
from harnesslab.rollout.records import Episode
from harnesslab.trainer.estimators.mining.idea import Idea
from harnesslab.trainer.estimators.mining.miners import builtin_miners
from harnesslab.trainer.estimators.mining.replay import Replay, Reply, contexts, replies, with_intervention
from harnesslab.trainer.estimators.mining.view import View
from harnesslab.trainer.failures import Failures
from tests.trainer.trajectories import episode, run

EMPTY = load_harness({"harness.toml": b'name = "demo"\n'})
CAN = ("go to fridge", "take mug", "put mug on shelf")
LISTED = {"admissible": CAN}
REFUSED = {"admissible": CAN, "invalid": True}


def call(name: str, **arguments: object) -> dict:
    return {"name": name, "arguments": arguments}


def view_of(*episodes: Episode, harness: Harness = EMPTY) -> View:
    return View(Failures(run(*episodes)), harness)


def offered(miner: str, view: View) -> list[Idea]:
    """The ideas of one miner that have evidence; every rung of each must load."""
    ideas = []
    replay = Replay(view.harness, view.episodes, view.tools)
    for idea in builtin_miners()[miner](view):
        texts = [intervention_file(idea.kind, v.params, about=idea.about, when=v.when) for v in idea.variants]
        assert texts and len(set(texts)) == len(texts)
        for text in texts:
            assert load_yaml(f"{idea.name}.yaml", text).kind == idea.kind
        if idea.clues or (idea.clues is None and any(replay.hits(f"{idea.name}.yaml", text) for text in texts)):
            ideas.append(idea)
    return ideas


def one(miner: str, *episodes: Episode) -> Idea:
    ideas = offered(miner, view_of(*episodes))
    assert len(ideas) == 1
    return ideas[0]


GOOD = episode("good", ("look", "a room"), ("put mug", "done"), solved=True)
WRONG = episode("wrong", ("look", "a room"), ("wait", "an hour later"))
"""A failure without a pattern: accepted, new and short."""


@pytest.mark.parametrize("miner", sorted(set(builtin_miners()) - {"rerank", "procedure"}))
def test_silent_without_evidence(miner: str) -> None:
    assert offered(miner, view_of(GOOD, WRONG)) == []


def test_constrain_where_impossible_actions_were_given() -> None:
    idea = one("constrain", episode("a", ("fly", "You cannot fly.", REFUSED), ("take mug", "Taken.", LISTED)))
    assert [(clue.episode.task_id, clue.step) for clue in idea.clues or ()] == [("a", 0)]


def test_constrain_not_with_tools_or_where_it_is_already() -> None:
    step = ("fly", "You cannot fly.", REFUSED)
    assert offered("constrain", view_of(episode("a", step, tools=("fly",)))) == []
    assert offered("constrain", view_of(episode("a", ("fly", "no", REFUSED | {"choices": 3})))) == []


def test_admissible_lists_what_the_model_did_not_see() -> None:
    assert one("admissible", episode("a", ("fly", "You cannot fly.", REFUSED))).layer == "contract"


def test_snap_takes_the_strictest_threshold_that_catches_something() -> None:
    idea = one("snap", episode("a", ("go to the fridge", "Nothing happens.", REFUSED)))
    assert idea.variants[0].params == {"threshold": 80}


def test_rewrite_needs_the_same_slip_in_two_tasks() -> None:
    first = episode("a", ("grab mug", "What?", REFUSED))
    idea = one("verbs", first, episode("b", ("grab mug", "What?", REFUSED)))
    assert idea.variants[0].params["pattern"] == r"(?i)^grab\b"
    assert idea.variants[0].params["replacement"] == "take"
    assert offered("verbs", view_of(first, WRONG)) == []


def test_rescue_finds_the_action_but_never_in_prose() -> None:
    said = {"raw": "Sure!\n**take mug**", "admissible": CAN}
    prose = {"raw": "Sure! I will not take mug yet.", "admissible": CAN}
    assert offered("rescue", view_of(episode("a", (None, "Say it.", prose)))) == []
    assert one("rescue", episode("a", (None, "Say Action: ...", said))).kind == "rescue"
    assert offered("rescue", view_of(episode("a", (None, "Say it.", {"raw": "Hm.", "admissible": CAN})))) == []


def test_rescue_learns_how_a_bare_argument_begins() -> None:
    query = (call("run", text="FIND x"), "rows")
    good = [episode(task, query, (call("end", value=["1"]), "done"), tools=("end", "run")) for task in ("a", "b")]
    bare = {"raw": "FIND y\n```\nThat should do."}
    idea = one("rescue", *good, episode("c", (None, "No action.", bare), tools=("end", "run")))
    assert idea.variants[0].params["bare_tool"] == "run"
    assert "FIND" in idea.variants[0].params["bare"] and "starts with FIND to run" in idea.variants[0].about
    text = intervention_file("rescue", idea.variants[0].params)
    pipeline = Pipeline(with_intervention(EMPTY, load_yaml("action/rescue.yaml", text)))
    (context,) = contexts(episode("d", ("x", "y")), "text", view_of(*good).tools)
    for raw in ("FIND a\nIN b", "I look it up:\nFIND a\nIN b\n\nThat is all.", "So:\n```sql\nFIND a\nIN b\n```\nDone."):
        assert pipeline.choose(context, [Reply(raw)]).proposal.action == call("run", text="FIND a\nIN b")


def test_rescue_never_guesses_a_call_that_ends_the_episode() -> None:
    """The words of answers are words of prose: "I have not done the refund yet" must not close the ticket."""
    good = [
        episode(task, (call("look"), "x"), (call("answer", text=said), "done"), tools=("answer", "look"))
        for task, said in (("a", "done with it"), ("b", "done at last"))
    ]
    prose = {"raw": "I have not done the refund yet."}
    lost = episode("c", (None, "No action.", prose), tools=("answer", "look"))
    assert all(
        "bare" not in variant.params for idea in offered("rescue", view_of(*good, lost)) for variant in idea.variants
    )


def test_a_reply_that_was_spent_on_thinking_needs_no_reminder() -> None:
    spent = {"raw": "", "replies": [{"text": "", "finish_reason": "length"}]}
    assert offered("reminder", view_of(episode("a", (None, "Say Action: ...", spent)))) == []
    assert one("reminder", episode("a", (None, "Say Action: ...", spent | {"raw": "", "replies": []})))


def test_one_action_where_native_calls_were_left_out() -> None:
    calls = [{"name": "run", "arguments": {"text": "a"}}, {"name": "run", "arguments": {"text": "b"}}]
    step = {"raw": "", "replies": [{"text": "", "tool_calls": calls}]}
    assert one("one_action", episode("a", (call("run", text="a"), "rows", step))).stem == "one_action"


def test_reminder_after_unread_replies() -> None:
    idea = one("reminder", episode("a", (None, "Say Action: ...")))
    assert idea.variants[0].when == {"last_invalid": True}


def test_forms_tells_what_was_accepted() -> None:
    verbs = ("put mug on shelf", "put pan on table", "go to sink", "go to oven")
    idea = one("forms", episode("a", ("fly", "You cannot fly.", {"admissible": verbs, "invalid": True})))
    assert idea.variants[0].params["text"] == "Use only these commands:\n- go to <...>\n- put <...> on <...>"


def test_retry_error_where_an_error_follows_an_error() -> None:
    idea = one("retry_error", episode("a", ("x", "Error: no such x"), ("x", "Error: no such x")))
    assert [clue.step for clue in idea.clues or ()] == [1]
    assert offered("retry_error", view_of(episode("a", ("x", "Error: no such x"), ("y", "fine")))) == []


def test_no_repeat_and_loop_breaker_and_stagnation_on_circles() -> None:
    circle = episode("a", *[("open", "start"), ("close", "start")] * 5)
    assert one("no_repeat", circle).layer == "regulation"
    assert one("loop_breaker", circle).variants[0].params == {}
    assert one("stagnation", circle).variants[0].params == {}


def test_loop_breaker_forces_where_the_possible_actions_are_known() -> None:
    circle = episode("a", *[("take mug", "start", LISTED)] * 6)
    assert one("loop_breaker", circle).variants[0].params == {"force": True}


def test_budget_names_the_action_that_finishes() -> None:
    done = episode("a", (call("run", text="x"), "rows"), (call("end", value=["1"]), "done"), tools=("end", "run"))
    late = episode("b", *[(call("run", text=str(n)), f"rows {n}") for n in range(3)], budget=3, tools=("end", "run"))
    idea = one("budget", done, late)
    assert idea.variants[0].params["note"].endswith("Finish the task with end now.")
    assert idea.strength > one("budget", episode("c", ("x", "y"), budget=1)).strength


def test_finish_guard_waits_for_the_other_tool() -> None:
    rash = episode("a", (call("end", value=["1"]), "done"), tools=("end", "run"))
    tried = episode("b", (call("run", text="x"), "rows"), (call("end", value=["2"]), "done"), tools=("end", "run"))
    idea = one("finish_guard", rash, tried)
    assert idea.variants[0].params["finish_tool"] == "end"
    assert idea.variants[0].params["until_tool"] == "run"


def test_finish_guard_learns_what_a_good_result_starts_with() -> None:
    tools = {"tools": ("end", "run"), "solved": True}
    good = [episode(t, (call("run", text=t), f"[{t}]"), (call("end", value=[t]), "done"), **tools) for t in ("a", "b")]
    error = (call("run", text="x"), "Error: no x")
    rash = episode("c", error, (call("end", value=["2"]), "done"), tools=("end", "run"))
    assert one("finish_guard", *good, rash).variants[0].params["until_observation"] == r"^\["


def test_answers_are_copied_from_the_result() -> None:
    made_up = episode("a", (call("run", text="x"), "[7]"), (call("end", value=["8"]), "done"), tools=("end", "run"))
    copied = episode("b", (call("run", text="x"), "[7]"), (call("end", value=["7"]), "done"), tools=("end", "run"))
    assert [idea.stem for idea in offered("answer", view_of(made_up, copied))] == ["copy_end"]
    assert offered("answer", view_of(copied)) == []


def test_finishing_is_due_once_a_result_is_there() -> None:
    done = episode("a", (call("run", text="x"), "[7]"), (call("end", value=["7"]), "done"), tools=("end", "run"))
    late = episode("b", *[(call("run", text="x"), "[7]")] * 3, budget=3, tools=("end", "run"))
    assert [idea.stem for idea in offered("answer", view_of(done, late))] == ["then_end"]


def test_rerank_weighs_shared_words_only_where_they_tell() -> None:
    lost = episode("b", *[("take mug", "start", LISTED)] * 4)
    won = episode("a", ("put mug on shelf", "done", LISTED), solved=True)
    assert one("rerank", won, lost).variants[0].params == {"samples": 3, "overlap": 1.0}
    lucky = episode("a", ("go to fridge", "done", LISTED), solved=True)
    assert one("rerank", lucky, lost).variants[0].params == {"samples": 3}


def test_state_card_reads_facts_from_sentences_that_end_differently() -> None:
    moves = [("go", f"You are at the {place}. It is dark.") for place in ("sink", "oven")] * 4
    idea = one("state_card", episode("a", *moves), episode("b", *moves))
    facts = idea.variants[0].params["facts"]
    assert facts == {"You are at the": r"You\ are\ at\ the ([\w -]+)"} or "You are at" in facts


def clean(task: str, thing: str, *, solved: bool) -> Episode:
    moves = (("go to sink", "Water."), (f"clean {thing}", "Clean.")) if solved else (("wait", "An hour later."),)
    return episode(task, *moves, instruction=f"Clean the {thing}.", solved=solved)


def test_procedure_shows_how_tasks_of_the_sort_were_solved() -> None:
    lost = clean("c", "mug", solved=False)
    idea = one("procedure", clean("a", "mug", solved=True), clean("b", "pan", solved=True), lost)
    first, *_, text = idea.variants
    assert first.params["task"] == "Task: Clean the mug."
    assert [shot["action"] for shot in first.params["demonstration"]] == ["go to sink", "clean mug"]
    assert text.params["text"].endswith("1. go to sink\n2. clean X")
    assert [clue.episode.task_id for clue in idea.clues or ()] == ["c"]


def test_procedure_keeps_to_the_sort_of_its_tasks() -> None:
    moves = (("find book", "There."), ("read book", "Read."))
    read = episode("b", *moves, instruction="Read the book.", solved=True)
    done = [clean("a", "mug", solved=True), clean("d", "jar", solved=True)]
    view = view_of(*done, read, clean("c", "pan", solved=False))
    assert [(idea.stem, idea.variants[0].params["match"]) for idea in offered("procedure", view)] == [
        ("how_clean", r"(?i)\bclean\b")
    ]


def test_procedure_needs_a_solved_task() -> None:
    assert offered("procedure", view_of(clean("c", "mug", solved=False))) == []


def test_one_action_where_a_reply_holds_several() -> None:
    both = {"raw": "Action: go to sink\nAction: take mug"}
    idea = one("one_action", episode("a", ("take mug", "You have it.", both)))
    assert "2 actions in one reply" in (idea.clues or ())[0].what


WORDS = ["refund", "Refund", "order", "Yes", "OK", "done", "cancel", "The", "Delete", "DELETE", "SEND", "find", "x1"]
SAID = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
"""What was given to a tool: an order, a message, a statement."""
TALK = [
    "I have not called {0} yet: {1} would be wrong.", "Before I {1}, I look.", "{1} is what you asked for,\nbut I do not do it.",
    "I will not\n{1} anything\nwithout asking.", "{1}?", "- {1} comes last\n- {0} never", "**{1}** is not my decision.",
    "It says '{1}'.", "{1} happened already. I wait.", "Nothing of this:\n\nI do not {1}.", "{0} {1}", "The tool is {0}\n({1}).",
]  # fmt: skip
"""Prose, for a tool's name and what was given to it."""


@settings(max_examples=150, deadline=None)
@given(
    st.lists(SAID, min_size=2, max_size=4),
    st.lists(st.tuples(st.sampled_from(TALK), SAID), min_size=1, max_size=3),
    st.sampled_from(["send", "close_ticket", "Refund", "done"]),
    st.booleans(),
)
def test_no_miner_takes_prose_for_a_call(said: list[str], talk: list, tool: str, ends: bool) -> None:
    names = tuple(sorted({tool, "look"}))
    good = [
        episode(f"good{number}", (call("look"), "x"), (call(tool, text=text), "fine"), *([] if ends else [(call("look"), "y")]), tools=names, solved=True)
        for number, text in enumerate([*said, *said])
    ]  # fmt: skip
    prose = [text.format(tool, word) for text, word in talk]
    lost = [episode(f"lost{n}", (None, "No action.", {"raw": text}), tools=names) for n, text in enumerate(prose)]
    view = view_of(*good, *lost)
    for name, miner in builtin_miners().items():
        for idea in miner(view):
            for variant in idea.variants:
                text = intervention_file(idea.kind, variant.params, about=idea.about, when=variant.when)
                pipeline = Pipeline(with_intervention(EMPTY, load_yaml(f"{idea.name}.yaml", text)))
                for place in lost:
                    (context,) = contexts(place, EMPTY.protocol, view.tools)
                    chosen = pipeline.choose(context, replies(place.steps[0]))
                    decided = chosen.decision.action if chosen.decision is not None else None
                    assert chosen.proposal.action is None and decided is None, (name, place.steps[0].raw)
