"""AgentBench's DBBench on in-memory SQLite. See ``envs/README.md`` for source, splits and differences."""

from __future__ import annotations

import hashlib
from pathlib import Path

from harnesslab import data as hl_data
from harnesslab_envs.dbbench.env import Content, TableTasks
from harnesslab_envs.dbbench.records import read_records
from harnesslab_envs.dbbench.splits import divide

FILES = ("standard.jsonl", "dev.jsonl")


def environment(data: str | Path | None = None) -> TableTasks:
    """The 300 standard and 60 dev tasks, read from ``data`` (a folder with the published JSONL files)
    or from the data folder (``harnesslab data get dbbench``). Nothing is read before it is needed.
    """

    def load() -> Content:
        folder = hl_data.find("dbbench", data)
        records = [record for file in FILES for record in read_records(folder / file, Path(file).stem)]
        digest = hashlib.sha256(b"".join((folder / file).read_bytes() for file in FILES)).hexdigest()
        return Content({record.id: record for record in records}, divide(records), f"1+{digest[:8]}")

    return TableTasks("dbbench", load)
