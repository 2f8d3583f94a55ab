"""Reads the tasks of DBBench as published: one JSON object a line.

A published line holds a question, the table that it is about, a ``label`` (the answer, or for INSERT
and UPDATE the statement that does the change) and for changes ``answer_md5``, the hash of the table
that the statement leaves behind in MySQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from harnesslab.rollout.taskfiles import TaskFileError, read_jsonl, table

CHANGES = ("INSERT", "UPDATE", "DELETE")
"""Families that are judged by the resulting table; all others are judged by the answer."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table: every column is TEXT and every cell a string, as AgentBench builds them."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One task. ``label`` and ``published_hash`` are the gold answer and never leave the grader and the oracle."""

    id: str
    family: str
    question: str
    about: str
    tables: tuple[Table, ...]
    label: tuple[str, ...]
    published_hash: str = ""
    evidence: str = ""

    @property
    def changes(self) -> bool:
        """True where the task is to change the table, false where it is to answer a question."""
        return self.family in CHANGES

    @property
    def instruction(self) -> str:
        """The task as the agent is told it: the lines of AgentBench's user message."""
        lines = []
        if self.evidence:
            lines.append(f"Evidence about the question: {self.evidence}")
        if self.about:
            lines.append(f"Additional table information about the question: {self.about}")
        lines.append(f"Question: {self.question}")
        return "\n".join(lines)


_CELL = ("str", "int", "float")
"""What pydantic adds to the place of a cell that is none of these."""


class _Column(BaseModel):
    name: str


class _TableInfo(BaseModel):
    columns: list[_Column] = Field(min_length=1)
    rows: list[list[str | int | float | None]]


class _Table(BaseModel):
    table_name: str
    table_info: _TableInfo

    def build(self) -> Table:
        columns = tuple(column.name for column in self.table_info.columns)
        rows = tuple(tuple(str(cell) for cell in row) for row in self.table_info.rows)
        if any(len(row) != len(columns) for row in rows):
            raise ValueError(f"table '{self.table_name}' has a row that does not fit its columns")
        return Table(self.table_name, columns, rows)


class _Line(BaseModel):
    description: str
    type: list[str] = Field(min_length=1)
    table: Annotated[list[_Table], BeforeValidator(lambda value: value if isinstance(value, list) else [value])] = (
        Field(min_length=1)
    )
    label: list[str] = Field(min_length=1)
    add_description: str = ""
    evidence: str = ""
    answer_md5: str = ""

    def build(self, record_id: str) -> Record:
        return Record(
            id=record_id,
            family=self.type[0],
            question=self.description,
            about=self.add_description,
            tables=tuple(table.build() for table in self.table),
            label=tuple(self.label),
            # Published as the text of a query result: [('0123...',)]
            published_hash=self.answer_md5.strip("[]()").split(",")[0].strip().strip("'"),
            evidence=self.evidence,
        )


def read_records(path: Path, prefix: str) -> Iterator[Record]:
    """The tasks of one published file, with ids ``<prefix>-<line index>``.

    Raises TaskFileError, naming file, line and key, where a line is not a task.
    """
    lines = read_jsonl(path)
    while True:
        number = None
        try:
            number, value = next(lines)
            yield _Line.model_validate(table(value, path, number)).build(f"{prefix}-{number - 1}")
        except StopIteration:
            return
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(part for part in first["loc"] if isinstance(part, str) and part not in _CELL)
            what = "must be an object" if first["type"] == "model_type" else first["msg"]
            raise _no_task(path, number, f"key '{key}': {what}") from error
        except TaskFileError as error:
            raise _no_task(path, error.line, (f"key '{error.key}': " if error.key else "") + error.what) from error
        except ValueError as error:
            raise _no_task(path, number, str(error)) from error


def _no_task(path: Path, line: int | None, reason: str) -> TaskFileError:
    how = "Get the file again: harnesslab data get dbbench"
    return TaskFileError(path, f"not a DBBench task ({reason}). {how}", line=line)
