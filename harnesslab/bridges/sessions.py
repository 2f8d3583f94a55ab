"""What the proxy remembers of conversations: bounded, in memory, and gone when it ends."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harnesslab.harness.pipeline import Pipeline
from harnesslab.rollout.foreign import Mark, text_of

PLACES = 2000
"""Places that are remembered of one session."""
PIPELINES = 32
"""Sessions at rest whose Python interventions keep their process."""
_SALT = secrets.token_bytes(16)


class Marks(MutableMapping[str, Mark]):
    """The marks of one session; of more than :data:`PLACES` the oldest is forgotten."""

    def __init__(self) -> None:
        self._marks: OrderedDict[str, Mark] = OrderedDict()

    def __getitem__(self, key: str) -> Mark:
        return self._marks[key]

    def __setitem__(self, key: str, mark: Mark) -> None:
        self._marks[key] = mark
        while len(self._marks) > PLACES:
            self._marks.popitem(last=False)

    def __delitem__(self, key: str) -> None:
        del self._marks[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._marks)

    def __len__(self) -> int:
        return len(self._marks)


@dataclass(slots=True)
class Session:
    """One conversation, or one agent that named itself in a header."""

    id: str
    marks: Marks = field(default_factory=Marks)
    used: float = field(default_factory=time.monotonic)
    pipeline: Pipeline | None = None
    """The harness at work: its Python interventions keep a process here, so that nothing passes from one session to another."""
    busy: int = 0


class Sessions:
    """At most ``limit`` sessions; the one that was idle longest is forgotten first, and each after ``idle`` seconds."""

    def __init__(self, limit: int = 10_000, idle: float = 3600.0):
        self.limit, self.idle = limit, idle
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._live: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    @contextlib.contextmanager
    def working(self, session: Session, harness: Pipeline) -> Iterator[Pipeline]:
        """The harness of a session; at most :data:`PIPELINES` sessions that are at rest keep their processes."""
        if session.pipeline is None:
            session.pipeline = harness.episode()
        self._live[session.id] = session
        self._live.move_to_end(session.id)
        session.busy += 1
        try:
            yield session.pipeline
        finally:
            session.busy -= 1
            rest = [one for one in self._live.values() if not one.busy]
            for one in rest[: max(0, len(self._live) - PIPELINES)]:
                self._retire(one)

    def close(self) -> None:
        """End all processes."""
        for session in list(self._live.values()):
            self._retire(session)

    def _retire(self, session: Session) -> None:
        del self._live[session.id]
        if session.pipeline is not None:
            session.pipeline.close()
            session.pipeline = None

    def find(self, named: str, who: str, messages: Sequence[Mapping[str, Any]]) -> Session:
        """The session that was named, else the one that begins with the same system and first user message.

        ``who`` is the caller's key: sessions of two callers are never one. Only a salted digest of all three is kept.
        """
        begin = named or "\0".join(_beginning(messages))
        identity = hashlib.blake2b(f"{who}\0{begin}".encode("utf-8", "replace"), key=_SALT, digest_size=9).hexdigest()
        now = time.monotonic()
        session = self._sessions.pop(identity, None) or Session(identity)
        session.used = now
        self._sessions[identity] = session
        while self._sessions:
            oldest = next(iter(self._sessions.values()))
            if len(self._sessions) <= self.limit and now - oldest.used <= self.idle:
                break
            del self._sessions[oldest.id]
        return session


def _beginning(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        yield f"{message.get('role')} {text_of(message)}"
        if message.get("role") == "user":
            return
