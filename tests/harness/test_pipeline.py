"""The pipeline of one step: order, triggers, firing, faults."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from harnesslab.errors import InterventionFault
from harnesslab.harness import Context, Decision, Draft, Harness, Intervention, Pipeline, Proposal
from harnesslab.harness.load import bind


class Probe(Intervention):
    """Calls what it is given, by hook."""

    kind = "probe"

    def __init__(self, name: str, **hooks: Any) -> None:
        self.name, self.hooks, self.stage = name, hooks, hooks.pop("stage", 50)
        self.layer = name.split("/", maxsplit=1)[0]  # type: ignore[assignment]

    def shape(self, context: Context, draft: Draft) -> Any:
        return self.hooks["shape"](context, draft)

    def realize(self, context: Context, proposal: Proposal) -> Any:
        return self.hooks["realize"](context, proposal)

    def rank(self, context: Context, proposals: Any) -> Any:
        return self.hooks["rank"](context, proposals)

    def regulate(self, context: Context, proposal: Proposal) -> Any:
        return self.hooks["regulate"](context, proposal)


def of(*interventions: Intervention) -> Pipeline:
    return Pipeline(Harness("probes", interventions=interventions))


def test_empty_harness_only_parses(pipeline: Any, reply: Any) -> None:
    empty = pipeline({})
    context = Context("Do it.", "A room.", admissible=("look", "go"))
    prepared = empty.begin(context, constrains=True)
    assert prepared.messages == ({"role": "user", "content": "Do it.\n\nA room."},)
    assert prepared.choices is None and prepared.tools is None
    assert prepared.options == ("Action: look", "Action: go")
    assert prepared.fired == ()
    chosen = empty.choose(context, [reply("I think.\nAction: look")])
    assert chosen.proposal.action == "look"
    assert chosen.decision is None and chosen.fired == ()


def test_an_empty_harness_is_cheap(pipeline: Any, reply: Any, context: Any, history: Any) -> None:
    empty, past = pipeline({}), history(*((f"room {i}", f"go {i}") for i in range(20)))
    now, answer = context(history=past), [reply("Action: look")]
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(50):
            empty.begin(now)
            empty.choose(now, answer)
        best = min(best, (time.perf_counter() - start) / 50)
    # 10 microseconds were measured; the bound leaves room for a slow and busy core.
    assert best < 100e-6


def test_choose_needs_a_reply(pipeline: Any, context: Any) -> None:
    with pytest.raises(ValueError, match="at least one reply"):
        pipeline({}).choose(context(), [])


def test_choices_need_a_backbone_that_constrains(pipeline: Any, context: Any) -> None:
    now = context(admissible=("look", "go"))
    held = pipeline("kind: constrain\n").begin(now, constrains=True)
    assert held.choices == held.options == ("Action: look", "Action: go")
    assert held.fired == ("action/it",)
    free = pipeline("kind: constrain\n").begin(now, constrains=False)
    assert free.choices is None and free.fired == () and free.options == held.options
    dropped = of(Probe("action/p", shape=lambda c, d: Draft(choices=("look",)))).begin(now, constrains=False)
    assert dropped.draft.choices is None and dropped.choices is None


def test_one_choice_needs_one_sample(pipeline: Any, context: Any) -> None:
    files = {"action/a.yaml": "kind: constrain\n", "action/b.yaml": "kind: rerank\n"}
    assert pipeline(files).begin(context(admissible=("look",)), True).draft.samples == 1
    assert pipeline(files).begin(context(admissible=("look", "go")), True).draft.samples == 3


def test_choices_in_json(pipeline: Any, context: Any) -> None:
    files = {"harness.toml": 'name = "j"\nprotocol = "json"\n', "action/a.yaml": "kind: constrain\n"}
    prepared = pipeline(files).begin(context(admissible=("look",), protocol="json"), True)
    assert prepared.choices == ('{"action": "look"}',)


def test_tools_go_with_the_request_in_their_protocol(pipeline: Any, context: Any, tools: Any) -> None:
    assert pipeline({}).begin(context(tools=tools, protocol="tools")).tools == tools
    assert pipeline({}).begin(context(tools=tools)).tools is None


def test_stages_come_before_file_names(reply: Any, context: Any) -> None:
    def mark(letter: str) -> Any:
        return lambda c, p: Proposal(p.raw, f"{p.action}{letter}")

    late, early = Probe("action/a", stage=90, realize=mark("2")), Probe("action/b", stage=10, realize=mark("1"))
    chosen = of(late, early).choose(context(), [reply("Action: x")])
    assert chosen.proposal.action == "x12"
    assert chosen.fired == ("action/b", "action/a")


def test_nothing_is_realized_after_a_block(reply: Any, context: Any) -> None:
    block = Probe("action/a", stage=1, realize=lambda c, p: Proposal(p.raw, p.action, "no", True))
    after = Probe("action/b", stage=2, realize=lambda c, p: pytest.fail("asked"))
    assert of(block, after).choose(context(), [reply("Action: x")]).proposal.withheld


@pytest.mark.parametrize(
    ("when", "asked"),
    [
        ("{instruction: egg}", True),
        ("{instruction: ham}", False),
        ("{observation: '(?i)KITCHEN'}", True),
        ("{observation: KITCHEN}", False),
        ("{last_invalid: true}", True),
        ("{last_invalid: false}", False),
        ("{min_step: 1}", True),
        ("{min_step: 2}", False),
        ("{max_steps_left: 49}", True),
        ("{max_steps_left: 48}", False),
        ("{tool: move}", True),
        ("{tool: fly}", False),
        ("{tool: move, instruction: ham}", False),
        ("{}", True),
    ],
)
def test_trigger(pipeline: Any, context: Any, history: Any, tools: Any, when: str, asked: bool) -> None:
    now = context(history=history(("a", "b"), invalid=True), tools=tools)
    prepared = pipeline(f"kind: reminder\nwhen: {when}\n", "contract").begin(now)
    assert prepared.fired == (("contract/it",) if asked else ())


def test_tool_trigger_looks_at_the_action(pipeline: Any, context: Any, tools: Any, reply: Any) -> None:
    block = pipeline("kind: block\nwhen: {tool: move}\nparams: {pattern: kitchen, message: no}\n")
    now = context(tools=tools)
    other = block.choose(now, [reply("Action: execute_sql\nSELECT kitchen")])
    assert not other.proposal.withheld and other.fired == ()
    moved = block.choose(now, [reply('Action: move\n{"to": "kitchen", "fast": true}')])
    assert moved.proposal.withheld and moved.fired == ("action/it",)


def test_ranks_add_up_and_what_runs_wins(reply: Any, context: Any) -> None:
    first = Probe("action/a", rank=lambda c, p: [1, 0, 9])
    second = Probe("action/b", rank=lambda c, p: [0, 2, 9])
    silent = Probe("action/c", rank=lambda c, p: None)
    replies = [reply("Action: x"), reply("Action: y"), reply("nothing")]
    chosen = of(first, second, silent).choose(context(), replies)
    assert chosen.proposal.action == "y"
    assert chosen.fired == ("action/a", "action/b")
    assert of().choose(context(), [reply("no"), reply("Action: y"), reply("Action: z")]).proposal.action == "y"


def test_decisions_merge_until_one_withholds(reply: Any, context: Any) -> None:
    note = Probe("regulation/a", regulate=lambda c, p: Decision(note="careful"))
    force = Probe("regulation/b", regulate=lambda c, p: Decision(note="better", action="z"))
    sees = Probe("regulation/c", regulate=lambda c, p: Decision(note=f"saw {p.action}", withhold=True))
    never = Probe("regulation/d", regulate=lambda c, p: pytest.fail("asked"))
    chosen = of(note, force, sees, never).choose(context(), [reply("Action: x")])
    assert chosen.decision == Decision(note="careful\nbetter\nsaw z", action="z", withhold=True)
    assert chosen.proposal.action == "x"
    assert chosen.fired == ("regulation/a", "regulation/b", "regulation/c")


def boom(*_: Any) -> Any:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("hook", "function", "part"),
    [
        ("shape", boom, "action/bad: shape failed: RuntimeError: boom"),
        ("realize", boom, "action/bad: realize failed"),
        ("rank", boom, "action/bad: rank failed"),
        ("regulate", boom, "action/bad: regulate failed"),
        ("shape", lambda c, d: "draft", "returned str, not Draft"),
        ("shape", lambda c, d: Draft(choices=()), "no choice"),
        ("shape", lambda c, d: Draft(samples=10_000), "10000 samples"),
        ("realize", lambda c, p: {}, "returned dict, not Proposal"),
        ("rank", lambda c, p: [1.0], "2 finite numbers"),
        ("rank", lambda c, p: [1.0, float("nan")], "2 finite numbers"),
        ("regulate", lambda c, p: True, "returned bool, not Decision"),
    ],
)
def test_a_fault_names_the_intervention(reply: Any, context: Any, hook: str, function: Any, part: str) -> None:
    pipe = of(Probe("action/bad", **{hook: function}))
    with pytest.raises(InterventionFault) as caught:
        pipe.begin(context())
        pipe.choose(context(), [reply("Action: x"), reply("Action: y")])
    assert part in str(caught.value)


def test_a_regex_that_hangs_is_a_fault(
    pipeline: Any, reply: Any, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harnesslab.harness.regexes.DEADLINE", 0.05)
    pipe = pipeline("kind: block\nparams: {pattern: '(x+x+)+y', message: no}\n")
    with pytest.raises(InterventionFault, match="action/it: realize failed: a regex took too long"):
        pipe.choose(context(), [reply("Action: " + "x" * 5000)])
    trigger = pipeline("kind: reminder\nwhen: {observation: '(x+x+)+y'}\n", "contract")
    with pytest.raises(InterventionFault, match="contract/it: trigger failed"):
        trigger.begin(context("x" * 5000))


class Plain(Intervention):
    """Declares nothing but a hook: everything else that is read has a default."""

    layer = "action"
    name = "action/plain"

    def realize(self, context: Context, proposal: Proposal) -> Proposal | None:
        return None if proposal.action is not None else replace(proposal, action="plain", problem="")


class Late:
    """A trigger of one's own."""

    def holds(self, context: Context) -> bool:
        return context.step > 0

    def concerns(self, proposal: Proposal) -> bool:
        return True


def test_an_intervention_that_declares_nothing_works_with_the_defaults(context: Any, reply: Any) -> None:
    assert Plain.hooks == ("realize",) and Plain().hooks == ("realize",)
    assert (Plain.stage, Plain.when, Plain.constrained_only, Plain.about) == (50, None, False, "")
    assert of(Plain()).choose(context(), [reply("hm")]).fired == ("action/plain",)


def test_whatever_is_declared_counts_on_a_class_or_on_one_intervention(context: Any, reply: Any) -> None:
    class Silent(Plain):
        hooks = ()

    class Heir(Silent):
        """A subclass declares its own."""

    late, silent = Plain(), Plain()
    late.when, silent.hooks = Late(), ()
    for one, fired in ((Silent(), False), (Heir(), True), (silent, False), (late, False)):
        assert bool(of(one).choose(context(), [reply("hm")]).fired) is fired
    assert of(late).choose(context(step=1), [reply("hm")]).fired


def test_every_intervention_of_a_class_is_introduced_to_the_others() -> None:
    seen: list[Any] = []

    class Social(Plain):
        @classmethod
        def bind(cls, members: Any) -> None:
            seen.append(list(members))

    one, two, other = Social(), Social(), Plain()
    bind([one, other, two])
    assert seen == [[one, two]]
