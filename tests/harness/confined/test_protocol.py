"""Whatever comes through the socket, the trusted side raises a fault of the harness, or uses a checked value."""

from __future__ import annotations

import json
import os
import socket
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harnesslab.errors import InterventionFault
from harnesslab.harness import Context, Proposal
from harnesslab.harness.confined import box
from harnesslab.harness.confined.box import Allowed, Code
from harnesslab.harness.pyfile import Running
from harnesslab.subproc.channel import Channel
from harnesslab.subproc.frames import HEAD, encode

CODE = Code("action/x", "action/x.py", "", ("realize",))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just({"raw": "a", "action": "b"}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "value", "error", "memory", "raw", "action", "again", "text", "line", "kind"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
ANSWERS = st.one_of(
    st.fixed_dictionaries({"id": st.sampled_from([1, 2, 3]), "value": VALUES, "memory": VALUES}),
    st.fixed_dictionaries({"id": st.sampled_from([2, 2.0, True, "2"]), "error": VALUES}),
    VALUES,
)


class Ended:
    """A process that has ended."""

    pid = 2**22 + 1  # above any process number

    def wait(self, timeout: float) -> int:
        return 0


class Played:
    """A child that has said all that it will ever say."""

    scratch = ""

    def __init__(self, said: bytes):
        ours, theirs = socket.socketpair()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        read, write = os.pipe()
        os.close(write)
        self.process, self.channel = Ended(), Channel(ours, read, 1 << 16)
        self.theirs = theirs
        theirs.sendall(said)
        theirs.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        self.channel.close()
        self.theirs.close()


def ask(said: bytes) -> Any:
    """The answer of a hook to which a child says this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box, "_start", lambda allowed: Played(said))
        patch.setattr(box, "ALLOWED", Allowed(start_s=1, load_s=1, hook_s=1))
        running = Running(CODE, "")
        with closing(running._box):
            return running.realize(Context("i", "o"), Proposal("r", "a"))


READY = encode({"id": 0, "value": "ready"}) + encode({"id": 1, "value": None, "memory": None})


def test_a_proper_answer_is_used() -> None:
    said = READY + encode({"id": 2, "value": {"raw": "r", "action": "b"}, "memory": {}})
    assert ask(said) == Proposal("r", "b")


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ANSWERS, min_size=1, max_size=3))
def test_any_answers(answers: list[Any]) -> None:
    bodies = [json.dumps(answer).encode() for answer in answers]  # NaN included
    said = READY + b"".join(HEAD.pack(len(body)) + body for body in bodies)
    try:
        assert isinstance(ask(said), Proposal | None)
    except InterventionFault as fault:
        assert (
            fault.cause in ("intervention", "died", "nonsense") and "action/x" in str(fault) and len(str(fault)) < 1500
        )


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([READY, READY[:30]]))
def test_any_bytes(noise: bytes, before: bytes) -> None:
    with pytest.raises(InterventionFault) as caught:
        ask(before + noise)
    assert caught.value.cause in ("intervention", "died", "nonsense")
