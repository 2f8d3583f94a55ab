"""One git process: started without questions and hooks, ended by its deadline, its failure in one sentence.

What a repository may configure is dealt with in `isolation`; this module knows nothing of repositories.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from harnesslab.errors import StoreError

DEADLINE_S = 30.0
"""Default deadline of one git command, in seconds."""

MAX_OUTPUT = 256_000_000
"""Bytes that one git command may print. A tree of a few kilobytes can name billions of files."""

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
    "-c", "core.protectHFS=true",
    "-c", "core.protectNTFS=true",
    "-c", "core.bigFileThreshold=4m",  # larger files are compared as binary: a diff of one would not fit into memory
    "-c", "core.safecrlf=false",  # a check of what a person adds; a file in the way of it would end every act
    "-c", "submodule.recurse=false",
    "-c", "diff.autoRefreshIndex=true",  # `diff` compares contents, and is only asked with a copy of the index
    "-c", "core.splitIndex=false",  # else writing that copy would leave a shared part in the git folder
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "advice.detachedHead=false",
)  # fmt: skip


_PASSED = re.compile("GIT_CONFIG_|GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL)$")
"""git's variables that hold for us: the user's own configuration, and who commits."""


class GitFailed(StoreError):
    """A git command ended with an error; `stderr` keeps git's own words, `code` its exit status."""

    def __init__(self, message: str, *, stderr: str = "", code: int | None = None, cause: str = ""):
        self.stderr, self.code = stderr, code
        super().__init__(message, cause=cause)


def _environment(path: Path, extra: Mapping[str, str]) -> dict[str, str]:
    # A GIT_DIR or GIT_INDEX_FILE from a surrounding hook would send our writes into another repository.
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or _PASSED.match(key)}
    env.update(
        LC_ALL="C",
        GIT_TERMINAL_PROMPT="0",
        GIT_ASKPASS="true",
        SSH_ASKPASS_REQUIRE="never",
        GIT_PAGER="cat",
        GIT_LITERAL_PATHSPECS="1",
        # Nothing is ever fetched: a lazy fetch runs what the remote's URL or `core.sshCommand` names.
        GIT_ALLOW_PROTOCOL="none",
        GIT_NO_LAZY_FETCH="1",
        # What is shown is what the commits hold, not what `refs/replace` puts in their place.
        GIT_NO_REPLACE_OBJECTS="1",
        # Without this, a folder that has lost its .git would resolve to the repository around it.
        GIT_CEILING_DIRECTORIES=str(path.parent),
    )
    env.update(extra)
    # A relative entry would be looked up in the lab, which may hold a file named `git`.
    env["PATH"] = os.pathsep.join(place for place in os.get_exec_path() if Path(place).is_absolute())
    return env


def execute(
    path: Path,
    args: Sequence[str],
    env: Mapping[str, str] | None = None,
    data: bytes | None = None,
    deadline: float = DEADLINE_S,
) -> tuple[int, bytes, bytes]:
    """Run `git ARGS` in folder `path`; returns exit status, standard output and standard error."""
    limit = _end.get()
    if limit is not None:
        deadline = min(deadline, max(0.0, limit - time.monotonic()))
    variables = _environment(path, env or {})
    try:
        process = subprocess.Popen(
            [shutil.which("git", path=variables["PATH"]) or "git", *_SETTINGS, *args],
            cwd=path,
            env=variables,
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
    assert process.stdout is not None
    output = _Output(process, process.stdout)
    try:
        _, err = process.communicate(data, timeout=deadline)
    except BaseException as error:
        _kill(process)
        if isinstance(error, subprocess.TimeoutExpired):
            message = f"git {args[0]} in {path} took longer than {deadline:.3g} s and was stopped."
            raise GitFailed(message, cause="deadline") from None
        raise
    out = output.all()
    if len(out) > MAX_OUTPUT:
        message = f"git {args[0]} in {path} printed more than {MAX_OUTPUT / 1e6:.0f} MB and was stopped."
        raise GitFailed(f"{message} The repository is too large, or was made to be.", cause="huge")
    return process.returncode, out, err


class _Output:
    """Reads the standard output of a process in a thread, and ends the process once that is too long."""

    def __init__(self, process: subprocess.Popen[bytes], pipe: IO[bytes]):
        self._process, self._pipe = process, pipe
        process.stdout = None  # `communicate` is to leave it to us
        self._data = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def all(self) -> bytes:
        """Everything, once the process has ended."""
        self._thread.join()
        return bytes(self._data)

    def _read(self) -> None:
        with self._pipe as pipe:
            while chunk := os.read(pipe.fileno(), 1 << 18):
                self._data += chunk
                if len(self._data) > MAX_OUTPUT:
                    _signal(self._process)
                    return


def _kill(process: subprocess.Popen[bytes]) -> None:
    _signal(process)
    process.communicate()


def _signal(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


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
        "Unable to create '{lock}': File exists. Another git process is at work in {path}; wait for it, or delete that file "
        "if none is running.",
    ),
    (
        "conflict",
        r"'(?P<ref>refs/\S+)' exists; cannot create|there is a non-empty directory '\S*?(?P<folder>refs/\S+)' blocking",
        "{ref} is in the way of a ref of harnesslab in {path} ({first}); rename or delete it, for example with "
        "`git update-ref -d {ref}`.",
    ),
    (
        "corrupt",
        r"bad config line \d+ in file (?P<file>\S.*)",
        "git's configuration file {file} is damaged ({first}), so nothing can be done in {path}; correct that line.",
    ),
    (
        "corrupt",
        r"index file (smaller|corrupt|open)|bad index (version|file)|bad signature 0x|index uses \S+ extension|unordered stage entries",
        "The index of {path} is damaged ({first}); `rm .git/index` and `git reset` there make a new one, and leave your files as they are.",
    ),
    ("not_a_lab", r"not a git repository", "{path} has no git repository of its own; create a lab there first."),
    (
        "corrupt",
        r"object file .* is empty|loose object .* is corrupt|bad object|unable to read|inflate|bad (signature|tree)|corrupt"
        r"|missing blob|could not get object|unable to parse|packfile .* cannot|reference broken|broken ref|not a tree object"
        r"|unexpected line in|no such ref: HEAD|not a valid ref|bad shallow line",
        "The repository {path} is damaged ({first}); run `git fsck` in it and restore it from a copy.",
    ),
)


def explain(path: Path, args: Sequence[str], stderr: str, code: int) -> GitFailed:
    """git's own words as one sentence with the remedy."""
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    lines.sort(key=lambda line: not line.startswith(("fatal: ", "error: ")))  # warnings and hints come first, and last
    first = re.sub(r"^(fatal|error): ", "", lines[0]) if lines else f"exit status {code}"
    for cause, pattern, sentence in _CAUSES:
        match = re.search(pattern, stderr, re.IGNORECASE)
        if match:
            found = match.groupdict()
            ref = found.get("ref") or found.get("folder")
            message = sentence.format(
                path=path, first=first[:200], lock=found.get("lock"), ref=ref, file=found.get("file")
            )
            return GitFailed(message, stderr=stderr, code=code, cause=cause)
    return GitFailed(f"git {args[0]} failed in {path}: {first[:300]}.", stderr=stderr, code=code)
