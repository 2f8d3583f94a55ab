"""The rerank kind."""

from __future__ import annotations

from typing import Any


def choose(pipe: Any, now: Any, reply: Any, *actions: str) -> Any:
    return pipe.choose(now, [reply(f"Action: {action}" if action else "?") for action in actions])


def test_draws_samples(pipeline: Any, context: Any) -> None:
    draft = pipeline("kind: rerank\nparams: {samples: 5, temperature: 1.1}\n").begin(context()).draft
    assert (draft.samples, draft.temperature) == (5, 1.1)


def test_each_score_alone_decides(pipeline: Any, context: Any, history: Any, reply: Any) -> None:
    zero = {"validity": 0, "novelty": 0, "agreement": 0, "overlap": 0}

    def only(name: str) -> Any:
        weights = ", ".join(f"{key}: {1 if key == name else value}" for key, value in zero.items())
        return pipeline(f"kind: rerank\nparams: {{{weights}}}\n")

    now = context("room", "Heat the egg.", admissible=("b", "heat egg"), history=history(("room", "a")))
    assert choose(only("validity"), now, reply, "a", "b").proposal.action == "b"
    assert choose(only("novelty"), now, reply, "a", "b").proposal.action == "b"
    assert choose(only("agreement"), now, reply, "a", "b", "b").proposal.action == "b"
    assert choose(only("overlap"), now, reply, "b", "heat egg").proposal.action == "heat egg"


def test_fires_only_where_replies_differ(pipeline: Any, context: Any, reply: Any) -> None:
    pipe = pipeline("kind: rerank\n")
    assert choose(pipe, context(), reply, "a", "a").fired == ()
    assert choose(pipe, context(), reply, "", "a").fired == ("action/it",)
    assert choose(pipe, context(), reply, "", "a").proposal.action == "a"
