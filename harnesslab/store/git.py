"""A thin, careful runner around the git executable.

Every call has a deadline after which the whole process group is killed, runs no hook and no
file-system monitor of the repository, asks no question at a terminal, and never looks for a
repository above the given folder. Failures become one sentence (`StoreError`).

GitPython is not used: its object model costs seconds on thousands of refs and keeps
`cat-file` processes alive, and the plumbing that is needed here is a dozen commands.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path

from harnesslab.errors import StoreError

DEADLINE_S = 30.0
"""Default deadline of one git command, in seconds."""

_end: ContextVar[float | None] = ContextVar("harnesslab_git_end", default=None)


@contextlib.contextmanager
def time_limit(end: float) -> Iterator[None]:
    """Every git command inside ends by `end` (on the clock of `time.monotonic`), whatever its own deadline is.

    For callers who wait for several commands, such as a web request. It holds for the current thread or task.
    """
    token = _end.set(end)
    try:
        yield
    finally:
        _end.reset(token)


_SETTINGS = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "core.quotePath=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "advice.detachedHead=false",
)  # fmt: skip

_IDENTITY = {
    "GIT_AUTHOR_NAME": "harnesslab",
    "GIT_AUTHOR_EMAIL": "harnesslab@localhost",
    "GIT_COMMITTER_NAME": "harnesslab",
    "GIT_COMMITTER_EMAIL": "harnesslab@localhost",
}
"""The stated identity of commits where the user has configured none."""


class GitFailed(StoreError):
    """A git command ended with an error; `stderr` keeps git's own words, `code` its exit status."""

    def __init__(self, message: str, *, stderr: str = "", code: int | None = None, cause: str = ""):
        self.stderr, self.code = stderr, code
        super().__init__(message, cause=cause)


class Git:
    """Runs git in one folder, which must hold its own repository (a `.git` folder or file)."""

    def __init__(self, path: Path | str):
        self.path = Path(path).resolve()
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
        code, out, err = _execute(self.path, args, {**settings, **(env or {})}, input, deadline)
        if code not in ok:
            raise _explain(self.path, args, err.decode("utf-8", "replace"), code)
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

    def _identity(self) -> dict[str, str]:
        if self._writer is None:
            configured = self.run("config", "--get-regexp", r"^user\.(name|email)$", ok=(0, 1)).decode(
                "utf-8", "replace"
            )
            complete = "user.name " in configured and "user.email " in configured
            self._writer = {} if complete else dict(_IDENTITY)
        return self._writer


def run_in(path: Path, *args: str) -> bytes:
    """Run git in a folder that has no repository yet (`git init`)."""
    code, out, err = _execute(path, args, {}, None, DEADLINE_S)
    if code:
        raise _explain(path, args, err.decode("utf-8", "replace"), code)
    return out


def _lines(names: Iterable[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()


def _environment(path: Path, extra: Mapping[str, str]) -> dict[str, str]:
    # A GIT_DIR or GIT_INDEX_FILE from a surrounding hook would send our writes into another repository.
    env = {
        key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key.startswith("GIT_CONFIG_")
    }
    env.update(
        LC_ALL="C",
        GIT_TERMINAL_PROMPT="0",
        GIT_ASKPASS="true",
        SSH_ASKPASS_REQUIRE="never",
        GIT_PAGER="cat",
        GIT_LITERAL_PATHSPECS="1",
        # Without this, a folder that has lost its .git would resolve to the repository around it.
        GIT_CEILING_DIRECTORIES=str(path.parent),
    )
    env.update(extra)
    return env


def _execute(
    path: Path, args: Sequence[str], env: Mapping[str, str], data: bytes | None, deadline: float
) -> tuple[int, bytes, bytes]:
    limit = _end.get()
    if limit is not None:
        deadline = min(deadline, max(0.0, limit - time.monotonic()))
    try:
        process = subprocess.Popen(
            ["git", *_SETTINGS, *args],
            cwd=path,
            env=_environment(path, env),
            stdin=subprocess.PIPE if data is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=os.name == "posix",
        )
    except FileNotFoundError:
        if not path.is_dir():
            message = f"The lab's folder {path} is not there (moved or deleted); open it at its new place."
            raise StoreError(message, cause="vanished") from None
        raise StoreError("The git program was not found on PATH; install git 2.38 or newer.") from None
    except OSError as error:
        raise StoreError(f"git could not be started in {path}: {error.strerror}.") from None
    try:
        out, err = process.communicate(data, timeout=deadline)
    except BaseException as error:
        _kill(process)
        if isinstance(error, subprocess.TimeoutExpired):
            message = f"git {args[0]} in {path} took longer than {deadline:.3g} s and was stopped."
            raise GitFailed(message, cause="deadline") from None
        raise
    return process.returncode, out, err


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.communicate()


_CAUSES: tuple[tuple[str, str, str], ...] = (
    (
        "ownership",
        r"dubious ownership",
        "git refuses the repository {path} because another user owns it; if you trust it, run "
        "`git config --global --add safe.directory {path}`.",
    ),
    (
        "full",
        r"No space left on device|Disk quota exceeded",
        "The disk is full: git could not write to {path}; free some space and try again.",
    ),
    (
        "read_only",
        r"Read-only file system|Permission denied|insufficient permission|Operation not permitted",
        "The repository {path} is read-only for this user; make it writable or copy the lab.",
    ),
    (
        "locked",
        r"Unable to create '(?P<lock>.+?\.lock)': File exists",
        "Another git process holds {lock}; wait for it, or delete that file if no git process is running.",
    ),
    ("not_a_lab", r"not a git repository", "{path} has no git repository of its own; create a lab there first."),
    (
        "corrupt",
        r"object file .* is empty|loose object .* is corrupt|bad object|unable to read|inflate|bad (signature|tree|config)|corrupt"
        r"|missing blob|could not get object|unable to parse|packfile .* cannot|reference broken|broken ref",
        "The repository {path} is damaged ({first}); run `git fsck` in it and restore it from a copy.",
    ),
)


def _explain(path: Path, args: Sequence[str], stderr: str, code: int) -> GitFailed:
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    first = re.sub(r"^(fatal|error): ", "", lines[0]) if lines else f"exit status {code}"
    for cause, pattern, sentence in _CAUSES:
        match = re.search(pattern, stderr, re.IGNORECASE)
        if match:
            lock = match.groupdict().get("lock") or "a lock file in it"
            message = sentence.format(path=path, first=first[:200], lock=lock)
            return GitFailed(message, stderr=stderr, code=code, cause=cause)
    return GitFailed(f"git {args[0]} failed in {path}: {first[:300]}.", stderr=stderr, code=code)
