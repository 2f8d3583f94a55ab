"""A thin, careful runner around the git executable, for one repository.

Every call has a deadline after which the whole process group is killed, runs nothing that the
repository configures (see `isolation`), asks no question at a terminal, and never looks for a
repository above the given folder. Failures become one sentence (`StoreError`).

GitPython is not used: its object model costs seconds on thousands of refs and keeps
`cat-file` processes alive, and the plumbing that is needed here is a dozen commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harnesslab.store.isolation import Isolation
from harnesslab.store.process import DEADLINE_S, GitFailed, execute, explain, time_limit

__all__ = ["DEADLINE_S", "DIFF_TREE", "Git", "GitFailed", "run_in", "time_limit"]

DIFF_TREE = ("diff-tree", "-r", "--no-renames", "--ignore-submodules=none")
"""The command that compares two commits. What is said of submodules here keeps git from reading `.gitmodules` for it."""

_NOBODY = {"NAME": "harnesslab", "EMAIL": "harnesslab@localhost"}
"""Whose commits these are where git knows nobody."""


class Git:
    """Runs git in one folder, which must hold its own repository (a `.git` folder or file)."""

    def __init__(self, path: Path | str):
        self.path = Path(path).resolve()
        self.isolation = Isolation(self.path)
        self._writer: dict[str, str] | None = None

    def run(
        self,
        *args: str,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        write: bool = False,
        deadline: float = DEADLINE_S,
        ok: Sequence[int] = (0,),
    ) -> bytes:
        """Run `git ARGS` and return its standard output.

        `write=True` gives the command an identity and lets it take optional locks. An exit status
        outside `ok` raises `GitFailed`; running past `deadline` seconds kills it and raises too.
        """
        settings = self._identity() if write else {"GIT_OPTIONAL_LOCKS": "0"}
        env = {**self.isolation.environment(), **settings, **(env or {})}
        code, out, err = execute(self.path, args, env, input, deadline)
        if code not in ok:
            raise explain(self.path, args, err.decode("utf-8", "replace"), code)
        return out

    def text(self, *args: str, **options: object) -> str:
        """As `run`, decoded, without the trailing newline."""
        return self.run(*args, **options).decode("utf-8", "replace").rstrip("\n")  # type: ignore[arg-type]

    def resolve_many(self, names: Sequence[str]) -> list[str | None]:
        """The object ids that exact names (full refs, ids, `REF^{commit}`) stand for; None where missing."""
        out = self.text("cat-file", "--batch-check=%(objectname)", input=_lines(names)).split("\n")
        return [None if line.endswith((" missing", " ambiguous")) else line for line in out[: len(names)]]

    def objects(self, ids: Iterable[str], env: Mapping[str, str] | None = None) -> dict[str, bytes]:
        """The contents of many objects, read by one process; an absent one is absent in the answer."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        data = self.run("cat-file", "--batch", input=_lines(wanted), env=env, deadline=120)
        found: dict[str, bytes] = {}
        at = 0
        for name in wanted:
            end = data.index(b"\n", at)
            header = data[at:end].split(b" ")
            at = end + 1
            if header[-1] in (b"missing", b"ambiguous"):
                continue
            size = int(header[2])
            found[name] = data[at : at + size]
            at += size + 1
        return found

    def write_blob(self, data: bytes) -> str:
        """Store `data` as it is (no filters) and return its id."""
        return self.text("hash-object", "-w", "--stdin", input=data, write=True)

    def author(self) -> str:
        """The name of who would be the author of a commit now; empty where nobody gave one."""
        return self._person("AUTHOR", {"GIT_AUTHOR_EMAIL": "x"}, guess=False).rpartition(" <")[0]

    def forget_identity(self) -> None:
        """Ask again at the next write who the author and the committer are."""
        self._writer = None

    def _identity(self) -> dict[str, str]:
        if self._writer is None:
            self._writer = {**self._lacking("AUTHOR"), **self._lacking("COMMITTER")}
        return self._writer

    def _lacking(self, who: str) -> dict[str, str]:
        """What git has to be given to know author or committer: nothing, wherever its own rules give somebody."""
        if self._person(who, {}):
            return {}
        name, email = ({f"GIT_{who}_{what}": value} for what, value in _NOBODY.items())
        if self._person(who, email, guess=False):
            return email
        # An empty variable does not count as one for the email, and is an error for the name.
        return name if self._person(who, name, guess=False) else {**name, **email}

    def _person(self, who: str, given: Mapping[str, str], *, guess: bool = True) -> str:
        """git's author or committer, without the date; empty where it knows nobody. `guess`: from the login and host name, too."""
        strict = () if guess else ("-c", "user.useConfigOnly=true")
        return self.text(*strict, "var", f"GIT_{who}_IDENT", env=given, ok=(0, 128)).rpartition("> ")[0]


def run_in(path: Path, *args: str) -> bytes:
    """Run git in a folder that has no repository yet (`git init`)."""
    code, out, err = execute(path, args)
    if code:
        raise explain(path, args, err.decode("utf-8", "replace"), code)
    return out


def _lines(names: Iterable[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()
