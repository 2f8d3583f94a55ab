"""MiningEstimator: ranked, bounded, deterministic, never the same again on one baseline, never a crash."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harnesslab as hl
import harnesslab.trainer.estimators.mining as mining
from harnesslab.errors import ConfigError
from harnesslab.harness import Harness, load_harness
from harnesslab.harness.files import intervention_file
from harnesslab.rollout.taxonomy import LABELS
from harnesslab.trainer.estimators import Estimator, MiningEstimator
from harnesslab.trainer.estimators.mining import Clue, Idea, Variant, View
from harnesslab.trainer.failures import Failures
from harnesslab.trainer.proposal import Proposal
from tests.trainer.trajectories import episode, run

EMPTY = load_harness({"harness.toml": b'name = "demo"\n'})
CAN = {"admissible": ("go to fridge", "take mug", "put mug on shelf")}
BAD = {**CAN, "invalid": True}


def mixed() -> Failures:
    """A run with some of everything: unread, refused, repeated, solved."""
    return Failures(
        run(
            episode("a", *[(None, "Say Action: ...", {"raw": "I will take mug.", **CAN})] * 3),
            episode("b", *[("fly", "You cannot fly.", BAD)] * 3),
            episode("c", *[("take mug", "start", CAN)] * 8),
            episode("d", *[("go to the fridge", "You cannot.", BAD)] * 4),
            episode("e", ("take mug", "Taken.", CAN), ("put mug on shelf", "Done.", CAN), solved=True),
        )
    )


def harness_with(proposal: Proposal) -> Harness:
    return load_harness(proposal.apply(EMPTY.files))


def test_every_proposal_loads_and_names_evidence_flips_and_trigger() -> None:
    failures = mixed()
    proposals = MiningEstimator().propose(failures, EMPTY)
    lost = {item.task_id for item in failures.episodes}
    assert isinstance(MiningEstimator(), Estimator)
    assert 4 <= len(proposals) <= 8
    for proposal in proposals:
        assert proposal.prediction.trigger == proposal.name == harness_with(proposal)[proposal.name].name
        assert proposal.evidence and set(proposal.prediction.flips) <= lost
        assert proposal.estimator == "mining"
    assert (proposals[0].kind, proposals[0].prediction.flips) == ("constrain", ("a", "b", "d"))
    assert len({proposal.layer for proposal in proposals[:3]}) > 1


def test_only_failures_with_the_bottleneck_that_it_is_meant_for_should_flip() -> None:
    flips = {p.kind: p.prediction.flips for p in MiningEstimator(limit=99).propose(mixed(), EMPTY)}
    assert flips["reminder"] == ("a",)
    assert flips["no_repeat"] == ("c",)
    assert flips["snap"] == ("d",)


def test_the_limit_holds_and_a_clean_run_gives_nothing() -> None:
    assert len(MiningEstimator(limit=2).propose(mixed(), EMPTY)) == 2
    assert len(MiningEstimator().propose(Failures(run(episode("e", ("a", "b"), solved=True))), EMPTY)) == 0


def test_what_was_turned_down_here_comes_as_its_next_rung() -> None:
    failures = mixed()
    first = next(p for p in MiningEstimator(limit=99).propose(failures, EMPTY) if p.kind == "rerank")
    verdict = {**first.to_json(), "baseline": failures.run.commit, "status": "rejected"}
    second = next(p for p in MiningEstimator(limit=99).propose(failures, EMPTY, [verdict]) if p.kind == "rerank")
    assert "samples: 3" in first.diff() and "samples: 5" in second.diff()
    elsewhere = {**verdict, "baseline": "f" * 40}
    again = next(p for p in MiningEstimator(limit=99).propose(failures, EMPTY, [elsewhere]) if p.kind == "rerank")
    assert again.content == first.content


def test_a_verdict_against_it_lowers_the_rank() -> None:
    failures = mixed()
    names = [p.name for p in MiningEstimator(limit=99).propose(failures, EMPTY)]
    history = [{"name": names[0], "status": "rejected", "baseline": "f" * 40, "content": "x"}] * 5
    assert [p.name for p in MiningEstimator(limit=99).propose(failures, EMPTY, history)].index(names[0]) > 0


def test_what_the_harness_holds_is_offered_one_rung_up_or_not_at_all() -> None:
    failures = mixed()
    rerank = next(p for p in MiningEstimator(limit=99).propose(failures, EMPTY) if p.kind == "rerank")
    after = {p.kind: p for p in MiningEstimator(limit=99).propose(failures, harness_with(rerank))}
    assert "samples: 5" in after["rerank"].diff()
    text = intervention_file("rerank", {"samples": 7})
    mine = load_harness({**EMPTY.files, "action/rerank.yaml": text.encode()})
    assert "rerank" not in {p.kind for p in MiningEstimator(limit=99).propose(failures, mine)}
    other = load_harness({**EMPTY.files, "action/vote.yaml": text.encode()})
    assert "rerank" not in {p.kind for p in MiningEstimator(limit=99).propose(failures, other)}


def hint(text: str) -> MiningEstimator:
    def mine(view: View) -> list[Idea]:
        clues = (Clue(view.failed[0], 0, "why"),)
        return [Idea("prompt", "contract", "hint", "A hint.", (Variant({"text": text}),), LABELS, 1.0, clues, False)]

    return MiningEstimator(miners={"hint": mine})


def test_a_leak_is_refused_with_its_reason() -> None:
    failures = Failures(
        run(episode("a", ("x", "y"), instruction="Find Karenina."), episode("b", ("x", "y"), instruction="Find Bob."))
    )
    proposals = hint("Karenina is at home.").propose(failures, EMPTY)
    assert len(proposals) == 0
    assert "'Karenina', which only task a knows" in proposals.refused[0][1]
    assert len(hint("Somebody is at home.").propose(failures, EMPTY)) == 1


def test_an_intervention_that_disturbs_what_was_solved_counts_less() -> None:
    rewrite = {"pattern": "mug", "replacement": "pan"}

    def mine(view: View) -> list[Idea]:
        return [Idea("rewrite", "action", "pan", "Pans.", (Variant(rewrite),), LABELS, 1.0, None, False)]

    lost = episode("a", ("take mug", "no"))
    hurt = Failures(run(lost, episode("b", ("take mug", "ok"), solved=True)))
    both = {"pan": mine, "hint": hint("Look.").miners["hint"]}
    assert [p.kind for p in MiningEstimator(miners=both).propose(hurt, EMPTY)] == ["prompt", "rewrite"]


SCRIPT = """
import sys; sys.path.insert(0, {here!r})
from tests.trainer.test_mining_estimator import mixed, EMPTY
from harnesslab.trainer.estimators import MiningEstimator
for p in MiningEstimator(limit=99).propose(mixed(), EMPTY): print(p.to_json())
"""


def test_the_order_does_not_hang_on_hash_seeds() -> None:
    here = str(Path(__file__).parents[2])
    outputs = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT.format(here=here)], env=env, capture_output=True, text=True, check=True
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1 and "rerank" in outputs.pop()


@pytest.mark.parametrize("path", sorted(Path(mining.__file__).parent.rglob("*.py")), ids=lambda path: path.stem)
def test_no_miner_knows_an_environment(path: Path) -> None:
    words = r"kitchen|dbbench|agentbench|fridge|\bmug\b|execute_sql|commit_final|smollm|qwen|harnesslab_envs"
    assert re.findall(words, path.read_text(encoding="utf-8"), re.IGNORECASE) == []


TEXT = st.text(max_size=25) | st.sampled_from(["Error: no such x", "take mug", "Action: take mug", "```", '{"a":'])
CALL = st.fixed_dictionaries(
    {"name": st.sampled_from(["run", "end"])}, optional={"arguments": st.dictionaries(TEXT, TEXT | st.integers())}
)
STEP = st.tuples(
    st.none() | TEXT | CALL,
    TEXT,
    st.fixed_dictionaries(
        {"raw": TEXT, "invalid": st.booleans(), "choices": st.integers(0, 3)},
        optional={"admissible": st.none() | st.lists(TEXT, max_size=3).map(tuple)},
    ),
)
EPISODE = st.tuples(
    st.sampled_from("abc"), st.lists(STEP, max_size=5), TEXT, st.booleans(), st.sampled_from([(), ("end", "run")])
)


@settings(max_examples=60, deadline=None)
@given(st.lists(EPISODE, max_size=4))
def test_no_run_breaks_the_mining(drawn: list) -> None:
    made = [
        episode(task, *moves, instruction=text, solved=solved, tools=tools, budget=6)
        for task, moves, text, solved, tools in drawn
    ]
    failures = Failures(run(*made))
    proposals = MiningEstimator(limit=99).propose(failures, EMPTY)
    for proposal in proposals:
        harness_with(proposal)
        assert "<script" not in proposal._repr_html_()
    assert [p.to_json() for p in MiningEstimator(limit=99).propose(failures, EMPTY)] == [p.to_json() for p in proposals]


@pytest.mark.parametrize(
    ("kind", "layer", "label", "strength"),
    [
        ("prompt", "contract", "no such label", 1.0),
        ("prompt", "nowhere", LABELS[0], 1.0),
        ("no_kind", "contract", LABELS[0], 1.0),
        ("prompt", "contract", LABELS[0], float("nan")),
    ],
)
def test_an_idea_with_an_unknown_field_is_refused(kind: str, layer: Any, label: Any, strength: float) -> None:
    with pytest.raises(ConfigError, match="of a miner has"):
        Idea(kind, layer, "hint", "A hint.", (Variant(),), (label,), strength)


@pytest.mark.parametrize("count", [9, 12, 24])
def test_a_screening_is_offered_many_different_proposals(tmp_path: Path, count: int) -> None:
    def many(messages: Any) -> str:
        dice = random.Random(str(messages[-1]) + str(len(messages)))
        said = [
            "open fridge",
            "I would look",
            "Action: look",
            "Action: walk to rack",
            "Action: head to Rack",
            "Action: cup",
        ]
        return dice.choice([*said, "Action: take cup", "no no no", "Action: run to table"])

    lab = hl.Lab.open(tmp_path / "kitchen", env="kitchen")
    made = hl.Trainer(
        lab,
        hl.LLM.scripted(many),
        hl.MiningEstimator(),
        design=hl.Screening(proposals=count),
        settings={"progress": False},
    )
    offered = made.propose(made.diagnose(made.measure()))
    assert min(count, 12) <= len(offered) <= count
    assert len({proposal.content for proposal in offered}) == len(offered)
    assert len({(proposal.kind, *proposal.changes.values()) for proposal in offered}) == len(offered)
    assert len({tuple(proposal.changes) for proposal in offered}) >= min(count, 12), "alternatives come last"
    eight = hl.Trainer(lab, made.llm, hl.MiningEstimator(), settings={"progress": False})
    few = eight.propose(eight.diagnose(eight.measure()))
    assert len(few) <= 8 and len({tuple(proposal.changes) for proposal in few}) == len(few), "one rung of each ladder"
