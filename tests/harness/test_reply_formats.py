"""What is read of each published reply format, and what never is."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.harness import Context, Pipeline, load_harness, to_json
from harnesslab.harness.protocol import parse
from tests.harness.reply_formats import CASES, TOOLS, Case, Reader, outcome, page, tool

READERS: tuple[Reader, ...] = ("text", "json", "tools", "rescue")
RESCUE = Pipeline(load_harness({"harness.toml": b'name = "x"\n', "action/rescue.yaml": b"kind: rescue\n"}))
BASH = (tool("bash", {"command": {"type": "string"}}, ["command"]), tool("finish", {}, []))


class Said:
    """A reply as a backbone gives it."""

    def __init__(self, text: str, calls: Any = (), finish: str = "stop"):
        self.text, self.tool_calls, self.finish_reason = text, calls, finish


def rescued(text: str, tools: Any = BASH, finish: str = "stop", **more: Any) -> Any:
    return RESCUE.choose(Context("Do it.", "A desk.", tools=tools, **more), [Said(text, (), finish)]).proposal


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("reader", READERS)
def test_each_format_is_read_as_the_page_says(case: Case, reader: Reader) -> None:
    found = outcome(case, reader)
    if reader in case.reads and case.means is not None:
        assert found.action == case.means and found.problem == ""
    else:
        assert found.action is None and found.problem
        if "two different" in case.why and reader == "rescue":
            assert found.cause == "ambiguous"
        if case.finish == "length":
            assert found.cause == "truncated"


def test_the_page_is_current() -> None:
    path = Path(__file__).parents[2] / "docs" / "reply-formats.md"
    assert path.read_text("utf-8") == page(), "run: python -m tests.harness.reply_formats > docs/reply-formats.md"


@pytest.mark.parametrize(
    ("raw", "command"),
    [
        ("I list the files first.\n\n```bash\nls -la\n```\nThat shows them.", "ls -la"),
        ("```bash\nls -la\n```", "ls -la"),
        ("~~~sh\nls\n~~~", "ls"),
        ("````bash\ncat <<'E'\n```\nE\n````", "cat <<'E'\n```\nE"),
        ("```bash\nls\n```\nor again\n```bash\nls\n```", "ls"),
        ("Action: bash\n```\nls\n```\nIt prints:\n```\na b\n```", "ls"),
        ("```\nAction: bash\nls\n```", "ls"),
        ("Action: bash\nAction Input: ls | grep 'x: y'\nObservation: x", "ls | grep 'x: y'"),
        ('Action: bash\nAction Input: {"command": "echo \\"</tool_call>\\""}', 'echo "</tool_call>"'),
        ('<tool_call>{"name": "bash", "arguments": {"command": "echo \'</tool_call>\\n}\'"}}</tool_call>', "echo '</tool_call>\n}'"),
        ("<function=bash>\n<parameter=command>\necho '</parameter>' é\n</parameter>\n</function>", "echo '</parameter>' é"),
        ('<invoke name="bash"><parameter name="command">a &amp;&amp; b</parameter></invoke>', "a &amp;&amp; b"),
        ('{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}', "ls"),
        ('{"name": "Bash", "arguments": {"cmd": "ls"}}', "ls"),
    ],
)  # fmt: skip
def test_the_command_and_nothing_else(raw: str, command: str) -> None:
    assert rescued(raw).action == {"name": "bash", "arguments": {"command": command}}


@pytest.mark.parametrize(
    "raw",
    [
        "First:\n```bash\nls\n```\nNever run rm -rf /app/config.\n```bash\ncat x\n```",
        "Action: bash\nI think this helps:\n```bash\nls\n```\nand\n```bash\nrm x\n```",
        "I have not done the refund yet, so I do not finish.",
        "finish",
        "Action: bash\nls -la\n\nThis lists the files.",
        "Let us finish().",
        'Do not call bash(command="rm -rf /").',
        "Action: bash\nls\n\nAction: bash\nrm x",
        '{"name": "bash", "arguments": {"command": "a"}}\n{"name": "bash", "arguments": {"command": "b"}}',
        '{"name": "bash", "arguments": {"command": "a", "command": "b"}}',
        "```json\n[1, 2]\n```",
        "```console\n$ ls\n```\n```output\nx\n```\n```bash\nrm\n```",
    ],
)
def test_what_is_never_executed(raw: str) -> None:
    assert rescued(raw).action is None


@pytest.mark.parametrize(
    "raw",
    ["Action: bash\nrm -rf /tmp", "```bash\nrm -rf /", '{"name": "bash", "arguments": {"command": "rm', "Action: bas"],
)
def test_an_action_that_may_be_cut_off_is_not_executed(raw: str) -> None:
    found = rescued(raw, finish="length")
    assert found.action is None and found.cause == "truncated"
    assert rescued(raw + ("\n```" if "```" in raw else ""), finish="stop").cause != "truncated"


def test_a_whole_action_before_the_cut_counts() -> None:
    assert rescued("Action: bash\n```\nls\n```\nThis will", finish="length").action["arguments"] == {"command": "ls"}


PIECES = [
    "Action: bash\n", "Action Input: ", "ls", "rm -rf x", "```bash\n", "\n```\n", "\n", "\n\n", "I will not ", "Observation: ", "{", "}",
    '{"name": "bash", "arguments": {"command": "', '"}}', "<tool_call>", "</tool_call>", "<function=bash>", "<parameter=command>",
    "</parameter>", "</function>", "[TOOL_CALLS]", "bash(command='x')", "finish()", "finish", "'", '"', "\\", "Thought: ", "**", "`", "é",
]  # fmt: skip


def leaves(value: Any) -> list[str]:
    """The texts in a JSON value."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in leaves(item)]
    return [value] if isinstance(value, str) else []


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.sampled_from(["stop", "length"]))
def test_whatever_is_executed_occurs_in_the_reply(raw: str, finish: str) -> None:
    for proposal in (rescued(raw, finish=finish), parse(raw, (), "text", BASH, cut=finish == "length")):
        if proposal.action is None:
            assert proposal.problem
            continue
        name, arguments = proposal.action["name"], proposal.action["arguments"]
        assert name in raw or "```" in raw or "~~~" in raw
        for text in leaves(arguments):
            assert bare(text) in bare(raw)


def bare(text: str) -> str:
    """``text`` without what the documented repair of JSON may change: escapes and the kind of quotes."""
    return text.replace("\\n", "\n").replace("\\r", "\r").replace("\\", "").replace('"', "'")


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "function", "arguments", "x", "required", "properties", "parameters", "type", "$ref"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.lists(any_json, max_size=3),
    st.lists(any_json, max_size=3),
    st.text(max_size=30),
    st.sampled_from(["text", "json", "tools"]),
)
def test_no_json_makes_parse_raise(calls: Any, tools: Any, raw: str, protocol: Any) -> None:
    for known in (TOOLS, tools):
        for text in (raw, "Action: bash\nls", '{"name": "bash", "arguments": {}}'):
            parse(text, calls, protocol, known)
            rescued(text, known, protocol=protocol)


HOSTILE = {
    "deep objects": '{"cmd":' * 100_000,
    "deep lists": "[" * 300_000,
    "closed deep": '{"a":' * 900 + "1" + "}" * 900,
    "headers": "Action:\n" * 100_000,
    "open fences": "Action: ```\n" * 80_000,
    "fences": "```\nx\n" * 80_000,
    "tags": "<tool_call>" * 90_000,
    "openings": '<tool_call>{"' * 70_000,
    "parameters": "<function=bash><parameter=command>" * 30_000,
    "invokes": '<invoke name="bash">' * 50_000,
    "actions": "<action>" * 120_000,
    "spaces": "Action:" + " " * 1_000_000,
    "blanks": "<action>" + " " * 500_000,
    "line breaks": ">>>bash" + "\n" * 500_000,
    "blank names": "<tool>" + " " * 90_000 + "</tool>",
    "marks": "<|tool_call:begin|>" * 40_000,
    "gemma": "<start_function_call>call:bash{a:" * 3_000,
    "tags of tools": "<bash><command>" * 6_000,
    "calls": "bash(" * 200_000,
    "lines of calls": "bash(\n" * 100_000,
    "braces": "{ " * 500_000,
    "quotes": "{\"" * 400_000,
    "pipes": "<|channel|>x to=" * 60_000,
    "huge number": '{"name": "bash", "arguments": {"command": ' + "9" * 100_000 + "}}",
    "infinite": '{"name": "bash", "arguments": {"command": 1e999}}',
    "surrogate": '{"name": "bash", "arguments": {"command": "\\ud800"}}',
    "stars": "*" * 900_000,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("size", [None, 99_000])
def test_a_hostile_reply_is_read_soon(name: str, size: int | None) -> None:
    raw = HOSTILE[name][:size]
    begun = time.process_time()
    for protocol in ("text", "json", "tools"):
        action = rescued(raw, protocol=protocol).action
        json.dumps(to_json(action)).encode("ascii")
        rescued(raw, None, protocol=protocol)
        parse("", [{"function": {"name": "bash", "arguments": raw}}], "tools", BASH)
    assert time.process_time() - begun < 20, "no part of the reader may be quadratic"


def test_the_readers_are_tried_on_every_prefix_of_the_corpus() -> None:
    shuffle = random.Random(0)
    for case in CASES:
        for _ in range(6):
            cut = case.reply[: shuffle.randrange(len(case.reply) + 1)]
            found = rescued(cut, TOOLS)
            letters = re.sub(r"\W", "", cut).casefold()
            for value in (found.action or {}).get("arguments", {}).values():
                assert re.sub(r"\W", "", str(value)).casefold() in letters


GOOD = [
    case for case in CASES if case.reply and case.means and "invented" not in case.name and "RESULT" not in case.reply
]
PLAIN = Pipeline(load_harness({"harness.toml": b'name = "x"\n'}))


def changed(reply: str) -> str:
    """The reply with another action in it."""
    return reply.replace("Bern", "Oslo").replace("SELECT\n  1", "DROP TABLE t").replace("SELECT 1", "DROP TABLE t")


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(GOOD),
    st.sampled_from(GOOD),
    st.sampled_from(["\n", "\n\n", "\nThen:\n"]),
    st.sampled_from([PLAIN, RESCUE]),
)
def test_two_actions_in_any_two_formats_are_not_executed(first: Case, second: Case, gap: str, reader: Pipeline) -> None:
    said = Said(first.reply + gap + changed(second.reply))
    found = reader.choose(Context("Do it.", "A desk.", tools=TOOLS), [said]).proposal
    assert found.action is None and found.problem


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(GOOD), st.sampled_from(GOOD), st.sampled_from(["\nObservation: x\n", "\n<tool_response>\n"]))
def test_what_follows_an_invented_observation_is_never_executed(first: Case, second: Case, gap: str) -> None:
    for reader in (PLAIN, RESCUE):
        said = Said(first.reply + gap + changed(second.reply))
        action = reader.choose(Context("Do it.", "A desk.", tools=TOOLS), [said]).proposal.action
        assert action in (None, first.means)


@pytest.mark.parametrize("case", [case for case in CASES if case.reply and case.means], ids=lambda case: case.name)
@pytest.mark.parametrize("finish", ["length", "content_filter", "stop"])
def test_no_part_of_a_format_is_executed_as_if_it_were_whole(case: Case, finish: str) -> None:
    for length in range(len(case.reply)):
        for reader in (PLAIN, RESCUE):
            said = Said(case.reply[:length], (), finish)
            found = reader.choose(Context("Do it.", "A desk.", tools=TOOLS), [said]).proposal
            if finish == "stop" and "SELECT" in case.reply and "{" not in case.reply:
                continue  # of plain text, nobody can say where it was to end
            assert found.action in (None, case.means), case.reply[:length]


@pytest.mark.parametrize(
    ("raw", "other"),
    [
        ("Action: go north\n<action>go south</action>", True),
        ('{"action": "go south"}\nAction: go north', True),
        ("**Action:** go south\nAction: go north", True),
        ("Action: go north\n<action>Go north.</action>", False),
        ("I could go south or go north.\nAction: go north", False),
        ("Action: go north\nObservation: a wall\n<action>go south</action>", False),
        ("<action>go south</action>\nObservation: a wall\nAction: go north", True),
    ],
)
def test_two_text_actions_in_two_forms(raw: str, other: bool) -> None:
    found = PLAIN.choose(Context("Go.", "A hall."), [Said(raw)]).proposal
    assert (found.action is None) is other and found.action in (None, "go north")


def test_an_argument_may_quote_another_format() -> None:
    quoted = 'cat > x <<\'E\'\n<tool_call>{"name": "finish", "arguments": {}}</tool_call>\nAction: finish\nE'
    for reader in (PLAIN, RESCUE):
        for raw in (f"Action: bash\n````\n{quoted}\n````", "Action: bash\n" + json.dumps({"command": quoted})):
            found = reader.choose(Context("Do it.", "A desk.", tools=BASH), [Said(raw)]).proposal
            assert found.action == {"name": "bash", "arguments": {"command": quoted}}


def test_a_native_call_and_the_same_call_in_the_text_agree() -> None:
    call = {"name": "book", "arguments": {"city": "Bern", "nights": 2}}
    for text, action in (("I book.\n[book('Bern', 2)]", call), ("[book('Oslo', 2)]", None)):
        found = PLAIN.choose(
            Context("Book.", "A desk.", tools=TOOLS, protocol="tools"), [Said(text, ({"function": call},))]
        ).proposal
        assert found.action == action and (found.cause == "ambiguous") is (action is None)
