"""Who a commit is by: git's own rules for author and committer, and harnesslab only where git has nobody."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harnesslab.ledger import Ledger, whoami
from harnesslab.store import LabRepo

OURS = "harnesslab <harnesslab@localhost>"
AUTHOR = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@hub"}
COMMITTER = {"GIT_COMMITTER_NAME": "Bob", "GIT_COMMITTER_EMAIL": "bob@hub"}
ADA, BOB, EVE = "Ada <ada@hub>", "Bob <bob@hub>", "Eve <eve@home>"
EVE_SET = {"user.name": "Eve", "user.email": "eve@home"}
STRICT = {"user.useConfigOnly": "true"}

CASES: dict[str, tuple[dict[str, str], dict[str, str], dict[str, str], str, str]] = {
    # variables, the user's settings, the lab's settings, author, committer
    "nobody": ({}, STRICT, {}, OURS, OURS),
    "variables of the author": (AUTHOR, STRICT, {}, ADA, OURS),
    "variables of the committer": (COMMITTER, STRICT, {}, OURS, BOB),
    "variables of both": ({**AUTHOR, **COMMITTER}, STRICT, {}, ADA, BOB),
    "variables before settings": ({**AUTHOR, **COMMITTER}, EVE_SET, {}, ADA, BOB),
    "an author beside settings": (AUTHOR, EVE_SET, {}, ADA, EVE),
    "user": ({}, EVE_SET, {}, EVE, EVE),
    "user, strictly": ({}, EVE_SET | STRICT, {}, EVE, EVE),
    "author and committer": (
        {}, {"author.name": "Ada", "author.email": "ada@hub", "committer.name": "Bob", "committer.email": "bob@hub"} | STRICT, {}, ADA, BOB,
    ),
    "author before user": ({}, EVE_SET | {"author.name": "Ada", "author.email": "ada@hub"}, {}, ADA, EVE),
    "half an author": ({}, EVE_SET | {"author.name": "Ada"}, {}, "Ada <eve@home>", EVE),
    "the lab's own user": ({}, EVE_SET, {"user.name": "Lab", "user.email": "lab@team"}, "Lab <lab@team>", "Lab <lab@team>"),
    "the lab's own author": ({}, EVE_SET, {"author.name": "Lab"}, "Lab <eve@home>", EVE),
    "the lab is strict": ({"EMAIL": "me@home"}, {"user.name": "Eve"}, STRICT, "Eve <harnesslab@localhost>", "Eve <harnesslab@localhost>"),
    "EMAIL": ({"EMAIL": "me@home"}, {"user.name": "Eve"}, {}, "Eve <me@home>", "Eve <me@home>"),
    "an email before EMAIL": ({"EMAIL": "me@home"}, EVE_SET, {}, EVE, EVE),
    "a name alone": ({}, {"user.name": "Eve"} | STRICT, {}, "Eve <harnesslab@localhost>", "Eve <harnesslab@localhost>"),
    "an email alone": ({}, {"user.email": "eve@home"} | STRICT, {}, "harnesslab <eve@home>", "harnesslab <eve@home>"),
    "a name from a variable alone": ({"GIT_AUTHOR_NAME": "Ada"}, STRICT, {}, "Ada <harnesslab@localhost>", OURS),
    "an empty variable": ({"GIT_AUTHOR_NAME": "", "GIT_AUTHOR_EMAIL": "ada@hub"}, STRICT, {}, "harnesslab <ada@hub>", OURS),
    "settings from variables": (
        {"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Eve",
         "GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "eve@home"}, {}, {}, EVE, EVE,
    ),
}  # fmt: skip


@pytest.fixture
def people(
    repo: LabRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Mapping[str, str], Mapping[str, str], Mapping[str, str]], LabRepo]:
    """Sets variables, the user's configuration and the lab's."""

    def set_up(variables: Mapping[str, str], user: Mapping[str, str], lab: Mapping[str, str]) -> LabRepo:
        monkeypatch.delenv("EMAIL", raising=False)
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        for key, value in user.items():
            subprocess.run(["git", "config", "--file", str(tmp_path / "gitconfig"), key, value], check=True)
        for key, value in lab.items():
            subprocess.run(["git", "config", "--file", str(repo.git_dir / "config"), key, value], check=True)
        return LabRepo.open(repo.path)

    return set_up


def _people(repo: LabRepo, commit: str) -> tuple[str, str]:
    done = subprocess.run(
        ["git", "log", "-1", "--format=%an <%ae>%n%cn <%ce>", commit],
        cwd=repo.path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    author, committer = done.stdout.splitlines()
    return author, committer


@pytest.mark.parametrize("case", CASES)
def test_commits_are_by_whom_git_says(case: str, people: Callable[..., LabRepo]) -> None:
    variables, user, lab, author, committer = CASES[case]
    repo = people(variables, user, lab)
    candidate = repo.propose({"skill/new.yaml": "a: 1\n"}, "new")
    assert _people(repo, candidate.commit) == (author, committer)
    Ledger(repo).promote(candidate.id, {})
    assert _people(repo, "refs/notes/harnesslab") == (author, committer)
    assert _people(repo, Ledger(repo).rollback(candidate.parent).baseline) == (author, committer)


@pytest.mark.parametrize("case", CASES)
def test_git_commit_agrees_wherever_it_knows_somebody(case: str, people: Callable[..., LabRepo]) -> None:
    variables, user, lab, author, committer = CASES[case]
    repo = people(variables, user, lab)
    done = subprocess.run(
        ["git", "commit", "-q", "--allow-empty", "-m", "x"], cwd=repo.path, capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) == ("harnesslab" in author + committer), done.stderr
    if not done.returncode:
        assert _people(repo, "HEAD") == (author, committer)


def test_somebody_who_is_named_while_the_lab_is_open(
    people: Callable[..., LabRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = people({}, STRICT, {})
    assert _people(repo, repo.propose({"a": "1"}, "a").commit) == (OURS, OURS)
    for name, value in {**AUTHOR, **COMMITTER}.items():
        monkeypatch.setenv(name, value)
    assert _people(repo, repo.propose({"b": "1"}, "b").commit) == (ADA, BOB)


def test_variables_of_a_hook_do_not_lead_into_another_repository(
    people: Callable[..., LabRepo], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_AUTHOR_DATE", "no date")
    commit = people(AUTHOR, EVE_SET, {}).propose({"a": "1"}, "a").commit
    for name in ("GIT_DIR", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    assert _people(LabRepo.open(folder), commit) == (ADA, EVE)


@pytest.mark.parametrize(
    ("variables", "settings", "name"),
    [(AUTHOR, EVE_SET, "Ada"), ({}, EVE_SET, "Eve"), ({}, EVE_SET | {"author.name": "Ada"}, "Ada"), ({}, {"user.name": "Eve"} | STRICT, "Eve")],
)  # fmt: skip
def test_a_verdict_is_by_the_author(
    variables: dict[str, str], settings: dict[str, str], name: str, people: Callable[..., LabRepo],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    repo = people(variables, settings, {})
    assert whoami(repo.path) == name
    monkeypatch.setenv("JUPYTERHUB_USER", "hub user")
    assert whoami(repo.path) == "hub user"


def test_without_anybody_a_verdict_is_by_the_login_name(
    people: Callable[..., LabRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    monkeypatch.setenv("LOGNAME", "login")
    assert whoami(people({}, STRICT, {}).path) == "login"
