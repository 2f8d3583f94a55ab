"""Interventions in Python, and the JSON forms that they speak."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.errors import HarnessFileError, InterventionFault
from harnesslab.harness import Context, Decision, Draft, Proposal, Turn, from_json, to_json
from harnesslab.harness.context import MAX_TEXT
from tests.canary import watching

LOWER = '''"""Lower case."""

def realize(context, proposal):
    if proposal["action"] == proposal["action"].lower():
        return None
    return {**proposal, "action": proposal["action"].lower()}
'''


@pytest.mark.parametrize(
    ("text", "hooks", "about"),
    [
        (LOWER, ("realize",), "Lower case."),
        ("# a comment\n\n'Two.'\nrank = lambda c, p: None\ndef shape (c, d): 1/0\n1/0\n", ("shape", "rank"), "Two."),
        ("regulate: object = print\n", ("regulate",), ""),
        ("not " * 60_000 + "1\ndef rank(c, p): pass\n", ("rank",), ""),
    ],
)
def test_reading_a_file_runs_nothing_of_it(harness: Any, text: str, hooks: tuple[str, ...], about: str) -> None:
    with watching() as seen:
        found = harness({"action/x.py": text})["action/x"]
    assert (found.hooks, found.about, found.kind) == (hooks, about, "python") and not seen.programs


@pytest.mark.parametrize(
    "text", ["raise SystemExit", "if True:\n    def rank(c, p): pass\n", "rank == 1\n", "def ranks(c, p): pass\n"]
)
def test_a_file_without_hooks_is_refused(harness: Any, text: str) -> None:
    with pytest.raises(
        HarnessFileError, match=r"action/x\.py: defines none of the functions shape, .* at its top level"
    ):
        harness({"action/x.py": text})


@pytest.mark.parametrize("unconfined", [False, True])
def test_fires_when_it_changes_something(pipeline: Any, context: Any, reply: Any, unconfined: bool) -> None:
    pipe = pipeline({"action/low.py": LOWER}, unconfined=unconfined)
    assert pipe.harness["action/low"].about == "Lower case."
    assert pipe.choose(context(), [reply("Action: LOOK")]).proposal.action == "look"
    assert pipe.choose(context(), [reply("Action: LOOK")]).fired == ("action/low",)
    assert pipe.choose(context(), [reply("Action: look")]).fired == ()


@pytest.mark.parametrize("unconfined", [False, True])
def test_all_hooks(pipeline: Any, context: Any, reply: Any, unconfined: bool) -> None:
    text = """
def shape(context, draft):
    context["history"].append("mine")
    return {**draft, "system": [context["instruction"]], "samples": 2}
def rank(context, proposals):
    return [len(p["action"]) for p in proposals]
def regulate(context, proposal):
    return {"note": "long" if proposal["action"] == "long" else ""}
"""
    pipe = pipeline({"regulation/p.py": text}, unconfined=unconfined)
    now = context()
    assert pipe.begin(now).draft == Draft(system=("Heat the egg.",), samples=2)
    assert now.history == ()
    chosen = pipe.choose(now, [reply("Action: a"), reply("Action: long")])
    assert chosen.decision == Decision(note="long")


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("def realize(:\n", 1, "not valid Python"),
        ("x = 1\n", None, "defines none of the functions shape, realize, rank, regulate"),
        ("x = 1\n1/0\n", 2, "ZeroDivisionError"),
        ("\nraise SystemExit(3)\n", 2, "SystemExit"),
        ("import nothing_of_this_name\n", 1, "ModuleNotFoundError"),
    ],
)
def test_errors_while_loading(harness: Any, text: str, line: int | None, part: str) -> None:
    with pytest.raises(HarnessFileError) as caught:
        harness({"action/x.py": text}, unconfined=True)
    assert caught.value.line == line and part in str(caught.value)
    if "defines none" not in part:
        with pytest.raises(HarnessFileError) as confined:
            harness({"action/x.py": text + "def rank(c, p): pass\n"})["action/x"].check()
        assert confined.value.line == line and part in str(confined.value)


@pytest.mark.parametrize("unconfined", [False, True])
@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("return 1/0", "ZeroDivisionError"),
        ("return {}", "Proposal.raw"),
        ("return {'raw': '', 'acton': 'x'}", "Proposal.acton"),
        ("return {'raw': '', 'action': 3}", "Proposal.action"),
        ("return {'raw': '', 'withheld': 'yes'}", "Proposal.withheld"),
        ("return {'raw': '', 'problem': 'x' * 300000}", "Proposal.problem"),
        ("return 'look'", "Proposal"),
        ("return {'raw': object()}", "not plain JSON"),
        ("return realize(context, proposal)", "RecursionError"),
    ],
)
def test_a_crash_or_a_lie_is_charged_to_it(
    pipeline: Any, context: Any, reply: Any, body: str, part: str, unconfined: bool
) -> None:
    pipe = pipeline({"action/x.py": f"def realize(context, proposal):\n    {body}\n"}, unconfined=unconfined)
    with pytest.raises(InterventionFault, match=r"^action/x: realize failed") as caught:
        pipe.choose(context(), [reply("Action: a")])
    assert part in str(caught.value)


CALL = {"name": "move", "arguments": {"to": "hall", "list": [1, {"x": None}]}}


@pytest.mark.parametrize(
    "value",
    [
        Turn("a", "b", CALL, "c", True, ("x/y",)),
        Context("i", "o", (Turn("a", "b", None, "c"),), ("look",), ({"function": {}},), 3, 9, "json"),
        Draft(("s",), ("b",), ("a",), 2, ("x",), 3, 0.5, 10),
        Proposal("r", CALL, "", False, ({"id": "1"},)),
        Proposal("r", "text"),
        Decision("n", CALL, True, True),
    ],
)
def test_json_forms_go_there_and_back(value: Any) -> None:
    form = to_json(value)
    assert from_json(type(value), form) == value
    assert to_json(from_json(type(value), form)) == form


def test_json_form_is_a_deep_copy() -> None:
    proposal = Proposal("r", CALL)
    to_json(proposal)["action"]["arguments"]["list"].append(2)
    assert CALL["arguments"] == {"to": "hall", "list": [1, {"x": None}]}


@pytest.mark.parametrize("data", [{"samples": 10**9}, {"temperature": float("inf")}, {"history": -1}, {"nope": 1}, []])
def test_bad_drafts_are_refused(data: Any) -> None:
    with pytest.raises(ValueError):
        from_json(Draft, data)


@pytest.mark.parametrize(
    ("action", "part"),
    [
        ({}, "has a name"),
        ({"name": 3}, "has a name"),
        ({"name": "x", "arguments": []}, "has a name and arguments"),
        ({"name": "x", "args": {}}, "unknown key 'args'"),
        (["x"], "action"),
        ("x" * (MAX_TEXT + 1), "action"),
        ({"name": "x", "arguments": {"y": float("nan")}}, ""),
    ],
)
@pytest.mark.parametrize("form", [Proposal, Decision, Turn, Context])
def test_bad_actions_are_refused(form: Any, action: Any, part: str) -> None:
    turn = {"observation": "o", "raw": "r", "action": action, "result": ""}
    past = {"instruction": "i", "observation": "o", "history": [turn]}
    data = {Proposal: {"raw": "r", "action": action}, Decision: {"action": action}, Turn: turn, Context: past}[form]
    with pytest.raises(ValueError, match=part or None):
        from_json(form, data)


def test_a_call_without_arguments_has_none() -> None:
    assert from_json(Decision, {"action": {"name": "look"}}).action == {"name": "look", "arguments": {}}
