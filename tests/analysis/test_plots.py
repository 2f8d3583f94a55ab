"""Plots: each returns a figure with what was asked, named axes, and marks that do not rest on colour alone."""

from __future__ import annotations

from typing import Any

import pytest

import harnesslab as hl
from harnesslab.analysis import plots
from harnesslab.trainer.failures import Failures
from tests.analysis.test_frames import trained  # noqa: F401  (a fixture)
from tests.trainer.trajectories import episode, run

pytest.importorskip("matplotlib")

PNG = b"\x89PNG"


def words(figure: Any) -> str:
    """Every text in a figure."""
    import matplotlib.text

    return "\n".join(one.get_text() for one in figure.findobj(matplotlib.text.Text))


def test_the_learning_curve(trained: Any) -> None:  # noqa: F811
    control = trained.measure("gate", llm=hl.LLM.random(1))
    figure = plots.learning_curve(trained.lab, controls=[control])
    [axes] = figure.axes
    assert axes.get_xlabel() == "epoch (one verdict each)"
    assert axes.get_ylabel() == "solved share of gate tasks"
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["rejected candidate", "random control under the same harness", "baseline, 95% interval"]
    steps, rejected = axes.lines[0], next(line for line in axes.lines if line.get_label() == "rejected candidate")
    assert list(steps.get_xdata()) == [0, 2, 2]
    assert list(steps.get_ydata()) == [0.0, 1.0, 1.0]
    assert list(rejected.get_xdata()) == [1]
    assert rejected.get_marker() == "x"
    assert figure._repr_png_().startswith(PNG)


def test_a_lab_without_verdicts_gives_an_empty_curve(open_lab: Any) -> None:
    figure = plots.learning_curve(open_lab())
    assert figure.axes[0].get_legend() is None
    assert plots.png(figure).startswith(PNG)


def test_failures_by_cause() -> None:
    stuck = [("left", "Room 0.")] * 5
    failures = Failures(run(episode("a", (None, "$x^$")), episode("b", *stuck), episode("c", *stuck)))
    figure = plots.failure_causes(failures)
    bars = [patch.get_width() for patch in figure.axes[0].patches]
    assert sorted(bars) == [1, 2]
    hatches = {patch.get_hatch() for patch in figure.axes[0].patches}
    assert len(hatches) == 2
    assert "3 of 3 episodes failed" in words(figure)
    assert plots.png(plots.failure_causes(Failures(run()))).startswith(PNG)


def test_untrusted_names_are_no_formulas() -> None:
    failures = Failures(run(episode("a", ("go $\\frac{", "Error: $\\frac{ is unknown $"), budget=1)))
    assert plots.png(plots.failure_causes(failures)).startswith(PNG)
    shown = run(episode("a", fired={"action/$\\frac{$": 3}))
    assert plots.png(plots.fired_counts(shown)).startswith(PNG)


def test_the_flip_matrix(trained: Any) -> None:  # noqa: F811
    from harnesslab.ledger import Verdict

    promoted = trained.lab.repo.candidates(state="promoted").rows[0]
    text = words(plots.flip_matrix(Verdict.from_json(promoted.verdict)))
    assert "4\ngained" in text
    assert "0\nlost" in text
    assert "0\nsolved in both" in text


def test_fired_counts(trained: Any) -> None:  # noqa: F811
    figure = plots.fired_counts(trained.measure())
    assert [patch.get_width() for patch in figure.axes[0].patches] == [4, 4]
    assert "contract/right" in words(figure)
