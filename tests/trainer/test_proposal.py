"""Proposals: changed files, their diff, their identity, and how they show themselves."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from harnesslab.trainer.proposal import Evidence, Prediction, Proposal, Proposals, layer_of

TEXT = st.text(st.characters(codec="utf-8"))
EVIL = "<img src=x onerror=alert(1)>"
PROPOSAL = Proposal(
    changes={"action/snap.yaml": "kind: snap\n"},
    layer="action",
    kind="snap",
    name="action/snap",
    about="Snap to the nearest admissible action.",
    evidence=tuple(Evidence(f"t{n}", n, 2, "go to fridge") for n in range(7)),
    prediction=Prediction(("t1", "t2"), "action/snap"),
    estimator="mining",
)


def test_diff_shows_new_changed_and_deleted_files() -> None:
    proposal = Proposal({"a.txt": "one\n", "b.txt": "new\n", "c.txt": None}, "base", "edit", "base/edit", "")
    assert proposal.diff({"b.txt": b"old\n", "c.txt": b"gone\n"}) == (
        "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n"
        "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-old\n+new\n"
        "--- a/c.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    )


def test_diff_marks_a_missing_newline() -> None:
    assert "+x\n\\ No newline at end of file\n" in Proposal({"a": "x"}, "base", "edit", "base/a", "").diff()


def test_apply_adds_replaces_and_deletes() -> None:
    proposal = Proposal({"a": "1", "b": None}, "base", "edit", "base/a", "")
    assert proposal.apply({"b": b"2", "c": b"3"}) == {"a": b"1", "c": b"3"}


def test_content_depends_on_the_changes_alone() -> None:
    other = Proposal(dict(PROPOSAL.changes), "action", "snap", "action/other", "Said otherwise.")
    assert other.content == PROPOSAL.content
    assert Proposal({"action/snap.yaml": None}, "action", "snap", "x", "").content != PROPOSAL.content


@given(st.dictionaries(TEXT, st.none() | TEXT, max_size=3), TEXT, TEXT)
def test_json_round_trip(changes: dict, about: str, what: str) -> None:
    made = Proposal(changes, "action", "snap", "action/x", about, (Evidence("t", None, 0, what),), Prediction(("t",)))
    assert Proposal.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert made.apply({}) == {path: text.encode() for path, text in changes.items() if text is not None}


def test_plain_text_names_evidence_prediction_and_change() -> None:
    text = repr(PROPOSAL)
    assert "evidence: t0, episode 0, step 2: go to fridge" in text
    assert "... and 2 more" in text
    assert "should flip 2: t1, t2" in text
    assert "+kind: snap" in text


def test_markup_is_escaped_everywhere() -> None:
    proof, hope = (Evidence(EVIL, 1, 0, EVIL),), Prediction((EVIL,), EVIL)
    evil = Proposal({EVIL: EVIL}, EVIL, EVIL, EVIL, EVIL, proof, hope, EVIL)
    for html in (evil._repr_html_(), Proposals([evil], [(EVIL, EVIL)])._repr_html_()):
        assert "<img" not in html
        assert "&lt;img" in html


def test_proposals_are_a_sequence_that_keeps_what_was_refused() -> None:
    proposals = Proposals([PROPOSAL, PROPOSAL], [("skill/x", "it names one task")])
    assert (len(proposals), proposals[0], list(proposals)) == (2, PROPOSAL, [PROPOSAL, PROPOSAL])
    assert isinstance(proposals[:1], Proposals) and len(proposals[:1]) == 1
    assert "refused skill/x: it names one task" in repr(proposals)
    assert repr(proposals).startswith("2 proposals\n") and repr(proposals[:1]).startswith("1 proposal\n")


def test_the_layer_of_a_path() -> None:
    assert [layer_of(p) for p in ("action/a.yaml", "harness.toml", "notes/a.md")] == ["action", "base", "base"]
