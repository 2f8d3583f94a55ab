"""Eval logs, written and read back with the real package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnesslab.errors import ConfigError
from harnesslab.rollout.records import Episode, Run, Step

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed (pip install harnesslab[inspect])")


def run() -> Run:
    step = Step(0, "Room 0.", {"messages": []}, [], "Action: right", "right", True, "", "Room 1.", False, 1.0)
    episodes = [
        Episode("t1", "f", "Walk.", repeat, solved=repeat == 0, progress=0.5, fired={"a/b": 1}, steps=[step], length=1)
        for repeat in range(2)
    ]
    broken = Episode("t2", "f", "Walk <b>.", status="unscorable", owner="environment", cause="crash", reason="it fell")
    identity: dict[str, Any] = {"environment": "corridor", "version": "1", "backbone": {"model": "m"}}
    return Run("7", "c" * 40, "gate", identity, [*episodes, broken], backbone="m")


@pytest.mark.parametrize("ending", ["eval", "json"])
def test_inspect_reads_what_was_written(tmp_path: Path, ending: str) -> None:
    from inspect_ai.log import read_eval_log

    path = run().save_inspect(tmp_path / f"run.{ending}")
    log = read_eval_log(str(path))
    assert (log.status, log.eval.task, log.eval.model, log.eval.config.epochs) == ("success", "corridor/gate", "m", 2)
    assert log.results.scores[0].metrics["accuracy"].value == 0.5 and log.results.completed_samples == 2
    samples = sorted(log.samples, key=lambda sample: (sample.id, sample.epoch))
    assert [(s.id, s.epoch) for s in samples] == [("t1", 1), ("t1", 2), ("t2", 1)]
    assert [s.scores["solved"].value for s in samples[:2]] == ["C", "I"] and not samples[2].scores
    assert [m.text for m in samples[0].messages] == ["Walk.", "Room 0.", "Action: right", "Room 1."]
    assert samples[0].metadata["fired"] == {"a/b": 1} and log.eval.metadata["harness"] == "c" * 40


def test_another_ending_or_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ends in \.eval or \.json"):
        run().save_inspect(tmp_path / "run.html")
    with pytest.raises(ConfigError, match="there is no folder"):
        run().save_inspect(tmp_path / "no" / "run.eval")
