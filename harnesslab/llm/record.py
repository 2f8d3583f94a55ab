"""Record and replay of completions, keyed by the exact request body and the repeat index.

A recording is a JSON Lines file. A line of kind ``backbone`` holds what was asked for and the identity of what
answered; every other line is one completion: the key, the reply, the usage, and digests of the
request's parts. The body itself is not kept (5,000 completions stay near one megabyte); the digests of its messages are
enough to say where a request that is not found differs from the nearest one that was recorded.

Several processes may append to one file: each line is written whole under a file lock. A last line that was torn
by a crash is skipped and sealed off by the next one. ``.gz`` recordings (see :meth:`Recording.pack`) are
for replay only.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol, overload

from filelock import FileLock

from harnesslab.errors import BackboneError, ConfigError, ReplayMiss
from harnesslab.llm.body import digest
from harnesslab.llm.replies import tool_calls
from harnesslab.llm.types import Completion
from harnesslab.redaction import scrub

Mode = Literal["record", "replay", "auto"]

_KEY_DIGITS = 32  # 128 bits of the SHA-256: no two bodies of a lab will ever share them
_PART_DIGITS = 6  # only tells parts of near-equal requests apart, in a message for a person
_PREVIEW = 60


class Identified(Protocol):
    """What a recording has to know of the backbone that it stands before."""

    @property
    def spec(self) -> dict[str, Any]: ...

    def live_identity(self) -> dict[str, Any]: ...


class Recording:
    """A store of completions in one file.

    Modes: ``record`` starts a new file; ``auto`` goes on with one that may be there. Both ask live what is not in the
    file yet, and append it. ``replay`` never asks live: a miss raises ReplayMiss.
    """

    def __init__(self, path: Path, mode: Mode):
        self.path, self.mode = path, mode
        self._lock = threading.Lock()
        self._replies: dict[tuple[str, int], dict[str, Any]] = {}
        self._identities: dict[str, dict[str, Any]] = {}
        self._admitted: set[str] = set()
        self._position = 0
        self._torn = False

    @classmethod
    def open(cls, path: str | Path, mode: Mode | None = None) -> Recording:
        """Open a recording and read its index. Without ``mode``: ``replay`` for ``.gz``, else ``auto``.

        Raises ConfigError for an unusable path or mode.
        """
        path = Path(path)
        zipped = path.suffix == ".gz"
        mode = mode or ("replay" if zipped else "auto")
        if mode not in ("record", "replay", "auto"):
            raise ConfigError(f"recording {path}: mode '{mode}' is not one of record, replay, auto")
        if zipped and mode != "replay":
            raise ConfigError(f"recording {path}: a .gz file is for replay only; record to a .jsonl, then pack() it")
        if mode == "replay" and not path.is_file():
            raise ConfigError(f"recording {path}: the file does not exist; record it first (mode='record')")
        if mode == "record" and path.is_file() and path.stat().st_size:
            raise ConfigError(f"recording {path}: already exists; continue it (mode='auto') or choose another path")
        recording = cls(path, mode)
        try:
            # The folder is made with the first reply: opening a recording leaves nothing behind.
            there = next(folder for folder in path.absolute().parents if folder.exists())
            if not there.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"{there} is not a folder")
            recording._refresh()
        except (OSError, EOFError, gzip.BadGzipFile) as error:
            raise ConfigError(f"recording {path}: cannot be read ({error})") from error
        return recording

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "mode": self.mode}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Another process reads the file for itself; both may append."""
        self.__init__(state["path"], state["mode"])  # type: ignore[misc]
        self._refresh()

    def __len__(self) -> int:
        return len(self._replies)

    def identity(self, spec: Mapping[str, Any]) -> dict[str, Any] | None:
        """The identity that was recorded for a backbone with this ``spec``; None where there is none."""
        found = self._identities.get(digest(spec))
        return dict(found) if found is not None else None

    async def through(
        self,
        body: Mapping[str, Any],
        repeat: int,
        live: Callable[[], Awaitable[Completion]],
        backbone: Identified,
    ) -> Completion:
        """The recorded reply to ``body``, else a live one, which is appended. Raises ReplayMiss in replay mode."""
        key = (digest(body)[:_KEY_DIGITS], repeat)
        found = self._find(key)
        if found is not None:
            return _completion(found, body)
        if self.mode == "replay":
            raise ReplayMiss(self._explain(key, body))
        self._admit(backbone)
        completion = await live()
        return self._put(key, body, completion)

    def pack(self, target: str | Path) -> Path:
        """Write all that was read, sorted and compressed, to ``target`` (``.jsonl.gz``); equal content, equal bytes."""
        target = Path(target)
        lines = [{"spec": spec, "backbone": self._identities[spec]} for spec in sorted(self._identities)]
        lines += [self._replies[key] for key in sorted(self._replies)]
        text = "".join(map(_line, lines))
        target.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
        return target

    def close(self) -> None:
        """Nothing is held open between calls; here so that every part of a backbone closes alike."""

    def _find(self, key: tuple[str, int]) -> dict[str, Any] | None:
        found = self._replies.get(key)
        if found is None and self.mode != "replay":
            with self._lock:
                self._refresh()  # another process may have recorded it meanwhile
                found = self._replies.get(key)
        return found

    def _admit(self, backbone: Identified) -> None:
        """Note the identity of a backbone before its first live reply goes into the file."""
        spec = digest(backbone.spec)
        if spec in self._admitted:
            return
        identity = backbone.live_identity()
        with self._lock:
            self._admitted.add(spec)
            known = self._identities.get(spec)
            if known is None:
                self._append({"spec": spec, "backbone": identity})
            elif known != identity:
                changed = sorted(name for name in {*known, *identity} if known.get(name) != identity.get(name))
                warnings.warn(
                    f"recording {self.path}: it was recorded with another {', '.join(changed)} than the live model has. "
                    "Old and new replies do not compare; record to a new file.",
                    stacklevel=2,
                )

    def _put(self, key: tuple[str, int], body: Mapping[str, Any], completion: Completion) -> Completion:
        with self._lock:
            if key not in self._replies:
                self._append(_record(key, body, completion))
            first = self._replies[key]
        # Whoever asked the same at the same time gets the reply that is in the file, so that a replay is the same.
        return completion if first["t"] == completion.text else _completion(first, body)

    def _append(self, record: dict[str, Any]) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock"):
                self._refresh()
                if self._known(record):
                    return
                line = (("\n" if self._torn else "") + _line(record)).encode("utf-8")
                with self.path.open("ab", buffering=0) as stream:
                    if stream.write(line) < len(line):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                self._refresh()
        except OSError as error:
            raise BackboneError(
                f"recording {self.path}: the reply could not be written ({error.strerror or error}); "
                "free the disk or choose another path, earlier replies are kept"
            ) from error

    def _known(self, record: Mapping[str, Any]) -> bool:
        if "backbone" in record:
            return record["spec"] in self._identities
        return (record["k"], record["r"]) in self._replies

    def _refresh(self) -> None:
        """Read what was appended since the last look; a torn last line is left for later."""
        if not self.path.is_file():
            return
        if self.path.suffix == ".gz":
            data = gzip.decompress(self.path.read_bytes())
        else:
            if self.path.stat().st_size <= self._position:
                return
            with self.path.open("rb") as stream:
                stream.seek(self._position)
                data = stream.read()
        whole = data.rfind(b"\n") + 1
        self._torn = whole < len(data)
        self._position += whole
        for record in _read(data[:whole]):
            if "backbone" in record:
                self._identities.setdefault(record["spec"], record["backbone"])
            else:
                self._replies.setdefault((record["k"], record["r"]), record)

    def _explain(self, key: tuple[str, int], body: Mapping[str, Any]) -> str:
        head = f"recording {self.path} has no reply to request {key[0][:12]} (repeat {key[1]}) of '{body.get('model')}'"
        repeats = sorted(repeat for known, repeat in self._replies if known == key[0])
        asked = f"Last user message: {_last_user(body)!r}."
        why = f"It was recorded for repeat {', '.join(map(str, repeats))} only." if repeats else self._nearest(body)
        return f"{head}. {why} {asked} Record it (mode='auto') or replay what was recorded; no live call was made."

    def _nearest(self, body: Mapping[str, Any]) -> str:
        if not self._replies:
            return "The recording is empty."
        messages, rest = _parts(body)

        def shared(record: Mapping[str, Any]) -> tuple[int, bool]:
            known = _split(record["m"])
            same = next((i for i, pair in enumerate(zip(messages, known, strict=False)) if pair[0] != pair[1]), None)
            return (min(len(messages), len(known)) if same is None else same, record["p"] == rest)

        nearest = max(self._replies.values(), key=shared)
        same, same_rest = shared(nearest)
        if same == len(messages) == len(_split(nearest["m"])):
            return "A request with the same messages was recorded; model, sampling, tools or choices differ."
        more = "" if same_rest else "; model, sampling, tools or choices differ too"
        return (
            f"The nearest recorded request differs from message {same + 1} of {len(messages)} on{more} "
            f"(its last user message: {nearest.get('v', '')!r})."
        )


@overload
def as_recording(cache: None) -> None: ...
@overload
def as_recording(cache: str | Path | Recording) -> Recording: ...
@overload
def as_recording(cache: str | Path | Recording | None) -> Recording | None: ...
def as_recording(cache: str | Path | Recording | None) -> Recording | None:
    """A recording from its path; None stays none."""
    return Recording.open(cache) if isinstance(cache, (str, Path)) else cache


def _record(key: tuple[str, int], body: Mapping[str, Any], completion: Completion) -> dict[str, Any]:
    messages, rest = _parts(body)
    record: dict[str, Any] = {
        "k": key[0],
        "r": key[1],
        "t": completion.text,
        "u": [completion.prompt_tokens, completion.completion_tokens],
        "s": round(completion.seconds, 3),
        "m": "".join(messages),
        "p": rest,
        "v": _last_user(body),
    }
    optional = {
        "c": list(completion.tool_calls),
        "f": "" if completion.finish_reason == "stop" else completion.finish_reason,
        "n": completion.model,
        "o": completion.provider,
    }
    return record | {name: value for name, value in optional.items() if value}


def _completion(record: Mapping[str, Any], body: Mapping[str, Any]) -> Completion:
    return Completion(
        text=record["t"],
        tool_calls=tool_calls(record.get("c", ())),
        finish_reason=record.get("f", "stop"),
        prompt_tokens=record["u"][0],
        completion_tokens=record["u"][1],
        model=record.get("n", ""),
        provider=record.get("o", ""),
        seconds=record["s"],
        cached=True,
        body=body,
    )


def _parts(body: Mapping[str, Any]) -> tuple[list[str], str]:
    """Short digests of each message, and of all that is no message."""
    rest = {name: value for name, value in body.items() if name != "messages"}
    return [digest(message)[:_PART_DIGITS] for message in body.get("messages", ())], digest(rest)[:_PART_DIGITS]


def _split(digests: str) -> list[str]:
    return [digests[i : i + _PART_DIGITS] for i in range(0, len(digests), _PART_DIGITS)]


def _last_user(body: Mapping[str, Any]) -> str:
    """The end of the last user message: the observation stands there, and it is what differs."""
    texts = (message.get("content") for message in reversed(body.get("messages", ())) if message.get("role") == "user")
    text = " ".join(str(next(texts, "")).split())
    return text if len(text) <= _PREVIEW else "…" + text[-_PREVIEW:]


def _line(record: Mapping[str, Any]) -> str:
    # ASCII escapes keep lone surrogates, which a model may well emit, from breaking the UTF-8 file.
    return scrub(json.dumps(record, separators=(",", ":"))) + "\n"


def _read(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.split(b"\n"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue  # empty, or the rest of a line that a crash tore
        if isinstance(record, dict) and ("backbone" in record or {"k", "r", "t", "u", "s", "m", "p"} <= record.keys()):
            yield record
