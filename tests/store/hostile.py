"""Labs of somebody who wants their program to run: each plant makes plain git, or a careless reader, touch a marker."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harnesslab.ledger import Ledger
from harnesslab.store import LabRepo

PLAN = "kind: prompt\ntext: one\n" + "".join(f"# line {number}\n" for number in range(12)) + "# the end\n"
FILES = {
    "harness.toml": 'name = "starter"\nformat = 1\n',
    "skill/plan.yaml": PLAN,
    ".gitattributes": "* filter=evil merge=evil diff=evil\n[attr]evil filter=evil\n",
}


@dataclass(frozen=True)
class Candidates:
    """Ids of candidates in the pattern lab: on today's baseline, on an earlier one, and turned down."""

    fitting: str
    late: str
    rejected: str
    first: str


def make(folder: Path, files: Mapping[str, str] = FILES) -> Candidates:
    """A lab with a promotion, a candidate that fits, one that has to be merged, and a rejected one."""
    plan = files["skill/plan.yaml"]
    repo = LabRepo.create(folder, files)
    first = repo.baseline()
    late = repo.propose({"skill/plan.yaml": plan.replace("the end", "the other end")}, "late")
    old = repo.propose({"skill/plan.yaml": plan.replace("one", "two")}, "two")
    Ledger(repo).promote(old.id, {"criterion": "x"})
    fitting = repo.propose({"skill/plan.yaml": plan.replace("one", "three"), "skill/new.yaml": "a: 1\n"}, "three")
    rejected = repo.propose({"skill/plan.yaml": plan.replace("one", "four")}, "four")
    Ledger(repo).reject(rejected.id, {"criterion": "x"})
    repo.close()
    return Candidates(fitting.id, late.id, rejected.id, first)


@dataclass(frozen=True)
class Plant:
    """`place(lab, marker)` prepares the lab; `proof`: what plain git is asked so that the program runs, None where it is not git."""

    place: Callable[[Path, Path], None]
    proof: tuple[str, ...] | None = None


def _config(text: str) -> Callable[[Path, Path], None]:
    def place(lab: Path, marker: Path) -> None:
        script = marker.parent / "evil.sh"
        script.write_text(f"#!/bin/sh\ntouch '{marker}'\n[ $# -gt 0 ] || exec cat\n", encoding="utf-8")
        script.chmod(0o755)
        with (lab / ".git" / "config").open("a", encoding="utf-8") as file:
            file.write(text.replace("EVIL", str(script)) + "\n")

    return place


def _included(lab: Path, marker: Path) -> None:
    _config("[include]\n\tpath = ../evil.inc\n")(lab, marker)
    script = marker.parent / "evil.sh"
    (lab / "evil.inc").write_text(f'[filter "evil"]\n\tclean = {script}\n', encoding="utf-8")


def _worktree_config(lab: Path, marker: Path) -> None:
    _config("[extensions]\n\tworktreeConfig = true\n")(lab, marker)
    (lab / ".git" / "config.worktree").write_text(
        f'[filter "evil"]\n\tclean = {marker.parent / "evil.sh"}\n', encoding="utf-8"
    )


def _attributes(lab: Path, marker: Path) -> None:
    _config('[filter "other"]\n\tclean = EVIL\n\tprocess = EVIL\n\trequired = true\n')(lab, marker)
    (lab / ".git" / "info").mkdir(exist_ok=True)
    (lab / ".git" / "info" / "attributes").write_text("* filter=other\n", encoding="utf-8")


def _hooks(*names: str) -> Callable[[Path, Path], None]:
    def place(lab: Path, marker: Path) -> None:
        folder = lab / ".git" / "hooks"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).write_text(f"#!/bin/sh\ntouch '{marker}'\n", encoding="utf-8")
            (folder / name).chmod(0o755)

    return place


def _partial_clone(remote: str) -> Callable[[Path, Path], None]:
    def place(lab: Path, marker: Path) -> None:
        _config(
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"
            f'[protocol]\n\tallow = always\n[remote "origin"]\n\tpromisor = true\n\tpartialclonefilter = blob:none\n{remote}'
        )(lab, marker)
        blobs = subprocess.run(
            ["git", "rev-list", "--objects", "--all", "--filter=object:type=blob", "--filter-provided-objects"],
            cwd=lab, capture_output=True, text=True, check=True,
            env={**os.environ, "GIT_ALLOW_PROTOCOL": "none"},
        ).stdout.splitlines()  # fmt: skip
        for name in (line.split()[0] for line in blobs if "harness.toml" not in line):
            (lab / ".git" / "objects" / name[:2] / name[2:]).unlink(missing_ok=True)

    return place


def _submodule(lab: Path, marker: Path) -> None:
    """A checked-out submodule whose own configuration names the program; git looks into it to see whether it is dirty."""
    _config("")(lab, marker)

    def git(*args: str, folder: Path = lab / "sub") -> str:
        command = ["git", "-c", "user.name=Eve", "-c", "user.email=eve@x", *args]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    (lab / "sub").mkdir()
    git("init", "-q")
    (lab / "sub" / "a").write_text("a", encoding="utf-8")
    (lab / "sub" / ".gitattributes").write_text("* filter=evil\n", encoding="utf-8")
    git("add", "-A")
    git("commit", "-q", "-m", "x")
    git("update-index", "--add", "--cacheinfo", f"160000,{git('rev-parse', 'HEAD')},sub", folder=lab)
    git("config", "filter.evil.clean", str(marker.parent / "evil.sh"))
    git("config", "core.fsmonitor", f"{marker.parent / 'evil.sh'} now")
    os.utime(lab / "sub" / "a", (1, 1))


def _program_in_the_lab(lab: Path, marker: Path) -> None:
    (lab / "git").write_text(f"#!/bin/sh\ntouch '{marker}'\n", encoding="utf-8")
    (lab / "git").chmod(0o755)


PLANTS: dict[str, Plant] = {
    "clean": Plant(_config('[filter "evil"]\n\tclean = EVIL'), ("add", "-A")),
    "smudge": Plant(_config('[filter "evil"]\n\tsmudge = EVIL'), ("checkout", "-f", "HEAD~1")),
    "process": Plant(_config('[filter "evil"]\n\tprocess = EVIL now'), ("add", "-A")),
    "required": Plant(_config('[filter "evil"]\n\tclean = EVIL\n\tsmudge = EVIL\n\trequired = true'), ("add", "-A")),
    "merge": Plant(_config('[merge "evil"]\n\tdriver = EVIL now'), ("merge", "-m", "x", "LATE")),
    "textconv": Plant(_config('[diff "evil"]\n\ttextconv = EVIL'), ("diff", "HEAD~1", "--textconv")),
    "diff": Plant(_config('[diff "evil"]\n\tcommand = EVIL now'), ("diff", "HEAD~1")),
    "external": Plant(_config("[diff]\n\texternal = EVIL now"), ("diff", "HEAD~1")),
    "fsmonitor": Plant(_config("[core]\n\tfsmonitor = EVIL"), ("status",)),
    "pager": Plant(_config('[core]\n\tpager = EVIL\n[pager]\n\tlog = EVIL now')),
    "alias": Plant(_config("[alias]\n\tx = !EVIL now\n\tcat-file = !EVIL now"), ("x",)),
    "gpg": Plant(_config('[gpg]\n\tprogram = EVIL\n[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = true'),
                 ("commit", "--allow-empty", "-m", "x")),
    "editor": Plant(_config("[core]\n\teditor = EVIL now"), ("commit", "--allow-empty")),
    "credential": Plant(_config("[credential]\n\thelper = !EVIL now"), ("credential", "fill")),
    "include": Plant(_included, ("add", "-A")),
    "includeIf": Plant(lambda lab, marker: (_included(lab, marker), (lab / ".git" / "config").write_text(
        (lab / ".git" / "config").read_text().replace("[include]", '[includeIf "gitdir:**"]')))[0], ("add", "-A")),
    "worktree config": Plant(_worktree_config, ("add", "-A")),
    "info/attributes": Plant(_attributes, ("add", "-A")),
    "hooksPath": Plant(lambda lab, marker: (_config(f"[core]\n\thooksPath = {lab / '.git' / 'hooks'}")(lab, marker),
                                            _hooks("reference-transaction", "post-index-change")(lab, marker))[0],
                       ("commit", "--allow-empty", "-m", "x")),
    "hooks": Plant(_hooks("reference-transaction", "post-index-change", "post-checkout", "pre-commit", "post-commit",
                          "post-merge", "fsmonitor-watchman", "pre-auto-gc"), ("commit", "--allow-empty", "-m", "x")),
    "configured hook": Plant(_config('[hook "x"]\n\tevent = reference-transaction\n\tcommand = EVIL now')),
    "lazy ext": Plant(_partial_clone("\turl = ext::EVIL now\n"), ("-c", "protocol.ext.allow=always", "diff", "HEAD~1")),
    "lazy ssh": Plant(_partial_clone("\turl = ssh://localhost/x\n[core]\n\tsshCommand = EVIL now\n"), ("diff", "HEAD~1")),
    "lazy uploadpack": Plant(_partial_clone("\turl = .\n\tuploadpack = EVIL now\n"), ("diff", "HEAD~1")),
    "lazy helper": Plant(_partial_clone("\turl = x\n\tvcs = ext\n")),
    "lazy insteadOf": Plant(_partial_clone('\turl = nothing://x\n[url "ext::EVIL now "]\n\tinsteadOf = nothing://\n'),
                            ("-c", "protocol.ext.allow=always", "diff", "HEAD~1")),
    "submodule": Plant(_submodule, ("status",)),
    "a program called git": Plant(_program_in_the_lab),
}  # fmt: skip
"""By name. Where `proof` is given, plain git runs the program, which shows that the plant works."""


def copy(pattern: Path, target: Path) -> Path:
    """A copy of a lab in which nothing was opened yet."""
    shutil.copytree(pattern, target, symlinks=True)
    shutil.rmtree(target / ".git" / "harnesslab")
    return target
