"""Checks for people who write environments: ``check_env("my-env").raise_for_failures()``."""

from __future__ import annotations

from harnesslab.testing.check import check_env
from harnesslab.testing.report import CHECKS, Finding, Report

__all__ = ["CHECKS", "Finding", "Report", "check_env"]
