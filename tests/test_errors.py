"""What a reader of a notebook sees of an error: the own line and one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesslab.errors import ConfigError, HarnesslabError
from harnesslab.plaintext import in_words


def test_ipython_shows_the_readers_line_and_none_of_ours(tmp_path: Path) -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    with pytest.raises(ConfigError) as caught:
        shell.run_cell("import harnesslab as hl\n\nhl.Lab.open('nowhere')").raise_error()
    *lines, sentence = caught.value._render_traceback_()
    assert lines[-1] == "----> 3 hl.Lab.open('nowhere')"
    assert not any("harnesslab/" in line or "exec(" in line for line in lines)
    assert sentence.startswith("ConfigError: ") and "nowhere" in sentence


def test_an_error_that_was_never_raised_is_its_sentence() -> None:
    assert HarnesslabError("the pan is hot")._render_traceback_() == ["HarnesslabError: the pan is hot"]


def test_an_exception_whose_text_raises_still_has_words() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    assert in_words(Mute()) == "Mute: an exception without a text"
    assert in_words(ValueError("x" * 900 + "\ud800")) == "ValueError: " + "x" * 500
    assert in_words(ValueError("\ud800")) == "ValueError: ?"
