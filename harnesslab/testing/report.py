"""What :func:`~harnesslab.testing.check_env` found: a table, and an error on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harnesslab.errors import EnvironmentFault
from harnesslab.markup import table
from harnesslab.plaintext import columns

CHECKS: Mapping[str, str] = {
    "splits": "the splits hold tasks and share none",
    "protocol": "reset and step keep the protocol",
    "json": "plain JSON values only",
    "bounded": "what an agent is shown is bounded",
    "privacy": "private facts and task ids do not reach the agent",
    "oracle": "the oracle solves each task",
    "null": "a null agent does not",
    "repeat": "the same seed gives the same trajectory",
    "processes": "also in another process, with another hash seed and date",
    "reset": "reset after an episode gives a clean start",
    "isolation": "changing a returned value changes nothing inside",
    "admissible": "admissible actions are accepted",
    "invalid": "actions that make no sense are answered, not raised",
    "close": "close can be called twice",
}
"""Each check by its key, in words."""

SHOWN = 3
"""Findings of one check that the table shows."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: the key of the check, the task it was seen on, and what was seen."""

    check: str
    task: str
    message: str

    def __str__(self) -> str:
        return f"{self.task}: {self.message}" if self.task else self.message


@dataclass(slots=True)
class Report:
    """The outcome for one environment and split; shows itself as a table.

    ``reset_ms`` and ``step_ms`` are medians in milliseconds over the oracle's episodes. ``skipped`` gives the
    reason for each check that could not be made.
    """

    environment: str
    version: str
    split: str
    tasks: int
    oracle_solved: int = 0
    null_solved: int = 0
    reset_ms: float = 0.0
    step_ms: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True where nothing is wrong."""
        return not self.findings

    def failures(self, check: str) -> list[Finding]:
        """The findings of one check."""
        return [finding for finding in self.findings if finding.check == check]

    def raise_for_failures(self) -> Report:
        """Raises EnvironmentFault with all findings; returns the report where there are none."""
        if self.findings:
            lines = [f"[{finding.check}] {finding}" for finding in self.findings]
            raise EnvironmentFault(f"The environment '{self.environment}' breaks its contract:\n" + "\n".join(lines))
        return self

    def rows(self) -> list[tuple[str, str, str]]:
        """(check, "ok" or "FAILED" or "skipped", what was seen), one row a check."""
        return [(title, *self._outcome(key)) for key, title in CHECKS.items()]

    def _outcome(self, check: str) -> tuple[str, str]:
        found = self.failures(check)
        if found:
            more = f" (and {len(found) - SHOWN} more)" if len(found) > SHOWN else ""
            return "FAILED", "; ".join(map(str, found[:SHOWN])) + more
        if check in self.skipped:
            return "skipped", self.skipped[check]
        counts = {"oracle": self.oracle_solved, "null": self.null_solved}
        return "ok", f"{counts[check]} of {self.tasks}" if check in counts else ""

    def _heading(self) -> str:
        return (
            f"{self.environment} {self.version}, split {self.split}, {self.tasks} tasks: "
            f"{self.reset_ms:.2f} ms a reset, {self.step_ms:.2f} ms a step"
        )

    def __str__(self) -> str:
        return "\n".join([self._heading(), *columns(self.rows())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(table((), self.rows(), caption=self._heading()))
