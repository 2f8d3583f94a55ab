"""The bar: a rate of fresh work only, escaped labels, and plain text for readers without HTML."""

from __future__ import annotations

from harnesslab.rollout.progress import Bar


def test_it_counts_and_says_what_is_left() -> None:
    bar = Bar("measure <b>", 4, done=2, show=False)
    assert bar.seconds_left is None and repr(bar).startswith("measure <b>: 2/4 episodes")
    bar.advance("1 of 1 solved")
    left = bar.seconds_left
    assert left is not None and left >= 0
    assert "3/4" in bar.text() and "(1 of 1 solved)" in bar.text() and "left" in bar.text()
    bar.advance()
    assert "left" not in bar.text()


def test_its_html_escapes_the_label_and_notes() -> None:
    bar = Bar('x"><script>', 2, show=False)
    bar.advance("<img src=x>")
    shown = bar._repr_html_()
    assert "<script>" not in shown and "<img" not in shown and 'value="1"' in shown


def test_a_hidden_bar_draws_nothing(capsys) -> None:  # type: ignore[no-untyped-def]
    bar = Bar("quiet", 1, show=False)
    bar.advance()
    bar.tick()
    bar.close()
    assert capsys.readouterr() == ("", "")
