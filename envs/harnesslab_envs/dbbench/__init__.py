"""AgentBench's DBBench on in-memory SQLite, or on a private MariaDB. See ``envs/README.md`` for source, splits and differences."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from harnesslab import data as hl_data
from harnesslab.errors import ConfigError
from harnesslab.rollout.env import Task
from harnesslab_envs.dbbench.engines import Engine, SQLite
from harnesslab_envs.dbbench.env import Content, TableTasks
from harnesslab_envs.dbbench.mariadb import MariaDB
from harnesslab_envs.dbbench.records import read_records
from harnesslab_envs.dbbench.splits import divide

ENGINES: dict[str, Callable[[], Engine]] = {"sqlite": SQLite, "mariadb": MariaDB}
FILES = ("standard.jsonl", "dev.jsonl")


class PublishedTasks(TableTasks):
    """DBBench's own. ``tables`` has no instructions to compare: it asks the same few questions in all splits on purpose."""

    def instruction(self, task: Task) -> str:
        """The question, or the change, with the headers of its table."""
        return self._content().records[task.id].instruction


def environment(data: str | Path | None = None, *, engine: str = "sqlite") -> TableTasks:
    """The 300 standard and 60 dev tasks, read from ``data`` (a folder with the published JSONL files)
    or from the data folder (``harnesslab data get dbbench``). Nothing is read before it is needed.

    ``engine``: ``"sqlite"``, or ``"mariadb"``, a private server that starts with the first episode and judges changes
    by the published hashes alone.
    """
    if engine not in ENGINES:
        raise ConfigError(f"dbbench has no engine {engine!r}; it has {', '.join(ENGINES)}.")

    def load() -> Content:
        folder = hl_data.find("dbbench", data)
        records = [record for file in FILES for record in read_records(folder / file, Path(file).stem)]
        digest = hashlib.sha256(b"".join((folder / file).read_bytes() for file in FILES)).hexdigest()
        return Content({record.id: record for record in records}, divide(records), f"1+{digest[:8]}")

    return PublishedTasks("dbbench", load, ENGINES[engine]())
