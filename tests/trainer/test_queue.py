"""QueueEstimator: a folder of patches and interventions, each taken by one process, judged once, and never lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harnesslab as hl
from harnesslab.errors import ConfigError, EstimatorFault
from harnesslab.harness import load_harness
from harnesslab.harness.files import has_meaning
from harnesslab.store import PatchRefused, apply_patch
from harnesslab.trainer.estimators.registry import make_estimator
from harnesslab.trainer.failures import Failures
from tests.trainer.test_trainer import RIGHT, WRONG, obedient
from tests.trainer.trajectories import episode, run

FAILURES = Failures(run(episode("a", (None, "?"), instruction="Meet Karenina now."), episode("b", (None, "?"))))
HARNESS = load_harness({"harness.toml": b'name = "demo"\n', "contract/old.yaml": WRONG.encode()})
NEW = "".join(f"+{line}\n" for line in RIGHT.splitlines())
PATCH = f"--- /dev/null\n+++ b/contract/hint.yaml\n@@ -0,0 +1,4 @@\n{NEW}"
MAIL = (
    "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: =?UTF-8?q?Zo=C3=AB?= <zoe@example.org>\n"
    "Date: Thu, 3 Dec 2026 12:00:00 +0000\nSubject: [PATCH 1/2] Say where the door is\n\nIt helps.\n---\n contract/hint.yaml | 4 ++++\n\n"
    f"diff --git a/contract/hint.yaml b/contract/hint.yaml\nnew file mode 100644\nindex 0000000..1111111\n{PATCH}--\n2.39.5\n\n"
)


def put(folder: Path, **files: str | bytes) -> Path:
    """Files in a queue; ``__`` in a name is a slash, ``_`` a dot."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def names(folder: Path, where: str = ".") -> list[str]:
    place = folder / where
    found = place.rglob("*") if where != "." else [*place.glob("*"), *place.glob("[!tdr]*/*")]
    return sorted(p.relative_to(place).as_posix() for p in found if not p.is_dir() and not p.name.startswith("."))


def sentence(folder: Path, name: str, where: str = "refused") -> str:
    return (folder / where / f"{name}.txt").read_text(encoding="utf-8").strip()


def offered(folder: Path, history: Any = (), harness: Any = HARNESS) -> list[hl.Proposal]:
    return list(hl.QueueEstimator(folder).propose(FAILURES, harness, history))


@pytest.mark.parametrize(
    ("files", "changes", "about"),
    [
        ({"a_patch": MAIL}, {"contract/hint.yaml": RIGHT}, "Say where the door is (by Zoë)"),
        ({"a_diff": PATCH}, {"contract/hint.yaml": RIGHT}, "Say where the door is."),
        ({"a_diff": PATCH.replace("b/contract", "contract")}, {"contract/hint.yaml": RIGHT}, "Say where the door is."),
        ({"a_diff": PATCH.replace("b/contract", "b/labs/kitchen/contract")}, {"contract/hint.yaml": RIGHT}, "Say where the door is."),
        ({"hint_yaml": RIGHT}, {"contract/hint.yaml": RIGHT}, "Say where the door is."),
        ({"contract__hint_yaml": RIGHT}, {"contract/hint.yaml": RIGHT}, "Say where the door is."),
        ({"old_yaml": RIGHT}, {"contract/old.yaml": RIGHT}, "Say where the door is."),
        ({"harness_toml": 'name = "other"\n'}, {"harness.toml": 'name = "other"\n'}, "Change harness.toml."),
        (
            {"a_diff": f"--- a/contract/old.yaml\n+++ /dev/null\n@@ -1,4 +0,0 @@\n{''.join(f'-{x}' for x in WRONG.splitlines(True))}"},
            {"contract/old.yaml": None},
            "Delete contract/old.yaml.",
        ),
    ],
)  # fmt: skip
def test_what_can_be_put_in(tmp_path: Path, files: Mapping[str, Any], changes: Mapping[str, Any], about: str) -> None:
    (proposal,) = offered(put(tmp_path, **files))
    assert dict(proposal.changes) == changes and proposal.about == about and proposal.estimator == "queue"


def test_python_goes_into_the_folder_of_its_layer(tmp_path: Path) -> None:
    put(tmp_path, action__fix_py="def realize(context, proposal):\n    return None\n", loose_py="x = 1\n")
    (proposal,) = offered(tmp_path)
    assert proposal.name == "action/fix" and "folder of its layer" in sentence(tmp_path, "loose.py")


LEAK = "kind: prompt\nparams:\n  text: Ask Karenina.\n"
BAD: dict[str, tuple[str, str | bytes, str]] = {
    "not a patch": ("x.patch", "hello\n", "not a patch"),
    "empty": ("x.diff", "", "not a patch"),
    "cut off": ("x.patch", PATCH[:-20], "does not fit"),
    "does not fit": ("x.patch", "--- a/contract/old.yaml\n+++ b/contract/old.yaml\n@@ -1 +1 @@\n-kind: snap\n+kind: x\n", "old.yaml"),
    "outside the surface": ("x.patch", PATCH.replace("contract/hint.yaml", "README.md"), "README.md: not a file of a harness"),
    "outside the lab": ("x.patch", PATCH.replace("contract/hint.yaml", "../../hint.yaml"), "hint.yaml"),
    "absolute": ("x.patch", PATCH.replace("b/contract/hint.yaml", "/etc/hint.yaml"), "hint.yaml"),
    "git's own": ("x.patch", PATCH.replace("contract/hint.yaml", ".git/hooks/post-commit"), ".git"),
    "a link": (
        "x.patch",
        "diff --git a/contract/l.yaml b/contract/l.yaml\nnew file mode 120000\n--- /dev/null\n+++ b/contract/l.yaml\n"
        "@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n",
        "a link",
    ),
    "binary": ("x.patch", "diff --git a/x b/x\nGIT binary patch\nliteral 3\nKc$\n", "binary"),
    "too long": ("x.patch", b"--- a\n" + b"x" * 1_000_001, "at most"),
    "unknown kind": ("x.yaml", "kind: remindr\n", "line 1, key 'kind': unknown kind"),
    "broken YAML": ("x.yaml", "kind: [\n", "x.yaml"),
    "not a mapping": ("x.yaml", "- 1\n", "must be a mapping"),
    "not UTF-8": ("x.yaml", b"kind: \xff\n", "UTF-8"),
    "wrong layer": ("skill/x.yaml", RIGHT, "belongs in contract/"),
    "Python that does not load": ("action/x.py", "def realize(:\n", "action/x.py"),
    "Python that raises": ("action/x.py", "raise ValueError('no')\ndef realize(c, p): ...\n", "no"),
    "no proposal": ("notes.txt", "look at this", "ends in .patch"),
    "leaks": ("x.yaml", LEAK, "'Karenina', which only task a knows"),
    "changes nothing": ("old.yaml", WRONG, "changes nothing"),
    "breaks the manifest": ("harness.toml", "name = 3\n", "harness.toml"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(BAD))
def test_a_bad_file_is_moved_aside_with_a_sentence_and_the_others_are_offered(tmp_path: Path, case: str) -> None:
    name, data, words = BAD[case]
    put(tmp_path, good_yaml=RIGHT)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    proposals = hl.QueueEstimator(tmp_path).propose(FAILURES, HARNESS)
    assert [p.name for p in proposals] == ["contract/good"]
    said = sentence(tmp_path, name)
    assert words in said and said.endswith(".") and "\n" not in said and "Traceback" not in said
    assert [refused for refused, _ in proposals.refused] == [name] and (tmp_path / "refused" / name).is_file()
    assert names(tmp_path) == []


def test_links_and_special_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(RIGHT, encoding="utf-8")
    queue = tmp_path / "queue"
    queue.mkdir()
    (queue / "x.yaml").symlink_to(tmp_path / "secret")
    os.mkfifo(queue / "y.patch")
    assert offered(queue) == []
    assert "link or a special file" in sentence(queue, "x.yaml") and "link or a special file" in sentence(
        queue, "y.patch"
    )


def test_what_is_hidden_unfinished_or_for_people_stays(tmp_path: Path) -> None:
    put(tmp_path, README_md="How to", a_yaml_tmp=RIGHT)
    (tmp_path / ".x.yaml").write_text(RIGHT, encoding="utf-8")
    assert (
        offered(tmp_path) == [] and names(tmp_path) == ["README.md", "a.yaml.tmp"] and names(tmp_path, "refused") == []
    )


def test_a_folder_that_is_not_a_layer_is_named(tmp_path: Path) -> None:
    put(tmp_path, acton__x_yaml=RIGHT)
    (refused,) = hl.QueueEstimator(tmp_path).propose(FAILURES, HARNESS).refused
    assert refused[0] == "acton/" and "the layers are contract, skill" in refused[1]


def test_the_scan_can_be_switched_off(tmp_path: Path) -> None:
    put(tmp_path, x_yaml=LEAK)
    assert len(hl.QueueEstimator(tmp_path, scan=False).propose(FAILURES, HARNESS)) == 1


def past(proposal: hl.Proposal, status: str, baseline: str = FAILURES.run.commit) -> Any:
    return {"content": proposal.content, "baseline": baseline, "status": status, "reason": "nothing gained"}


@pytest.mark.parametrize("status", ["promoted", "rejected", "undecided"])
def test_it_is_offered_until_it_has_its_verdict_and_then_never_again(tmp_path: Path, status: str) -> None:
    put(tmp_path, a_patch=PATCH)
    (proposal,) = offered(tmp_path)
    assert offered(tmp_path) == [proposal], "a second look, as from a cell that is run again"
    assert offered(tmp_path, [past(proposal, status, "f" * 40)]) == [proposal], (
        "another baseline's verdict is not its own"
    )
    assert offered(tmp_path, [past(proposal, status)]) == []
    assert sentence(tmp_path, "a.patch", "done") == f"{status.capitalize()}: nothing gained."
    assert offered(tmp_path) == []


def test_what_was_promoted_is_done_though_it_does_not_fit_any_more(tmp_path: Path) -> None:
    for name, text in (("a_patch", PATCH), ("hint_yaml", RIGHT)):
        folder = tmp_path / name
        put(folder, **{name: text})
        (proposal,) = offered(folder)
        assert offered(folder, harness=load_harness(proposal.apply(HARNESS.files))) == []
        assert sentence(folder, name.replace("_", "."), "done") == "It is part of the harness."


def test_two_files_with_one_name_or_one_change_are_both_kept(tmp_path: Path) -> None:
    put(tmp_path, a_patch=PATCH, hint_yaml=RIGHT)
    (proposal,) = offered(tmp_path)
    assert offered(tmp_path, [past(proposal, "rejected")]) == []
    put(tmp_path, a_patch=PATCH.replace("right", "far right"))
    (other,) = offered(tmp_path)
    assert offered(tmp_path, [past(other, "rejected")]) == []
    assert [n for n in names(tmp_path, "done") if not n.endswith(".txt")] == ["a-2.patch", "a.patch", "hint.yaml"]


def test_the_loop_measures_each_file_once(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    put(tmp_path, a_yaml=WRONG, b_yaml="kind: remindr\n", c_yaml=RIGHT)
    os.utime(tmp_path / "a.yaml", (1, 1))
    lab = open_lab()
    made = hl.Trainer(lab, hl.LLM.scripted(obedient), hl.QueueEstimator(tmp_path), settings={"progress": False})
    losses = []
    for loss in made.epochs(5):
        losses.append(loss.proposal.name)
        loss.backward()
        made.optimizer.step()
    assert losses == ["contract/a", "contract/c"] and made.measure().solved == 8
    assert [row.estimator for row in lab.repo.candidates().rows] == ["queue", "queue"]
    assert list(made.propose()) == [] and sentence(tmp_path, "c.yaml", "done").startswith("Promoted: ")
    assert sentence(tmp_path, "a.yaml", "done").startswith("Rejected: ")


OTHER = """
import sys, os
from tests.trainer.test_queue import *
found = offered(Path(sys.argv[1]))
print(",".join(sorted(p.name for p in found)), flush=True)
if len(sys.argv) > 2:
    os.kill(os.getpid(), 9)
sys.stdin.read()
"""


def other(folder: Path, *more: str) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", textwrap.dedent(OTHER), str(folder), *more]
    return subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_another_process_gets_nothing_until_the_first_one_ends(tmp_path: Path) -> None:
    put(tmp_path, a_yaml=RIGHT, contract__b_yaml=WRONG)
    first = other(tmp_path)
    assert first.stdout and first.stdout.readline() == "contract/a,contract/b\n"
    assert offered(tmp_path) == []
    put(tmp_path, c_yaml=RIGHT.replace("right", "far right"))
    assert [p.name for p in offered(tmp_path)] == ["contract/c"]
    first.communicate()
    assert sorted(p.name for p in offered(tmp_path)) == ["contract/a", "contract/b", "contract/c"]


def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    put(tmp_path, a_yaml=RIGHT)
    killed = other(tmp_path, "die")
    assert killed.communicate()[0] == "contract/a\n" and killed.returncode == -9
    assert [p.name for p in offered(tmp_path)] == ["contract/a"]


def test_processes_and_threads_at_once_share_the_files_out(tmp_path: Path) -> None:
    for number in range(12):
        put(tmp_path, **{f"n{number}_yaml": RIGHT.replace("right", f"side {number}")})
    others = [other(tmp_path) for _ in range(3)]
    shares = [p.stdout.readline().strip().split(",") for p in others if p.stdout]
    with ThreadPoolExecutor(4) as pool:
        mine = {p.name for found in pool.map(lambda _: offered(tmp_path), range(4)) for p in found}
    every = [name for share in shares for name in share if name] + sorted(mine)
    assert sorted(every) == sorted(f"contract/n{n}" for n in range(12))
    for process in others:
        process.communicate()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(EstimatorFault, match=r"the queue .*file cannot be used"):
        offered(tmp_path / "file")
    for bad in (None, "", 3):
        with pytest.raises(ConfigError, match="needs the path of a folder"):
            hl.QueueEstimator(bad)  # type: ignore[arg-type]


def test_it_is_known_by_name() -> None:
    made = make_estimator("queue")
    assert isinstance(made, hl.QueueEstimator) and made.folder == Path("queue").absolute()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False), st.sampled_from([PATCH, MAIL, BAD["a link"][1]]))
def test_a_mutated_patch_gives_files_or_one_sentence(dice: random.Random, patch: str) -> None:
    data = bytearray(patch.encode())
    for _ in range(dice.randrange(1, 8)):
        place = dice.randrange(len(data))
        data[place : place + dice.randrange(3)] = bytes(dice.randrange(256) for _ in range(dice.randrange(3)))
    try:
        files = apply_patch(HARNESS.files, bytes(data), has_meaning)
    except PatchRefused as reason:
        assert "\n" not in str(reason)
    else:
        assert "harness.toml" in files or b"harness.toml" in data
