"""Failures: typed, clustered, and shown without letting model text through as markup."""

from __future__ import annotations

from harnesslab.rollout.taxonomy import LABELS
from harnesslab.trainer.failures import Failures
from tests.trainer.trajectories import episode, run

EVIL = "<script>alert('x')</script>"


def unread(task: str) -> object:
    return episode(task, (None, "say Action: ..."), (None, "say Action: ..."))


def refused(task: str, word: str) -> object:
    return episode(task, (f"fly {word}", f"You cannot fly {word}.", {"invalid": True}))


def test_failures_are_clustered_by_label_cause_and_message() -> None:
    failures = Failures(run(unread("a"), refused("b", "north"), refused("c", "south"), unread("d"), unread("e")))
    assert [(c.label, c.cause, c.signature, c.tasks) for c in failures.clusters] == [
        ("action realization", "no action in the reply", "", ("a", "d", "e")),
        ("contract mismatch", "refused by the environment", "You cannot ….", ("b", "c")),
    ]
    assert failures.counts() == dict(zip(LABELS, (3, 2, 0, 0), strict=True))
    assert [f.episode.task_id for f in failures.of("contract mismatch")] == ["b", "c"]


def test_solved_and_unscorable_episodes_are_kept_apart() -> None:
    good = episode("a", ("put", "done"), solved=True)
    broken = episode("b", status="unscorable", owner="environment")
    failures = Failures(run(good, broken, unread("c")))
    assert [e.task_id for e in failures.episodes] == ["c"]
    assert [e.task_id for e in failures.solved] == ["a"]
    assert failures.unscorable == 1
    assert repr(failures).startswith("1 of 2 episodes failed, 1 more episode could not be scored")


def test_a_run_without_failures_says_so() -> None:
    failures = Failures(run(episode("a", ("put", "done"), solved=True)))
    assert (len(failures), failures.clusters) == (0, ())
    assert repr(failures) == "0 of 1 episodes failed"
    assert "0 of 1" in failures._repr_html_()


def test_text_of_models_and_environments_is_escaped() -> None:
    failures = Failures(run(episode(EVIL, (EVIL, f"cannot {EVIL}", {"invalid": True})), episode("b", (None, EVIL))))
    html = failures._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_to_frame_has_one_row_a_failure() -> None:
    frame = Failures(run(unread("a"), refused("b", "north"))).to_frame()
    assert frame[["task", "label", "step", "invalid", "steps"]].to_dict("records") == [
        {"task": "a", "label": "action realization", "step": 0, "invalid": 2, "steps": 2},
        {"task": "b", "label": "contract mismatch", "step": 0, "invalid": 1, "steps": 1},
    ]


def test_an_empty_frame_keeps_its_columns() -> None:
    assert "label" in Failures(run()).to_frame().columns
