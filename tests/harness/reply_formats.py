"""The corpus of reply formats: published ways to write one action, and what is made of each.

``python -m tests.harness.reply_formats > docs/reply-formats.md`` writes the page from it; a test checks that it is current.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from harnesslab.harness import Context, Pipeline, load_harness
from harnesslab.llm.replies import to_completion

Reader = Literal["text", "json", "tools", "rescue"]


def tool(name: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """An OpenAI function schema."""
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = (
    tool("run_sql", {"query": {"type": "string"}}, ["query"]),
    tool("book", {"city": {"type": "string"}, "nights": {"type": "integer"}}, ["city", "nights"]),
    tool("finish", {}, []),
)
SQL = {"name": "run_sql", "arguments": {"query": "SELECT 1"}}
BOOK = {"name": "book", "arguments": {"city": "Bern", "nights": 2}}
ARGS = '{"city": "Bern", "nights": 2}'


@dataclass(frozen=True)
class Case:
    """One format: the reply, or a whole message, the action that it means (None: refused, with the reason ``why``)."""

    name: str
    reply: str = ""
    means: dict[str, Any] | None = field(default_factory=lambda: BOOK)
    reads: tuple[Reader, ...] = ("rescue",)
    message: dict[str, Any] | None = None
    why: str = ""
    finish: str = "stop"


def _native(*calls: dict[str, Any], **message: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, **({"tool_calls": list(calls)} if calls else {}), **message}


def _call(arguments: Any, name: str = "book", **more: Any) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}, **more}


TEXT: tuple[Reader, ...] = ("text", "rescue")
ANY: tuple[Reader, ...] = ("text", "json", "tools", "rescue")
NATIVE: tuple[Reader, ...] = ("tools", "rescue")
TWO = "two different actions: neither is executed"

CASES: tuple[Case, ...] = (
    Case("OpenAI tool call", message=_native(_call(ARGS)), reads=NATIVE),
    Case("OpenAI, arguments as an object", message=_native(_call({"city": "Bern", "nights": 2})), reads=NATIVE),
    Case("OpenAI, without an id or a type", message=_native({"function": {"name": "book", "arguments": ARGS}}), reads=NATIVE),
    Case("OpenAI, name and arguments at the top", message=_native({"name": "book", "arguments": ARGS}), reads=NATIVE),
    Case("OpenAI, arguments encoded twice", message=_native(_call(json.dumps(ARGS))), reads=NATIVE),
    Case("OpenAI, legacy function_call", message=_native(function_call={"name": "book", "arguments": ARGS}), reads=NATIVE),
    Case("OpenAI, one call that is not in a list", message=_native() | {"tool_calls": _call(ARGS)}, reads=NATIVE),
    Case("OpenAI, parallel calls: the first counts, the others are recorded", message=_native(_call(ARGS), _call("{}", "finish")), reads=NATIVE),
    Case("OpenAI, arguments null where none are needed", message=_native(_call(None, "finish")), means={"name": "finish", "arguments": {}}, reads=NATIVE),
    Case("OpenAI, broken arguments", message=_native(_call('{"city": "Bern", "nights": 2')), reads=("rescue",)),
    Case("OpenAI, arguments cut off", message=_native(_call('{"city": "Be')), finish="length", means=None, why="cut off by the token limit"),
    Case("Anthropic tool_use part", message=_native() | {"content": [{"type": "text", "text": "I book."}, {"type": "tool_use", "id": "t", "name": "book", "input": {"city": "Bern", "nights": 2}}]}, reads=NATIVE),
    Case("functions. in the name of a native call", message=_native(_call(ARGS, "functions.book:0")), reads=("rescue",)),
    Case("Action, JSON below", f"Action: book\n{ARGS}", reads=TEXT),
    Case("Action, fenced block below", "Action: run_sql\n```sql\nSELECT 1\n```", SQL, TEXT),
    Case("Action, plain text below", "Action: run_sql\nSELECT 1", SQL, TEXT),
    Case("ReAct, Action Input in JSON", f"Thought: go\nAction: book\nAction Input: {ARGS}", reads=ANY),
    Case("ReAct, Action Input in text", "Action: run_sql\nAction Input: SELECT 1", SQL, ANY),
    Case("ReAct, Action Input of several lines", "Action: run_sql\nAction Input: SELECT\n  1", {"name": "run_sql", "arguments": {"query": "SELECT\n  1"}}, ANY),
    Case("ReAct, Action Input in a block", "Action: run_sql\nAction Input:\n```sql\nSELECT 1\n```", SQL, ANY),
    Case("ReAct, numbered", "Thought 1: go\nAction 1: run_sql\nAction Input 1: SELECT 1", SQL, ANY),
    Case("ReAct with an invented observation", "Action: run_sql\nAction Input: SELECT 1\nObservation: 1\nThought: done\nAction: finish\nAction Input: None", SQL, ANY),
    Case("ReAct, in bold", f"**Action:** book\n**Action Input:** {ARGS}"),
    Case("ReAct, name[input]", "Action: run_sql[SELECT 1]", SQL),
    Case("JSON, name and arguments", f'{{"name": "book", "arguments": {ARGS}}}', reads=("json", "rescue")),
    Case("JSON, name and parameters", f'{{"name": "book", "parameters": {ARGS}}}'),
    Case("JSON, action and action_input", f'{{"action": "book", "action_input": {ARGS}}}'),
    Case("JSON, tool and tool_input", f'{{"tool": "book", "tool_input": {ARGS}}}'),
    Case("JSON, function", f'{{"function": {{"name": "book", "arguments": {ARGS}}}}}'),
    Case("JSON, type function", f'{{"type": "function", "name": "book", "parameters": {ARGS}}}'),
    Case("JSON in a block", f'I book.\n```json\n{{"name": "book", "arguments": {ARGS}}}\n```'),
    Case("JSON, tool_call", f'{{"tool_call": {{"name": "book", "arguments": {ARGS}}}}}'),
    Case("JSON, tool_calls (xLAM, llama.cpp)", f'{{"thought": "go", "tool_calls": [{{"name": "book", "arguments": {ARGS}}}]}}'),
    Case("JSON, an OpenAI message", json.dumps(_native(_call(ARGS)))),
    Case("JSON, function_call", json.dumps({"function_call": {"name": "book", "arguments": ARGS}})),
    Case("JSON, multi_tool_use.parallel", f'{{"tool_uses": [{{"recipient_name": "functions.book", "parameters": {ARGS}}}]}}'),
    Case("AutoGPT", f'{{"thoughts": {{"text": "I book.", "plan": "- book"}}, "command": {{"name": "book", "args": {ARGS}}}}}'),
    Case("JSON, broken", "{'name': 'book', 'arguments': {'city': 'Bern', 'nights': 2,}"),
    Case("LangChain structured chat", f'Action:\n```json\n{{"action": "book", "action_input": {ARGS}}}\n```'),
    Case("Hermes and Qwen", f'<tool_call>\n{{"name": "book", "arguments": {ARGS}}}\n</tool_call>'),
    Case("Hermes with an invented response", f'<tool_call>\n{{"name": "book", "arguments": {ARGS}}}\n</tool_call>\n<tool_response>\nbooked\n</tool_response>\n<tool_call>\n{{"name": "finish", "arguments": {{}}}}\n</tool_call>'),
    Case("Hermes, Python's quotes", "<tool_call>\n{'arguments': {'city': 'Bern', 'nights': 2}, 'name': 'book'}\n</tool_call>"),
    Case("Glaive", "<functioncall> {\"name\": \"book\", \"arguments\": '" + ARGS + "'} </functioncall>"),
    Case("Granite 20B", f'<function_call> {{"name": "book", "arguments": {ARGS}}}'),
    Case("Qwen3-Coder", "<tool_call>\n<function=book>\n<parameter=city>\nBern\n</parameter>\n<parameter=nights>\n2\n</parameter>\n</function>\n</tool_call>"),
    Case("Qwen-Agent", f"✿FUNCTION✿: book\n✿ARGS✿: {ARGS}\n✿RESULT✿: booked"),
    Case("Llama 3, function tag", f"<function=book>{ARGS}</function>"),
    Case("Llama 3, python_tag", f'<|python_tag|>{{"name": "book", "parameters": {ARGS}}}<|eom_id|>'),
    Case("Llama 3, python_tag and call", '<|python_tag|>book.call(city="Bern", nights=2)<|eom_id|>'),
    Case("Llama 3.2, parameters as text", '{"name": "book", "parameters": {"city": "Bern", "nights": "2"}}'),
    Case("Llama 4, list of Python calls", '[book(city="Bern", nights=2)]'),
    Case("Llama 4, python_start", '<|python_start|>[book(city="Bern", nights=2)]<|python_end|>'),
    Case("LFM2", '<|tool_call_start|>[book(city="Bern", nights=2)]<|tool_call_end|>'),
    Case("List of Python calls, a dotted name", '[travel.book(city="Bern", nights=2)]'),
    Case("Gorilla", '<<function>>book(city="Bern", nights=2)'),
    Case("NexusRaven", 'Call: book(city="Bern", nights=2)<bot_end>\nThought: I book.'),
    Case("Mistral, JSON list", f'[TOOL_CALLS] [{{"name": "book", "arguments": {ARGS}}}]'),
    Case("Mistral, name and ARGS", f"[TOOL_CALLS]book[ARGS]{ARGS}"),
    Case("Mistral, name without ARGS", f"[TOOL_CALLS]book{ARGS}"),
    Case("Mistral, name, CALL_ID and ARGS", f"[TOOL_CALLS]book[CALL_ID]a1B2c3D4e[ARGS]{ARGS}"),
    Case("DeepSeek V3 and R1", f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>book\n```json\n{ARGS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
    Case("DeepSeek V3.1", f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>book<｜tool▁sep｜>{ARGS}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
    Case("DeepSeek V3.2", '<｜DSML｜function_calls>\n<｜DSML｜invoke name="book">\n<｜DSML｜parameter name="city" string="true">Bern</｜DSML｜parameter>\n<｜DSML｜parameter name="nights" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>'),
    Case("Harmony", f"<|channel|>analysis<|message|>I book.<|end|><|start|>assistant<|channel|>commentary to=functions.book <|constrain|>json<|message|>{ARGS}<|call|>"),
    Case("Harmony, recipient in the role", f"<|start|>assistant to=functions.book<|channel|>commentary json<|message|>{ARGS}<|call|>"),
    Case("Harmony, without its special tokens", f"analysisI book.assistantcommentary to=functions.book json{ARGS}"),
    Case("Step 3", '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="book"><steptml:parameter name="city">Bern</steptml:parameter><steptml:parameter name="nights">2</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>'),
    Case("Seed-OSS", "<seed:tool_call>\n<function=book>\n<parameter=city>Bern</parameter>\n<parameter=nights>2</parameter>\n</function>\n</seed:tool_call>"),
    Case("Solar", f"<|tool_call:begin|>a1b2<|tool_call:name|>book<|tool_call:args|>{ARGS}<|tool_call:end|>"),
    Case("Apertus", f'<|tools_prefix|>[{{"book": {ARGS}}}]<|tools_suffix|>'),
    Case("FunctionGemma", "<start_function_call>call:book{city:<escape>Bern<escape>,nights:2}<end_function_call>"),
    Case("Gemma 4", '<|tool_call>call:book{city:<|"|>Bern<|"|>,nights:2}<tool_call|>'),
    Case("Kimi K2", f"<|tool_calls_section_begin|><|tool_call_begin|>functions.book:0<|tool_call_argument_begin|>{ARGS}<|tool_call_end|><|tool_calls_section_end|>"),
    Case("functions.NAME:0", f"functions.book:0{ARGS}"),
    Case("GLM-4.5", "<tool_call>book\n<arg_key>city</arg_key>\n<arg_value>Bern</arg_value>\n<arg_key>nights</arg_key>\n<arg_value>2</arg_value>\n</tool_call>"),
    Case("GLM-4, the name above JSON", f"book\n{ARGS}"),
    Case("ChatGLM3", "book\n```python\ntool_call(city='Bern', nights=2)\n```"),
    Case("LongCat", "<longcat_tool_call>book\n<longcat_arg_key>city</longcat_arg_key>\n<longcat_arg_value>Bern</longcat_arg_value>\n<longcat_arg_key>nights</longcat_arg_key>\n<longcat_arg_value>2</longcat_arg_value>\n</longcat_tool_call>"),
    Case("Granite", f'<|tool_call|>[{{"name": "book", "arguments": {ARGS}}}]'),
    Case("Phi-4", f'<|tool_call|>[{{"name": "book", "arguments": {ARGS}}}]<|/tool_call|>'),
    Case("Phi-4 and FireFunction, functools", f'functools[{{"name": "book", "arguments": {ARGS}}}]'),
    Case("Command R", f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "book", "parameters": {ARGS}}}]<|END_ACTION|>'),
    Case("Command R, in a block", f'Action: ```json\n[\n  {{"tool_name": "book", "parameters": {ARGS}}}\n]\n```'),
    Case("Functionary v2", f"<|from|>assistant\n<|recipient|>book\n<|content|>{ARGS}<|stop|>"),
    Case("Functionary", f">>>book\n{ARGS}"),
    Case("InternLM", f'<|action_start|><|plugin|>\n{{"name": "book", "parameters": {ARGS}}}<|action_end|>'),
    Case("Nemotron", f'<TOOLCALL>[{{"name": "book", "arguments": {ARGS}}}]</TOOLCALL>'),
    Case("Jamba and Hunyuan", f'<tool_calls>[{{"name": "book", "arguments": {ARGS}}}]</tool_calls>'),
    Case("Anthropic invoke", '<function_calls>\n<invoke name="book">\n<parameter name="city">Bern</parameter>\n<parameter name="nights">2</parameter>\n</invoke>\n</function_calls>'),
    Case("Anthropic, tool_name", "<function_calls>\n<invoke>\n<tool_name>book</tool_name>\n<parameters>\n<city>Bern</city>\n<nights>2</nights>\n</parameters>\n</invoke>\n</function_calls>"),
    Case("MiniMax M2", '<minimax:tool_call>\n<invoke name="book">\n<parameter name="city">Bern</parameter>\n<parameter name="nights">2</parameter>\n</invoke>\n</minimax:tool_call>'),
    Case("Grok", '<xai:function_call name="book"><parameter name="city">Bern</parameter><parameter name="nights">2</parameter></xai:function_call>'),
    Case("MiniCPM", '<function name="book"><param name="city"><![CDATA[Bern]]></param><param name="nights">2</param></function>'),
    Case("A tag with the name, JSON in it", f'<tool_call name="book">{ARGS}</tool_call>'),
    Case("LangChain XML", "<tool>run_sql</tool><tool_input>SELECT 1</tool_input>", SQL),
    Case("XML action and action_input", f"<action>book</action>\n<action_input>{ARGS}</action_input>"),
    Case("XML, name and arguments", f"<tool_use>\n<name>book</name>\n<arguments>{ARGS}</arguments>\n</tool_use>"),
    Case("XML action with a call", '<action>book(city="Bern", nights=2)</action>'),
    Case("Cline, the tool's name as a tag", "<book>\n<city>Bern</city>\n<nights>2</nights>\n</book>"),
    Case("The tool's name as a tag around its argument", "<run_sql>SELECT 1</run_sql>", SQL),
    Case("Tool and Arguments lines", f"Tool: book\nArguments: {ARGS}"),
    Case("Gemini tool_code", '```tool_code\nprint(default_api.book(city="Bern", nights=2))\n```'),
    Case("smolagents code", 'Thought: I book.\n<code>\nresult = book(city="Bern", nights=2)\n</code>'),
    Case("smolagents, printing the result", '<code>\nroom = book(city="Bern", nights=2)\nprint(room)\n</code>'),
    Case("smolagents, fenced", 'Code:\n```py\nprint(book(city="Bern", nights=2))\n```<end_code>'),
    Case("OLMo", '<function_calls>book(city="Bern", nights=2)</function_calls>'),
    Case("A call on its own line", 'I book:\nbook("Bern", 2)'),
    Case("A block with a language tag", "This runs it:\n```sql\nSELECT 1\n```", SQL),
    Case("The tool's name above a block", "run_sql\n```\nSELECT 1\n```", SQL),
    Case("Two different Action headers", "Action: run_sql\nSELECT 1\n\nAction: finish", means=None, why=TWO),
    Case("Two different blocks", "```sql\nSELECT 1\n```\nThen:\n```sql\nDROP TABLE t\n```", means=None, why=TWO),
    Case("Two different tool_call tags", f'<tool_call>{{"name": "book", "arguments": {ARGS}}}</tool_call><tool_call>{{"name": "finish", "arguments": {{}}}}</tool_call>', means=None, why=TWO),
    Case("List of two Python calls", '[book(city="Bern", nights=2), finish()]', means=None, why=TWO),
    Case("A block of output", "The result is:\n```output\n1 row\n```", means=None, why="the tag says that it is not a command"),
    Case("A block in another language", "```python\nprint(1)\n```", means=None, why="Python is not what the tool takes"),
    Case("A call within prose", 'I have not called book(city="Bern", nights=2) yet.', means=None, why="prose is never executed"),
    Case("A tool's name within prose", "I will finish when the room is booked.", means=None, why="prose is never executed"),
    Case("Python with more than calls", "<code>\nfor city in cities:\n    book(city, 2)\n</code>", means=None, why="only literal calls are read; code is never run"),
    Case("JSON with the tool's name as its key", f'[{{"book": {ARGS}}}]', means=None, why="nothing tells it from data"),
    Case("XML that cuts a value off", "<function=run_sql>\n<parameter=query>\nDELETE FROM t", means=None, why="the value has no end"),
    Case("JSON that cuts a value off", '{"name": "run_sql", "arguments": {"query": "DELETE FROM t', means=None, why="the value has no end"),
    Case("A tool call, then another action", f'<tool_call>{{"name": "book", "arguments": {ARGS}}}</tool_call>\nAction: run_sql\nAction Input: SELECT 1', means=None, why=TWO),
    Case("An Action, then another call", f'Action: run_sql\n```\nSELECT 1\n```\n[TOOL_CALLS]book[ARGS]{ARGS}', means=None, why=TWO),
    Case("A native call, and another one in the text", message=_native(_call(ARGS)) | {"content": '<tool_call>{"name": "finish", "arguments": {}}</tool_call>'}, means=None, why=TWO),
    Case("An unknown tool", '<tool_call>{"name": "fly", "arguments": {}}</tool_call>', means=None, why="there is no such tool"),
    Case("A reply cut off in its action", "Action: run_sql\nSELECT * FR", means=None, finish="length", why="cut off by the token limit"),
)  # fmt: skip


def outcome(case: Case, reader: Reader) -> Any:
    """The action that is executed for the case, in one protocol, or with ``rescue`` in the protocol of its reply."""
    message = case.message or {"role": "assistant", "content": case.reply}
    raw = {"choices": [{"finish_reason": case.finish, "message": message}]}
    reply = to_completion(raw, {}, seconds=0.0, where="the corpus")
    protocol: Any = ("tools" if case.message else "text") if reader == "rescue" else reader
    files = {"harness.toml": b'name = "corpus"\n'}
    if reader == "rescue":
        files["action/rescue.yaml"] = b"kind: rescue\n"
    context = Context("Book.", "A desk.", tools=TOOLS, protocol=protocol)
    return Pipeline(load_harness(files)).choose(context, [reply]).proposal


def page() -> str:
    """The table as Markdown."""
    rows = [
        "# Reply formats",
        "",
        "How models write an action, and what harnesslab makes of it. Each row is tested: `yes` means that exactly the intended",
        "call is executed. `text`, `json` and `tools` are the protocols of `harness.toml`, without any intervention; `rescue` is",
        "the protocol together with [`action/rescue`](interventions.md#rescue).",
        "",
        "- Everything behind an observation that the model invented is ignored; the first action counts.",
        "- A reply that means two different actions is executed as neither, also where one of them is in a format that only",
        "  `rescue` reads. Native parallel calls are in order: the first one counts, and the others are in the record",
        "  (`Step.replies`) and in the diagnosis.",
        "- Prose is never executed, whatever it mentions. Plain text directly below `Action: tool` is that tool's argument,",
        "  unless it holds an empty line or a block: what is talk and what is not cannot be told then.",
        "- An action that the token limit, a content filter or a broken connection cut off is not executed, and neither is",
        "  one whose last text or tag has no end.",
        "- Repairs by `rescue`: quotes, commas and brackets of broken JSON (no letter may be lost or move out of the arguments), the case and punctuation of a",
        '  tool\'s name, types by the schema (`"2"` to `2`), a renamed argument where the tool takes only one, the line breaks around',
        "  the value of an XML tag. Everything else is executed character for character.",
        "- A reply of more than 100,000 characters is not rescued.",
        "",
        "| format | example | text | json | tools | rescue |",
        "|---|---|---|---|---|---|",
    ]
    for case in CASES:
        example = case.reply or json.dumps(
            {k: v for k, v in (case.message or {}).items() if v and k != "role"}, ensure_ascii=False
        )
        shown = example.replace("\n", "⏎").replace("|", "\\|").replace("`", "ˋ")
        cells = [_cell(case, reader) for reader in ("text", "json", "tools", "rescue")]
        rows.append(f"| {case.name} | `{shown}` | " + " | ".join(cells) + " |")
    rows += ["", "`⏎` is a line break, `ˋ` a backtick.", ""]
    return "\n".join(rows)


def _cell(case: Case, reader: Reader) -> str:
    if case.means is not None:
        return "yes" if reader in case.reads else "no"
    return f"refused: {case.why}" if reader == "rescue" else "no"


if __name__ == "__main__":
    print(page(), end="")
