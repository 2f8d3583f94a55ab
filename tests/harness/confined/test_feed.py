"""What is sent of a context, put together on the other side, is the context; what is known is not sent again."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harnesslab.harness import Context, Turn, to_json
from harnesslab.harness.confined.feed import Feed
from harnesslab.harness.confined.inside import Mirror

TEXT = st.text(max_size=3)
TURNS = st.lists(st.builds(Turn, TEXT, TEXT, st.none() | TEXT, TEXT), max_size=5).map(tuple)
CONTEXTS = st.builds(
    Context, TEXT, TEXT, TURNS, st.none() | st.lists(TEXT, max_size=2).map(tuple), step=st.integers(0, 9)
)


@given(st.lists(CONTEXTS, min_size=1, max_size=5))
def test_any_sequence_of_contexts_arrives(contexts: list[Context]) -> None:
    feed, mirror = Feed(), Mirror()
    for context in contexts:
        mirror.update(json.loads(json.dumps(feed.news(context))))
        assert {**mirror.context(), "memory": {}} == to_json(context)
        assert feed.news(context) == {"changed": {}, "kept": len(context.history), "turns": []}


def test_an_episode_sends_each_turn_once() -> None:
    feed = Feed()
    history: tuple[Any, ...] = ()
    sizes = []
    for step in range(200):
        news = feed.news(Context("Find it.", f"Room {step % 10}.", history, ("left", "right"), step=step))
        sizes.append(len(json.dumps(news)))
        history = (*history, Turn(f"Room {step % 10}.", "Action: right", "right", "ok"))
    assert max(sizes[1:]) < 300 and len(set(sizes[20:90])) <= 2
