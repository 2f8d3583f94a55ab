"""Checks for people who write environments: ``check_env("my-env").raise_for_failures()``."""

from __future__ import annotations

from harnesslab.testing.check import check_env
from harnesslab.testing.report import CHECKS, Finding, Report
from harnesslab.testing.tasks import TaskRow, TaskTable, check_tasks

__all__ = ["CHECKS", "Finding", "Report", "TaskRow", "TaskTable", "check_env", "check_tasks"]
