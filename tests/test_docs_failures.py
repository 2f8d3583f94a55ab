"""The page on failures says what the code does."""

from __future__ import annotations

from pathlib import Path

from harnesslab.rollout.owners import table
from harnesslab.trainer.config import Settings

PAGE = (Path(__file__).parents[1] / "docs" / "failures.md").read_text(encoding="utf-8")


def test_the_page_holds_the_table() -> None:
    assert table() in PAGE, "write it again: python -c 'from harnesslab.rollout.owners import table; print(table())'"


def test_the_page_names_every_setting_it_explains_with_its_default() -> None:
    fields = Settings.model_fields
    for name in ("tolerance", "leave_out", "deadline", "reply_deadline", "max_calls", "max_seconds"):
        assert name in fields and f"`{name}`" in PAGE
    assert f"`{fields['tolerance'].default}`" in PAGE and f"{fields['reply_deadline'].default:g}" in PAGE
