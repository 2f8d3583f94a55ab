"""Actions: the plan says what git will do, the action does that and nothing else, undo takes it back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import labmaker
import pytest

LAB = "labs/kitchen"
OPEN = "refs/harnesslab/candidates/{}"
REJECTED = "refs/harnesslab/rejected/{}"
PROMOTED = "refs/harnesslab/promoted/{}"


@pytest.fixture
def folder(jp_root_dir: Path, lab: dict[str, str]) -> Path:
    """The lab's folder."""
    return jp_root_dir / LAB


@pytest.fixture
def do(fetch: Any, lab: dict[str, str]) -> Any:
    """Plan, then act as planned; gives (status, body)."""

    async def act(
        action: str, ref: str, why: str = "because", changed: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        status, plan = await fetch("plan", lab=LAB, action=action, ref=ref)
        assert status == 200, plan
        body = {"lab": LAB, "action": action, "ref": ref, "why": why, "expect": plan["expect"] | (changed or {})}
        return await fetch("actions", body)

    return act


def refs(folder: Path) -> dict[str, str]:
    """Every ref but the notes."""
    lines = labmaker.git(folder, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return {name: commit for name, commit in map(str.split, lines) if not name.startswith("refs/notes/")}


def note(folder: Path, ref: str) -> dict[str, Any]:
    """The verdict on a ref."""
    verdict: dict[str, Any] = json.loads(labmaker.git(folder, "notes", "--ref=harnesslab", "show", ref))
    return verdict


async def test_accept_fast_forwards(do: Any, folder: Path, lab: dict[str, str]) -> None:
    before = refs(folder)
    status, done = await do("promote", OPEN.format(lab["pending"]))
    assert status == 200 and done["ref"] == PROMOTED.format(lab["pending"])
    commit = before.pop(OPEN.format(lab["pending"]))
    assert refs(folder) == before | {"refs/heads/main": commit, PROMOTED.format(lab["pending"]): commit}
    verdict = note(folder, commit)
    assert (verdict["decided_by"], verdict["why"], verdict["override"]) == ("person", "because", False)
    assert verdict["who"]
    assert (folder / "skill" / "recipe.yaml").is_file(), "the checkout follows"
    assert "Teach the recipe" in (folder / "learning.md").read_text(encoding="utf-8")


async def test_undo_takes_an_acceptance_back(do: Any, folder: Path, lab: dict[str, str]) -> None:
    before = refs(folder)
    _, done = await do("promote", OPEN.format(lab["pending"]))
    status, undone = await do("undo", done["undo"])
    assert status == 200 and undone["undo"] is None
    assert refs(folder) == before
    assert not (folder / "skill" / "recipe.yaml").exists()


async def test_reject_keeps_the_ref_and_the_reason(do: Any, folder: Path, lab: dict[str, str]) -> None:
    before = refs(folder)
    status, done = await do("reject", OPEN.format(lab["undecided"]), why="  too slow  ")
    assert status == 200
    commit = before.pop(OPEN.format(lab["undecided"]))
    assert refs(folder) == before | {REJECTED.format(lab["undecided"]): commit}
    verdict = note(folder, commit)
    assert verdict["why"] == "too slow" and verdict["criterion"] == "StrictPareto", "the measurement stays"
    assert verdict["history"][0]["state"] == "undecided"
    _, again = await do("undo", done["undo"])
    assert again["ref"] == OPEN.format(lab["undecided"])


async def test_a_decision_needs_a_reason(do: Any, folder: Path, lab: dict[str, str]) -> None:
    await do("reject", OPEN.format(lab["markup"]))
    before = refs(folder)
    for action, ref in (
        ("promote", OPEN.format(lab["pending"])),
        ("reject", OPEN.format(lab["pending"])),
        ("rollback", PROMOTED.format(lab["first"])),
        ("override", REJECTED.format(lab["markup"])),
    ):
        status, problem = await do(action, ref, why=" ")
        assert (status, problem["code"]) == (400, "bad_request"), action
    assert refs(folder) == before


async def test_override_is_recorded_as_one(do: Any, fetch: Any, folder: Path, lab: dict[str, str]) -> None:
    await do("reject", OPEN.format(lab["pending"]), why="first thought")
    status, done = await do("override", REJECTED.format(lab["pending"]), why="second thought")
    assert status == 200 and done["ref"] == PROMOTED.format(lab["pending"])
    verdict = note(folder, done["ref"])
    assert (verdict["override"], verdict["decided_by"], verdict["why"]) == (True, "person", "second thought")
    assert verdict["history"][0]["why"] == "first thought"
    _, page = await fetch("refs", lab=LAB, state="promoted", decider="person")
    assert [row["override"] for row in page["items"]] == [True]


async def test_rollback_is_a_new_commit(do: Any, folder: Path, lab: dict[str, str]) -> None:
    before = refs(folder)
    status, done = await do("rollback", PROMOTED.format(lab["first"]))
    assert status == 200
    after = refs(folder)
    assert after | {"refs/heads/main": ""} == before | {"refs/heads/main": ""}, "no other ref moves"
    assert labmaker.git(folder, "rev-parse", "main~1") == before["refs/heads/main"]
    assert labmaker.git(folder, "rev-parse", "main^{tree}") == labmaker.git(
        folder, "rev-parse", f"{PROMOTED.format(lab['first'])}^{{tree}}"
    )
    assert not (folder / "regulation" / "loop.yaml").exists()
    status, _ = await do("undo", done["undo"])
    assert status == 200 and (folder / "regulation" / "loop.yaml").is_file()
    assert labmaker.git(folder, "rev-list", "--count", "main") == "5", "undone by another commit, nothing lost"


async def test_rollback_to_the_start(do: Any, folder: Path, lab: dict[str, str]) -> None:
    status, _ = await do("rollback", lab["start"])
    assert status == 200 and not (folder / "action").exists()


async def test_retry_makes_a_new_candidate(do: Any, fetch: Any, folder: Path, lab: dict[str, str]) -> None:
    before = refs(folder)
    status, done = await do("retry", REJECTED.format(lab["doubted"]), why="")
    assert status == 200 and done["undo"] is None
    after = refs(folder)
    assert set(after) - set(before) == {done["ref"]} and done["ref"].startswith("refs/harnesslab/candidates/")
    assert labmaker.git(folder, "rev-parse", f"{done['ref']}~1") == before["refs/heads/main"]
    _, detail = await fetch("ref", lab=LAB, ref=done["ref"])
    assert detail["row"]["state"] == "pending" and detail["row"]["layer"] == "contract"


async def test_a_conflict_is_shown(do: Any, fetch: Any, folder: Path, lab: dict[str, str]) -> None:
    (folder / "contract" / "base.yaml").write_text("kind: prompt\ntext: Quite another thing.\n", encoding="utf-8")
    labmaker.commit(folder, "By hand")
    before = refs(folder)
    status, problem = await do("retry", REJECTED.format(lab["doubted"]))
    assert (status, problem["code"]) == (409, "conflict")
    assert "contract/base.yaml" in problem["message"] and "<<<<<<<" in problem["message"]
    assert refs(folder) == before


async def test_a_lab_that_has_changed_since_is_left_alone(do: Any, folder: Path, lab: dict[str, str]) -> None:
    before = refs(folder)
    for changed in ({"baseline": lab["start"]}, {"ref": lab["start"]}):
        status, problem = await do("promote", OPEN.format(lab["pending"]), changed=changed)
        assert (status, problem["code"]) == (409, "moved")
    assert refs(folder) == before


async def test_what_cannot_be_done_says_why(do: Any, fetch: Any, folder: Path, lab: dict[str, str]) -> None:
    before = refs(folder)
    for action, ref, words in (
        ("override", REJECTED.format(lab["lost"]), "retry it"),
        ("promote", PROMOTED.format(lab["first"]), "promoted already"),
        ("reject", REJECTED.format(lab["lost"]), "rejected already"),
        ("undo", OPEN.format(lab["pending"]), "not decided"),
        ("undo", PROMOTED.format(lab["first"]), "roll the baseline back"),
        ("rollback", REJECTED.format(lab["lost"]), "not in the baseline's history"),
        ("rollback", PROMOTED.format(lab["second"]), "exactly these files"),
    ):
        _, plan = await fetch("plan", lab=LAB, action=action, ref=ref)
        assert not plan["allowed"] and words in " ".join(plan["steps"])
        status, problem = await do(action, ref)
        assert (status, problem["code"]) == (409, "refused") and words in problem["message"]
    assert refs(folder) == before


async def test_a_plan_names_the_refs_and_the_edited_files(fetch: Any, folder: Path, lab: dict[str, str]) -> None:
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    _, plan = await fetch("plan", lab=LAB, action="promote", ref=OPEN.format(lab["pending"]))
    text = "\n".join(plan["steps"])
    for words in (
        "Fast-forward refs/heads/main",
        PROMOTED.format(lab["pending"]),
        "refs/notes/harnesslab",
        "notes.txt",
    ):
        assert words in text
    assert plan["needs_why"] and plan["undo"]


async def test_edited_files_survive_an_acceptance(do: Any, folder: Path, lab: dict[str, str]) -> None:
    edited = folder / "contract" / "base.yaml"
    edited.write_text("kind: prompt\ntext: mine\n", encoding="utf-8")
    status, _ = await do("promote", OPEN.format(lab["pending"]))
    assert status == 200 and edited.read_text(encoding="utf-8") == "kind: prompt\ntext: mine\n"


async def test_the_last_decision_is_offered_for_undo(do: Any, fetch: Any, lab: dict[str, str]) -> None:
    await do("reject", OPEN.format(lab["markup"]))
    _, overview = await fetch("lab", lab=LAB)
    assert overview["undo"]["ref"] == REJECTED.format(lab["markup"])
    await do("undo", overview["undo"]["ref"])
    _, overview = await fetch("lab", lab=LAB)
    assert overview["undo"] == {"label": "action/rank (undecided)", "ref": OPEN.format(lab["undecided"])}
    _, done = await do("rollback", PROMOTED.format(lab["first"]))
    _, overview = await fetch("lab", lab=LAB)
    assert overview["undo"]["ref"] == done["ref"]
