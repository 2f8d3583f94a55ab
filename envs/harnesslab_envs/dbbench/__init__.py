"""AgentBench's DBBench on in-memory SQLite. See ``envs/README.md`` for source, splits and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harnesslab import data as hl_data
from harnesslab.rollout.env import Split, Task
from harnesslab_envs.dbbench.env import TableTasks
from harnesslab_envs.dbbench.records import Record, read_records
from harnesslab_envs.dbbench.splits import divide

FILES = ("standard.jsonl", "dev.jsonl")


def environment(data: str | Path | None = None) -> TableTasks:
    """The 300 standard and 60 dev tasks, read from ``data`` (a folder with the published JSONL files)
    or from the data folder (``harnesslab data get dbbench``). Nothing is read before it is needed.
    """

    def load() -> tuple[Mapping[str, Record], Mapping[Split, Sequence[Task]]]:
        folder = hl_data.find("dbbench", data)
        records = [record for file in FILES for record in read_records(folder / file, Path(file).stem)]
        return {record.id: record for record in records}, divide(records)

    return TableTasks("dbbench", "1", load)
