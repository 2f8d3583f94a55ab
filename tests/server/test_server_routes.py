"""What each endpoint answers, on a real server."""

from __future__ import annotations

import contextlib
import io
import shlex
import zipfile
from pathlib import Path
from typing import Any

import labmaker
import pytest

from harnesslab.ledger import Ledger
from harnesslab.magics import _parser
from harnesslab.server.core import columns
from harnesslab.server.core.trajectories import _parting
from harnesslab.store import LabRepo, RunStore

LAB = "labs/kitchen"
REF = "refs/harnesslab/{}/{}"


async def test_labs_are_found_below_the_root(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    labmaker.make_foreign(jp_root_dir / "old" / "swe")
    (jp_root_dir / "plain" / ".git").mkdir(parents=True)
    _, answer = await fetch("labs")
    assert [(item["path"], item["kind"]) for item in answer["items"]] == [
        ("labs/kitchen", "lab"),
        ("old/swe", "harness-training"),
    ]
    assert not answer["truncated"]
    _, answer = await fetch("labs", roots="old\nnowhere", depth=1)
    assert [item["path"] for item in answer["items"]] == ["old/swe"]
    assert len(answer["problems"]) == 1 and "nowhere" in answer["problems"][0]
    _, answer = await fetch("labs", depth=1)
    assert answer["items"] == []


async def test_the_overview_tells_of_the_baseline(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    (jp_root_dir / LAB / "contract" / "base.yaml").write_text("kind: prompt\ntext: mine\n", encoding="utf-8")
    status, answer = await fetch("lab", lab=LAB)
    assert status == 200
    baseline = answer["baseline"]
    assert baseline["commit"] == labmaker.git(jp_root_dir / LAB, "rev-parse", "main")
    assert baseline["score"] == {"solved": 5, "total": 6, "split": "gate"}
    assert (baseline["backbone"], baseline["environment"]) == ("smollm2-135m", "kitchen")
    assert answer["counts"] == {"pending": 3, "rejected": 2, "promoted": 2}
    assert answer["dirty"] == ["contract/base.yaml"]
    assert answer["running"] is None


async def test_the_history_has_solved_counts(fetch: Any, lab: dict[str, str]) -> None:
    _, answer = await fetch("history", lab=LAB)
    rows = [(item["subject"], item["kind"], item["solved"], item["total"]) for item in answer["items"]]
    assert rows == [
        ("regulation/loop", "promotion", 5, 6),
        ("action/snap", "promotion", 3, 6),
        ("Start the lab", "other", 1, 6),
    ]
    assert not answer["more"]
    _, answer = await fetch("history", lab=LAB, limit=1, offset=1)
    assert [(item["subject"], item["solved"]) for item in answer["items"]] == [("action/snap", 3)]
    assert answer["more"]


PAGES: tuple[tuple[dict[str, Any], list[str]], ...] = (
    ({"state": "rejected"}, ["doubted", "lost"]),
    ({"state": "rejected", "order": "asc"}, ["lost", "doubted"]),
    ({"state": "rejected", "sort": "delta"}, ["doubted", "lost"]),
    ({"state": "rejected", "sort": "delta", "order": "asc"}, ["lost", "doubted"]),
    ({"state": "rejected", "layer": "regulation"}, ["lost"]),
    ({"state": "rejected", "decider": "person"}, ["doubted"]),
    ({"state": "rejected", "decider": "criterion"}, ["lost"]),
    ({"state": "rejected", "reason": "WORDY"}, ["doubted"]),
    ({"state": "rejected", "text": "repeat"}, ["lost"]),
    ({"state": "rejected", "text": "' OR 1=1 --"}, []),
    ({"state": "pending"}, ["undecided", "markup", "pending"]),
    ({"state": "pending", "limit": 1, "offset": 1}, ["markup"]),
    ({"state": "promoted"}, ["second", "first"]),
)


async def test_refs_are_filtered_sorted_and_paged(fetch: Any, lab: dict[str, str]) -> None:
    names = {value: name for name, value in lab.items()}
    for query, expected in PAGES:
        _, answer = await fetch("refs", lab=LAB, **query)
        assert [names[row["id"]] for row in answer["items"]] == expected, query
        assert answer["total"] == (3 if "limit" in query else len(expected)), query


async def test_a_rejected_ref_says_why(fetch: Any, lab: dict[str, str]) -> None:
    _, answer = await fetch("refs", lab=LAB, state="rejected")
    doubted, lost = answer["items"]
    assert (doubted["who"], doubted["decided_by"], doubted["why"]) == ("Ada", "person", "Too wordy for this model")
    assert (lost["delta"], lost["loss"], lost["decision"]) == (-1, "Infinity", "reject")
    assert lost["why"] == f"loses t0 {labmaker.MARKUP}", "text is passed on as it is; the browser shows it as text"
    assert (lost["layer"], lost["state"]) == ("regulation", "rejected")


async def test_a_ref_in_full(fetch: Any, lab: dict[str, str]) -> None:
    _, answer = await fetch("ref", lab=LAB, ref=REF.format("promoted", lab["second"]))
    assert answer["evidence"][0]["task"] == "t0" and answer["prediction"]["flips"] == ["t1"]
    tasks = {row["task"]: row for row in answer["tasks"]}
    assert set(tasks) == set(labmaker.TASKS)
    assert [row["task"] for row in answer["tasks"][:2]] == ["t3", "t4"], "flips come first"
    assert tasks["t3"] == {
        "task": "t3", "baseline": False, "candidate": True, "flip": True, "incidental": False, "predicted": False, "seen": True,
    }  # fmt: skip
    assert (tasks["t5"]["baseline"], tasks["t5"]["candidate"], tasks["t5"]["flip"]) == (False, False, False)
    assert answer["verdict"]["metrics"][0] == {"name": "invalid", "baseline": 3.0, "candidate": 1.0}
    assert {"name": "backbone.model", "value": "smollm2-135m"} in answer["verdict"]["identity"]
    assert answer["actions"] == ["undo"]


async def test_a_ref_is_found_where_it_has_moved_to(fetch: Any, lab: dict[str, str]) -> None:
    _, answer = await fetch("ref", lab=LAB, ref=REF.format("candidates", lab["lost"]))
    assert answer["row"]["ref"] == REF.format("rejected", lab["lost"])
    _, by_commit = await fetch("ref", lab=LAB, ref=answer["row"]["commit"])
    assert by_commit["row"] == answer["row"]


async def test_a_commit_that_is_no_candidate(fetch: Any, lab: dict[str, str]) -> None:
    _, answer = await fetch("ref", lab=LAB, ref=lab["start"])
    assert (answer["row"]["state"], answer["parent"], answer["actions"]) == ("commit", None, ["rollback"])


async def test_incidental_flips_are_marked(fetch: Any, lab: dict[str, str]) -> None:
    _, answer = await fetch("ref", lab=LAB, ref=REF.format("candidates", lab["undecided"]))
    flips = {row["task"]: row["incidental"] for row in answer["tasks"] if row["flip"]}
    assert flips == {"t0": False, "t5": True}
    assert answer["actions"] == ["promote", "reject", "undo"]


async def test_any_two_refs_can_be_compared(fetch: Any, lab: dict[str, str]) -> None:
    _, answer = await fetch("diff", lab=LAB, base=lab["start"], head="HEAD")
    files = {file["path"]: file for file in answer["files"]}
    assert set(files) == {"action/snap.yaml", "regulation/loop.yaml"}
    assert files["action/snap.yaml"]["status"] == "added" and files["action/snap.yaml"]["base_text"] == ""
    _, back = await fetch("diff", lab=LAB, base="HEAD", head=REF.format("rejected", lab["doubted"]))
    assert {file["path"]: file["status"] for file in back["files"]} == {
        "action/snap.yaml": "deleted", "regulation/loop.yaml": "deleted", "contract/base.yaml": "modified",
    }  # fmt: skip


async def test_trajectories_part_where_they_differ(fetch: Any, lab: dict[str, str]) -> None:
    ref = REF.format("promoted", lab["second"])
    _, answer = await fetch("trajectories", lab=LAB, ref=ref, task="t3")
    assert answer["parting"] == 1
    assert (answer["baseline"]["solved"], answer["candidate"]["solved"]) == (False, True)
    assert answer["candidate"]["steps"][1]["fired"] == ["action/snap"]
    assert labmaker.MARKUP in answer["baseline"]["steps"][0]["observation"]
    _, same = await fetch("trajectories", lab=LAB, ref=ref, task="t0")
    assert same["parting"] is None
    _, none = await fetch("trajectories", lab=LAB, ref=ref, task="no such task")
    assert none["baseline"] is None and none["candidate"] is None


STEP = {"observation": "a door", "raw": "open", "action": "open", "executed": True, "result": "it opens", "fired": []}


@pytest.mark.parametrize(
    ("name", "value", "parting"),
    [
        ("fired", ["action/snap"], None),
        ("observation", "a gate", 1),
        ("raw", "push", 1),
        ("action", "push", 1),
        ("executed", False, 1),
        ("result", "it is locked", 1),
    ],
)
def test_steps_part_by_what_was_done_and_not_by_what_fired(name: str, value: Any, parting: int | None) -> None:
    assert _parting([STEP, STEP], [STEP | {"fired": ["contract/base"]}, STEP | {name: value}]) == parting


async def test_a_step_in_full(fetch: Any, lab: dict[str, str]) -> None:
    ref = REF.format("promoted", lab["second"])
    _, pair = await fetch("trajectories", lab=LAB, ref=ref, task="t3")
    _, answer = await fetch("step", lab=LAB, episode=pair["candidate"]["episode"], index=1)
    assert '"temperature": 0' in answer["request"] and "go to the kitchen" in answer["replies"]
    for episode, index in ((pair["candidate"]["episode"], 99), ("1 OR 1", 0), ("99999", 0)):
        status, problem = await fetch("step", lab=LAB, episode=episode, index=index)
        assert (status, problem["code"]) == (404, "not_found")


async def test_a_candidate_as_a_cell(fetch: Any, lab: dict[str, str]) -> None:
    _, answer = await fetch("cell", lab=LAB, ref=REF.format("rejected", lab["lost"]))
    assert answer["source"] == (
        "%%intervention regulation/stop.yaml --about 'Stop at the first repeat'\nkind: stagnation\nafter: 1\n"
    )
    _, opens = await fetch("cell", lab=LAB, ref="HEAD", notebook="notebooks/deep/01.ipynb")
    assert "hl.Lab.open('../../labs/kitchen')" in opens["source"]


@pytest.mark.parametrize(
    ("about", "line"),
    [
        ("Don't stop", """skill/odd.yaml --about 'Don'"'"'t stop'"""),
        ("{__import__('os').getcwd()}", "skill/odd.yaml"),
        ("$HOME and\nmore", "skill/odd.yaml"),
    ],
)
async def test_the_line_of_a_cell_holds_nothing_that_would_run(
    fetch: Any, jp_root_dir: Path, lab: dict[str, str], about: str, line: str
) -> None:
    repo = LabRepo.open(jp_root_dir / LAB)
    made = labmaker.propose(repo, "skill/odd.yaml", "kind: prompt\nparams: {text: Go.}\n", about)
    repo.close()
    _, answer = await fetch("cell", lab=LAB, ref=REF.format("candidates", made.id))
    first, _, body = answer["source"].partition("\n")
    assert (first, body) == (f"%%intervention {line}", "kind: prompt\nparams: {text: Go.}\n")
    parsed = _parser().parse_args(shlex.split(line))
    assert (parsed.path, parsed.about) == ("skill/odd.yaml", about if "--about" in line else "")


async def test_a_harness_as_a_zip(fetch: Any, lab: dict[str, str]) -> None:
    status, data = await fetch("export", lab=LAB, ref=REF.format("promoted", lab["first"]))
    assert status == 200
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert sorted(archive.namelist()) == ["action/snap.yaml", "contract/base.yaml", "harness.toml"]
        assert archive.read("action/snap.yaml") == b"kind: snap\nthreshold: 80\n"


async def settled(fetch: Any) -> dict[str, Any]:
    """What `live` says once it says the same twice: time stamps are not trusted for the first 50 ms."""
    for _ in range(200):
        _, before = await fetch("live", lab=LAB)
        _, again = await fetch("live", lab=LAB)
        if before == again:
            return dict(before)
    raise AssertionError("the version never comes to rest")


async def test_live_follows_a_run(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    before = await settled(fetch)
    assert before["running"] is None
    store = RunStore.open(jp_root_dir / LAB)
    store.set_progress("measure", "gate", 3, 12, {"note": "candidate: 2 of 3 solved", "run": "r"})
    _, during = await fetch("live", lab=LAB)
    assert during["running"] | {"updated": ""} == {
        "what": "gate", "note": "candidate: 2 of 3 solved", "run": "r", "done": 3, "total": 12, "updated": "", "stale": False,
    }  # fmt: skip
    assert during["version"] == before["version"], "progress alone must not make the lists load again"
    run = store.begin_run("c" * 40, labmaker.IDENTITY, split="gate")
    _, begun = await fetch("live", lab=LAB)
    store.finish_run(run)
    store.close()
    _, ended = await fetch("live", lab=LAB)
    assert len({before["version"], begun["version"], ended["version"]}) == 3


async def test_live_sees_every_change_of_refs(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    repo = LabRepo.open(jp_root_dir / LAB)
    seen = {(await fetch("live", lab=LAB))[1]["version"]}
    changes = (
        lambda: Ledger(repo).reject(lab["pending"], {"reason": "no", "decided_by": "person", "who": "x"}),
        lambda: Ledger(repo).undo(lab["pending"]),
        lambda: labmaker.propose(repo, "skill/new.yaml", "kind: procedure\ntext: new\n", "New"),
        lambda: Ledger(repo).promote(lab["pending"], {"reason": "yes"}),
        lambda: Ledger(repo).rollback(lab["start"]),
    )
    for count, change in enumerate(changes, start=2):
        change()
        seen.add((await fetch("live", lab=LAB))[1]["version"])
        assert len(seen) == count


async def test_a_look_starts_no_record(fetch: Any, jp_root_dir: Path) -> None:
    LabRepo.create(jp_root_dir / "fresh", labmaker.STARTER).close()
    for name in ("lab", "live", "history", "refs"):
        status, _ = await fetch(name, lab="fresh")
        assert status == 200
    assert not (jp_root_dir / "fresh" / ".harnesslab").exists()


async def test_foreign_repositories_are_read_only(fetch: Any, jp_root_dir: Path) -> None:
    labmaker.make_foreign(jp_root_dir / "swe")
    _, answer = await fetch("lab", lab="swe")
    assert answer["counts"] == {"pending": 0, "rejected": 1, "promoted": 1}
    _, rejected = await fetch("refs", lab="swe", state="rejected")
    assert [row["name"] for row in rejected["items"]] == ["Try bad"]
    ref = rejected["items"][0]["ref"]
    _, detail = await fetch("ref", lab="swe", ref=ref)
    assert detail["read_only"] and detail["actions"] == []
    _, cell = await fetch("cell", lab="swe", ref=ref, notebook="notebooks/01.ipynb")
    compile(cell["source"], "cell", "exec")
    assert "list_foreign('../swe')" in cell["source"]
    _, diff = await fetch("diff", lab="swe", base=detail["parent"], head=ref)
    assert diff["files"][0]["head_text"] == "PROMPT = 'c'\n"
    _, history = await fetch("history", lab="swe")
    assert [item["subject"] for item in history["items"]] == ["Try good"]
    status, problem = await fetch("plan", lab="swe", action="reject", ref=ref)
    assert (status, problem["code"]) == (409, "read_only")
    before = labmaker.git(jp_root_dir / "swe", "for-each-ref")
    body = {"lab": "swe", "action": "reject", "ref": ref, "why": "x", "expect": {"baseline": "a", "ref": "b"}}
    status, problem = await fetch("actions", body)
    assert (status, problem["code"]) == (409, "read_only")
    assert labmaker.git(jp_root_dir / "swe", "for-each-ref") == before


async def test_a_measured_candidate_has_its_verdict(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    with contextlib.closing(LabRepo.open(jp_root_dir / LAB)) as repo:
        candidate = repo.candidate(lab["pending"])
        said = labmaker.verdict(candidate, {"baseline": ["t0"], "candidate": ["t0", "t1"]}, "promote", why="gains t1")
        Ledger(repo).measured(candidate.id, said)
    _, page = await fetch("refs", lab=LAB, state="pending", reason="gains")
    [row] = page["items"]
    assert (row["state"], row["decision"], row["delta"], row["why"]) == ("measured", "promote", 1, "gains t1")
    assert (row["decided_by"], row["when"], row["override"]) == (None, None, False)
    assert {"name": "verdict", "value": "promote", "listed": True} in row["columns"]
    _, detail = await fetch("ref", lab=LAB, ref=row["ref"])
    assert detail["verdict"]["criterion"] == "StrictPareto" and len(detail["tasks"]) == 2
    assert detail["actions"] == ["promote", "reject", "shelve"]


async def test_a_column_is_declared_once(fetch: Any, lab: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    cost = columns.Column("model_calls", lambda _, verdict: verdict and verdict.cost.get("calls"), listed=True)
    monkeypatch.setattr(columns, "COLUMNS", (*columns.COLUMNS, cost))
    cell = {"name": "model_calls", "value": "44", "listed": True}
    for state, count in (("rejected", 2), ("pending", 1)):
        _, page = await fetch("refs", lab=LAB, state=state)
        assert [row["columns"][-1] for row in page["items"]].count(cell) == count
    _, detail = await fetch("ref", lab=LAB, ref=REF.format("rejected", lab["lost"]))
    assert cell in detail["row"]["columns"]
