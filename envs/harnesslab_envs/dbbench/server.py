"""A MariaDB server of one's own: a private folder, a socket in it, no network, gone when this process ends.

Its parent is a shell that reads from a pipe which only this process holds. When this process ends, however it does,
the shell kills the server and removes the folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
import weakref
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harnesslab.errors import EnvironmentFault, EnvironmentUnavailable

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = ("mariadbd", "mariadb-install-db")
GET_SERVER = "apt-get install mariadb-server"
GET_CLIENT = "pip install 'harnesslab[mariadb]'"
INSTALL_S, START_S = 180.0, 90.0
ANSWER_S = 30.0
"""For one statement of ours."""
FILE_BLOCKS = 1 << 20
"""How large each file of the server may become, in the blocks of a shell: of 512 bytes, in some of 1,024."""
SETTINGS = (
    "--no-defaults",
    "--skip-networking",
    "--skip-log-bin",
    "--skip-symbolic-links",
    "--local-infile=0",
    "--performance-schema=OFF",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_general_ci",
    "--default-time-zone=+00:00",
    # As in the server that the published hashes come from.
    "--sql-mode=",
    "--group-concat-max-len=1024",
    # All tables in one file that has an end.
    "--innodb-file-per-table=0",
    "--innodb-data-file-path=ibdata1:12M:autoextend:max:384M",
    "--innodb-buffer-pool-size=24M",
    "--innodb-flush-log-at-trx-commit=0",
    "--enforce-storage-engine=InnoDB",
)
GUARD = """
ulimit -f "$1"; folder=$2; shift 2
"$@" &
read -r _
kill -9 $!
wait $!
rm -rf "$folder"
"""


def missing() -> str:
    """Why no server can be started here, and what to do; empty where one can."""
    absent = [program for program in PROGRAMS if _which(program) is None]
    if absent:
        return f"MariaDB's server is not installed ({', '.join(absent)}). Get it with: {GET_SERVER}"
    if find_spec("pymysql") is None:
        return f"PyMySQL, the client of MariaDB, is not installed. Get it with: {GET_CLIENT}"
    return ""


@lru_cache(maxsize=1)
def server_version() -> str:
    """The server's version, ``10.11`` say. Raises EnvironmentUnavailable where there is none."""
    if reason := missing():
        raise EnvironmentUnavailable(reason)
    said = subprocess.run([_which("mariadbd") or "", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Ver (\d+\.\d+)", said)
    return found[1] if found else "unknown"


class Server:
    """A running server. ``close`` it when done; it ends with this process else. Raises EnvironmentUnavailable."""

    def __init__(self) -> None:
        if reason := missing():
            raise EnvironmentUnavailable(reason)
        # Not TMPDIR: the path of a socket may have 107 characters at most.
        self.folder = Path(tempfile.mkdtemp(prefix="harnesslab-db-", dir="/tmp"))
        self.socket = str(self.folder / "socket")
        self._log = self.folder / "log"
        self._user = _unprivileged()
        try:
            self._guard = self._start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self._finalizer = weakref.finalize(self, _end, self._guard, self.folder)
        self._wait()

    def connect(self, user: str = "root", **options: Any) -> Any:
        """A connection of PyMySQL, which commits at once; ``options`` are its own."""
        import pymysql

        options = {"charset": "utf8mb4", "autocommit": True, "read_timeout": ANSWER_S, **options}
        return pymysql.connect(unix_socket=self.socket, user=user, **options)

    def answers(self) -> bool:
        """Whether it still runs."""
        import pymysql

        try:
            self.connect().close()
        except (pymysql.err.Error, OSError):
            return False
        return True

    def close(self) -> None:
        """End the server and remove its data. Safe to call twice."""
        self._finalizer()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._user:
            shutil.chown(self.folder, self._user)
        (self.folder / "none").mkdir()  # the one folder whose files a user with that right could read; none has it
        owner = [f"--user={self._user}"] if self._user else []
        data = f"--datadir={self.folder / 'data'}"
        install = [_which("mariadb-install-db") or "", "--no-defaults", data, *owner]
        install += ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        with self._log.open("wb") as log:
            done = subprocess.run(
                install, stdout=log, stderr=log, stdin=subprocess.DEVNULL, timeout=INSTALL_S, check=False
            )
            if done.returncode:
                raise EnvironmentUnavailable(f"MariaDB's data folder cannot be made: {self._said()}")
            words = [_which("mariadbd") or "", *SETTINGS, data, *owner, f"--socket={self.socket}"]
            words += [
                f"--pid-file={self.folder / 'pid'}",
                f"--tmpdir={self.folder}",
                f"--secure-file-priv={self.folder / 'none'}",
            ]
            return subprocess.Popen(
                ["/bin/sh", "-c", GUARD, "sh", str(FILE_BLOCKS), str(self.folder), *words],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait(self) -> None:
        end = time.monotonic() + START_S
        while not self.answers():
            if time.monotonic() > end:
                said = self._said()
                self.close()
                raise EnvironmentUnavailable(f"MariaDB does not start here: {said}")
            time.sleep(0.05)

    def _said(self) -> str:
        with contextlib.suppress(OSError):
            return " ".join(self._log.read_text("utf-8", "replace").split())[-400:]
        return ""


def _end(guard: subprocess.Popen[bytes], folder: Path) -> None:
    assert guard.stdin is not None
    with contextlib.suppress(OSError):
        guard.stdin.close()
    guard.wait()
    shutil.rmtree(folder, ignore_errors=True)


def _which(program: str) -> str | None:
    return shutil.which(program, path=os.environ.get("PATH", "") + ":" + PATH)


def _unprivileged() -> str:
    """The user that the server runs as where we are root; empty where we are not."""
    if os.geteuid() != 0:
        return ""
    import pwd

    for name in ("mysql", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise EnvironmentFault("There is no user 'mysql' or 'nobody' that MariaDB could run as.")
