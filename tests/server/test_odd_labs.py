"""The sidebar's endpoints on labs that are odd or hostile: each answers with what there is or one sentence, runs nothing, and writes nothing elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.canary import contents, watching
from tests.odd_labs import ODD
from tests.store import hostile

pytestmark = pytest.mark.timeout(300)

LAB = "labs/odd"
PROGRAMS = {
    name: lambda lab, outside, plant=plant: plant.place(lab, outside / "it-ran")
    for name, plant in hostile.PLANTS.items()
}
LABS: dict[str, Callable[[Path, Path], None]] = {"plain": lambda lab, outside: None, **PROGRAMS, **ODD}


for waited_for in ("a tree bomb", "an attributes file that is a pipe"):
    del LABS[waited_for]  # git is stopped at its deadline, after the client of these tests has given up


@pytest.fixture(scope="module")
def odd_pattern(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, hostile.Candidates]:
    """One innocent lab; tests get copies."""
    folder = tmp_path_factory.mktemp("pattern") / "lab"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        return folder, hostile.make(folder)


@pytest.mark.parametrize("odd", LABS)
async def test_no_endpoint_runs_anything_or_writes_elsewhere(
    odd: str, fetch: Any, odd_pattern: tuple[Path, hostile.Candidates], jp_root_dir: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine", "utf-8")
    lab, ids = hostile.copy(odd_pattern[0], jp_root_dir / "labs" / "odd"), odd_pattern[1]
    LABS[odd](lab, outside)
    refs = [f"refs/harnesslab/candidates/{name}" for name in (ids.fitting, ids.late, "0dd000000000")]
    rejected = f"refs/harnesslab/rejected/{ids.rejected}"
    answers = []

    async def ask(name: str, body: Any = None, **query: Any) -> Any:
        status, answer = await fetch(name, body, **query)
        answers.append((name, status, answer))
        return answer

    before = contents(outside)
    with watching() as seen:
        await ask("labs")
        for name in ("lab", "live", "history"):
            await ask(name, lab=LAB)
        for state in ("pending", "rejected", "promoted"):
            await ask("refs", lab=LAB, state=state)
        for ref in (*refs, rejected, "refs/heads/main", "HEAD"):
            for name in ("ref", "cell", "export"):
                await ask(name, lab=LAB, ref=ref)
            await ask("diff", lab=LAB, base="refs/heads/main", head=ref)
            await ask("trajectories", lab=LAB, ref=ref, task="t1")
        for action, ref in (
            ("promote", refs[2]),
            ("reject", refs[1]),
            ("promote", refs[0]),
            ("retry", f"refs/harnesslab/rejected/{ids.late}"),
            ("undo", rejected),
            ("rollback", ids.first),
        ):
            plan = await ask("plan", lab=LAB, action=action, ref=ref)
            if plan.get("expect"):
                await ask(
                    "actions", {"lab": LAB, "action": action, "ref": ref, "why": "because", "expect": plan["expect"]}
                )
    assert contents(outside) == before
    assert all(
        Path(program).name == "git" and not Path(program).is_relative_to(jp_root_dir) for program in seen.programs
    )
    assert seen.writes_outside(lab, jp_root_dir.parent) == []
    for name, status, answer in answers:
        assert status < 500 or answer["code"] != "internal", (name, answer)
        if status != 200:
            assert "\n" not in answer["message"]
    if odd == "plain":
        assert [
            (name, answer["message"])
            for name, status, answer in answers
            if status != 200 and name not in ("ref", "cell", "diff", "export", "trajectories", "plan")
        ] == []
    shutil.rmtree(lab)
