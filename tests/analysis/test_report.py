"""Reports: one HTML file that loads nothing, with the figures behind it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import harnesslab as hl
from harnesslab.cli import app
from harnesslab.errors import ConfigError
from harnesslab.rollout.records import Episode, Run

RIGHT = {"contract/right.yaml": "kind: prompt\nparams:\n  text: Walk right.\n"}
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def trained(open_lab: Callable[..., hl.Lab]) -> hl.Trainer:
    llm = hl.LLM.scripted(lambda m: "Action: right" if "Walk right" in str(m) else "Action: left", name=EVIL)
    made = hl.Trainer(lab=open_lab(), llm=llm, settings={"progress": False})
    loss = made.evaluate(hl.Proposal(RIGHT, "contract", "prompt", "contract/right", "walk", estimator=EVIL))
    loss.backward()
    made.optimizer.step()
    left = {"contract/left.yaml": "kind: prompt\nparams:\n  text: Or left.\n"}
    made.reject(hl.Proposal(left, "contract", "prompt", "contract/left", "left"), reason=f"no good {EVIL}")
    made.open_sealed(controls=["random", "first"], seeds=1)
    return made


def loads_nothing(html: str) -> None:
    assert html.startswith("<!DOCTYPE html>") and "<script" not in html.lower() and "javascript:" not in html
    assert not re.search(r"""(?:src|href)\s*=\s*['"](?!data:)""", html)


def test_the_report_of_a_lab_has_gains_controls_negatives_and_cost(trained: hl.Trainer, tmp_path: Path) -> None:
    report = trained.lab.report()
    loads_nothing(report.html)
    for said in (
        "+100.0 points on 8 sealed tasks",
        "contract/right",
        "no good",
        "&lt;script&gt;",
        "random",
        "first",
        "data:image/png",
    ):
        assert said in report.html, said
    frame = report.to_frame()
    results = frame[frame["row"] == "result"].set_index(["split", "harness", "backbone"])
    assert (
        results.loc[("sealed", "trained", EVIL), "solved"] == 8
        and results.loc[("sealed", "start", EVIL), "solved"] == 0
    )
    assert ("sealed", "trained", "random") in results.index and ("gate", "trained", EVIL) in results.index
    gain = frame[(frame["row"] == "gain") & (frame["split"] == "sealed")].iloc[0]
    assert (gain["points"], gain["tasks"], gain["gained"], gain["lost"]) == (100.0, 8, 8, 0) and gain["low"] > 0
    saved = report.save(tmp_path / "r.html")
    assert saved.read_text("utf-8") == report.html
    with pytest.raises(ConfigError, match="cannot be written"):
        report.save(tmp_path / "no" / "such" / "folder.html")


def test_the_command_writes_it_without_an_environment(trained: hl.Trainer, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(trained.lab.path), "--to", str(tmp_path / "out.html")])
    assert done.exit_code == 0, done.output
    assert "sealed tasks" in (tmp_path / "out.html").read_text("utf-8")


def test_an_untouched_lab_has_a_report_that_says_so(open_lab: Callable[..., hl.Lab]) -> None:
    report = open_lab().report()
    loads_nothing(report.html)
    assert "Nothing was measured yet." in report.html and report.rows == []


def test_the_report_of_a_run_counts_tasks_with_intervals() -> None:
    episodes = [Episode(f"t{n}", "ab"[n % 2], "", solved=n < 4, reason=EVIL, prompt_tokens=5) for n in range(8)]
    report = Run("7", "c" * 40, "gate", {"x": EVIL}, episodes, backbone="m").report()
    loads_nothing(report.html)
    assert report.rows[0] == {"family": "all", "solved": 4, "of": 8, "rate": 50.0, "low": 21.5, "high": 78.5}
    assert [row["family"] for row in report.rows] == ["all", "a", "b"] and "40 tokens" in report.html
    assert Run("7", "c" * 40, "gate", {}).report().rows[0]["of"] == 0
