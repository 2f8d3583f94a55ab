"""Trouble with a lab is a status, a code and a sentence; never a traceback, never a hang."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import labmaker
import pytest

from harnesslab.server.handlers import SETTING
from harnesslab.server.problems import STATUS, Problem, problem_of
from harnesslab.store import LabRepo

LAB = "labs/kitchen"


async def test_a_vanished_lab(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    status, _ = await fetch("lab", lab=LAB)
    assert status == 200
    shutil.rmtree(jp_root_dir / LAB)
    for name in ("lab", "live", "refs"):
        status, problem = await fetch(name, lab=LAB)
        assert (status, problem["code"]) == (410, "vanished")


async def test_a_folder_without_a_lab(fetch: Any, jp_root_dir: Path) -> None:
    (jp_root_dir / "plain").mkdir()
    status, problem = await fetch("lab", lab="plain")
    assert (status, problem["code"]) == (404, "not_a_lab") and "Lab.open" in problem["message"]


async def test_a_lab_that_was_made_anew_is_not_mixed_up(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    await fetch("refs", lab=LAB)
    shutil.rmtree(jp_root_dir / LAB)
    LabRepo.create(jp_root_dir / LAB, labmaker.STARTER).close()
    _, answer = await fetch("refs", lab=LAB)
    assert answer["total"] == 0
    _, answer = await fetch("lab", lab=LAB)
    assert answer["baseline"]["score"] is None


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="needs the right to give a folder away")
async def test_a_repository_of_another_user(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    for place in (jp_root_dir / LAB, *(jp_root_dir / LAB).rglob("*")):
        os.chown(place, 12345, 12345)
    status, problem = await fetch("lab", lab=LAB)
    assert (status, problem["code"]) == (409, "ownership")
    assert "safe.directory" in problem["message"]


async def test_a_corrupt_repository(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    for pack in (jp_root_dir / LAB / ".git" / "objects").rglob("*"):
        if pack.is_file():
            pack.chmod(0o644)
            pack.write_bytes(b"rubbish")
    status, problem = await fetch("lab", lab=LAB)
    assert (status, problem["code"]) == (422, "corrupt") and "git fsck" in problem["message"]


async def test_a_database_from_the_future(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    with sqlite3.connect(jp_root_dir / LAB / ".harnesslab" / "lab.db") as db:
        db.execute("PRAGMA user_version = 999")
    status, problem = await fetch("lab", lab=LAB)
    assert (status, problem["code"]) == (409, "newer_database") and "upgrade" in problem["message"]


async def test_a_held_lock_names_its_owner(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    ref = f"refs/harnesslab/candidates/{lab['pending']}"
    _, plan = await fetch("plan", lab=LAB, action="reject", ref=ref)
    code = (
        "import sys; from pathlib import Path; from harnesslab.store.lock import LabLock\n"
        "with LabLock(Path(sys.argv[1])).hold('train epoch 3'):\n print('held', flush=True); sys.stdin.read()"
    )
    git_dir = jp_root_dir / LAB / ".git" / "harnesslab"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(git_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        body = {"lab": LAB, "action": "reject", "ref": ref, "why": "no", "expect": plan["expect"]}
        status, problem = await fetch("actions", body)
        assert (status, problem["code"]) == (409, "locked")
        assert "train epoch 3" in problem["message"] and str(holder.pid) in problem["message"]
        status, _ = await fetch("lab", lab=LAB)
        assert status == 200, "looking needs no lock"
    finally:
        holder.communicate("")
    status, _ = await fetch("actions", body)
    assert status == 200


async def test_a_lock_file_of_git_is_named(fetch: Any, lab: dict[str, str], jp_root_dir: Path) -> None:
    ref = f"refs/harnesslab/candidates/{lab['pending']}"
    _, plan = await fetch("plan", lab=LAB, action="promote", ref=ref)
    (jp_root_dir / LAB / ".git" / "refs" / "heads" / "main.lock").touch()
    body = {"lab": LAB, "action": "promote", "ref": ref, "why": "yes", "expect": plan["expect"]}
    status, problem = await fetch("actions", body)
    assert (status, problem["code"]) == (409, "locked")
    assert labmaker.git(jp_root_dir / LAB, "rev-parse", "main") == plan["expect"]["baseline"]


async def test_a_git_that_hangs_is_killed(
    fetch: Any, lab: dict[str, str], jp_serverapp: Any, jp_root_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = jp_root_dir / "pid"
    slow = jp_root_dir / "bin"
    slow.mkdir()
    (slow / "git").write_text(f"#!/bin/sh\necho $$ > '{marker}'\nexec sleep 600\n", encoding="utf-8")
    (slow / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow}:{os.environ['PATH']}")
    worker = jp_serverapp.web_app.settings[SETTING].worker
    worker.deadline = 0.5
    start = time.monotonic()
    status, problem = await fetch("lab", lab=LAB)
    assert (status, problem["code"]) == (504, "deadline")
    assert time.monotonic() - start < 5
    assert not alive(int(marker.read_text())), "no process is left behind"


def alive(pid: int) -> bool:
    """Does a process with this id run (a zombie does not)?"""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][:1]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_git_asks_nobody(
    fetch: Any, lab: dict[str, str], jp_root_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = jp_root_dir / "seen"
    spy = jp_root_dir / "bin"
    spy.mkdir()
    real = shutil.which("git")
    (spy / "git").write_text(
        f"#!/bin/sh\nenv > '{seen}'\nread line <&0 && exit 1\nexec {real} \"$@\"\n", encoding="utf-8"
    )
    (spy / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{spy}:{os.environ['PATH']}")
    await fetch("lab", lab=LAB)
    env = dict(line.split("=", 1) for line in seen.read_text(encoding="utf-8").splitlines() if "=" in line)
    assert env["GIT_TERMINAL_PROMPT"] == "0" and env["SSH_ASKPASS_REQUIRE"] == "never"


async def test_an_unexpected_error_keeps_its_details_to_the_log(
    fetch: Any, lab: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("harnesslab.server.core.labs.Lab.version", broken)
    status, problem = await fetch("live", lab=LAB)
    assert (status, problem["code"]) == (500, "internal") and "secret" not in problem["message"]


def test_every_code_has_a_status(openapi_document: dict[str, Any]) -> None:
    assert set(STATUS) == set(openapi_document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"])
    assert problem_of(Problem("locked", "x")).status == 409
