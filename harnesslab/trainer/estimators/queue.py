"""Proposals from a folder: a colleague, a CI job or any other program puts a patch or an intervention there."""

from __future__ import annotations

import email
import hashlib
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from pathlib import Path
from typing import TYPE_CHECKING

from harnesslab.errors import ConfigError, HarnessFileError
from harnesslab.harness.base import LAYERS
from harnesslab.harness.files import MANIFEST, MAX_BYTES, check_changes, decode, has_meaning
from harnesslab.harness.kind import find_kind
from harnesslab.harness.load import load_harness
from harnesslab.harness.yamlfile import read_yaml
from harnesslab.plaintext import clip
from harnesslab.store import PatchRefused, apply_patch
from harnesslab.trainer.estimators.base import PastVerdict
from harnesslab.trainer.estimators.inbox import DONE, REFUSED, Inbox, Item
from harnesslab.trainer.estimators.manual import describe
from harnesslab.trainer.leak import LeakScan
from harnesslab.trainer.proposal import Proposal, Proposals

if TYPE_CHECKING:
    from harnesslab.harness import Harness
    from harnesslab.trainer.failures import Failures

PATCHES = (".patch", ".diff")
SAME = "It changes nothing: the harness has it already"
MAX_PATCH = 1_000_000
"""Bytes of a file in the queue; a longer one is refused unread."""


class QueueEstimator:
    """Proposes what others put into a folder: patches (``git format-patch``, ``git diff``, ``diff -u``) and interventions.

    An intervention is a YAML file; a Python file goes into a folder named after its layer, ``action/fix.py``. Each file is one proposal, and is checked
    like any other: it changes files of a harness only, the harness loads with it, and with ``scan`` it carries no text of a single
    task. What fails is moved to ``refused/``, and what has its verdict to ``done/``, each with a sentence in a text file beside it. Until then
    it is offered again, also after a kill; another process that uses the same folder does not get it.

    Write a file under a hidden name, or with the ending ``.tmp``, and rename it when it is complete.
    """

    def __init__(self, folder: str | os.PathLike[str] = "queue", *, scan: bool = True):
        if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
            raise ConfigError(f"QueueEstimator needs the path of a folder, not {folder!r:.60}")
        self.folder = Path(folder).expanduser().absolute()
        self.scan = scan

    def propose(self, failures: Failures, harness: Harness, history: Sequence[PastVerdict] = ()) -> Proposals:
        """What is in the folder and has no verdict yet, oldest first. Raises EstimatorFault where the folder cannot be used."""
        inbox = Inbox(self.folder)
        desk = _Desk(harness, failures.run.commit, history, LeakScan(failures.run) if self.scan else None)
        found: dict[str, Proposal] = {}
        refused: list[tuple[str, str]] = []
        with inbox.open():
            desk.notes = inbox.notes()
            for item in inbox.take():
                proposal, where, sentence = desk.look(item)
                if proposal is not None:
                    found.setdefault(proposal.content, proposal)
                    continue
                inbox.finish(item, where, sentence)
                if where == REFUSED:
                    refused.append((item.name, sentence))
            inbox.note(desk.notes)
            refused += [
                (f"{name}/", f"not a layer, so nothing in it is read; the layers are {', '.join(LAYERS)}")
                for name in inbox.strangers()
            ]
        return Proposals(list(found.values()), refused, ranked_by="age")


@dataclass(slots=True)
class _Desk:
    """Looks at one file after another. ``notes``: by the hash of a file's bytes, what it was offered as: pairs of content and baseline."""

    harness: Harness
    baseline: str
    history: Sequence[PastVerdict]
    scan: LeakScan | None
    notes: dict[str, list[list[str]]] = field(default_factory=dict)

    def look(self, item: Item) -> tuple[Proposal | None, str, str]:
        """The proposal to offer, or None, the folder to move the file to, and the sentence beside it."""
        key, before, promoted = "", list[list[str]](), False
        try:
            key, data = _read(item.path)
            before = self.notes.get(key, [])
            sentence = self._verdict(before)
            if not sentence:
                proposal = _proposal(item, data, self.harness)
                now = [proposal.content, self.baseline]
                # The same change on the same baseline may have come in another file.
                sentence = self._verdict([now])
                if not sentence:
                    if leaks := self.scan.find(proposal.changes, self.harness.files) if self.scan else []:
                        raise _Refused(f"{leaks[0]}; say it in words that hold for every task")
                    self.notes[key] = [*before, *([now] if now not in before else [])]
                    return proposal, "", ""
        except (HarnessFileError, PatchRefused, _Refused) as reason:
            promoted = bool(before) and (str(reason) == SAME or getattr(reason, "applied", False))
            if not promoted:
                self.notes.pop(key, None)
                text = f"The patch {reason}" if isinstance(reason, PatchRefused) else str(reason)
                return None, REFUSED, f"{text.rstrip('.')}."
        self.notes.pop(key, None)
        return None, DONE, "It is part of the harness." if promoted else sentence

    def _verdict(self, offered: Sequence[Sequence[str]]) -> str:
        """The latest verdict on what was offered, as a sentence; empty where there is none."""
        pairs = [list(pair) for pair in offered]
        for past in reversed(self.history):
            if [past.get("content"), past.get("baseline")] in pairs:
                why = clip(past.get("reason", ""), 300)
                return f"{past.get('status', 'judged').capitalize()}{f': {why}' if why else ''}."
        return ""


class _Refused(Exception):
    """A file that cannot be a proposal; says why."""


def _read(path: Path) -> tuple[str, bytes]:
    """The hash of a file's bytes, and the bytes. Raises _Refused for what is not a plain file of a usual size."""
    info = path.lstat()
    if not stat.S_ISREG(info.st_mode):
        raise _Refused("It is a link or a special file; put in a copy of the file itself")
    limit = MAX_PATCH if path.suffix in PATCHES else MAX_BYTES
    if info.st_size > limit:
        raise _Refused(f"It has {info.st_size:,} bytes; at most {limit:,} are read")
    data = path.read_bytes()
    return hashlib.sha256(data).hexdigest(), data


def _proposal(item: Item, data: bytes, harness: Harness) -> Proposal:
    """The proposal in a file, checked. Raises HarnessFileError, PatchRefused and _Refused."""
    if item.path.suffix in PATCHES:
        files = apply_patch(harness.files, data, has_meaning)
        changed = sorted({*files, *harness.files})
        changed = [path for path in changed if files.get(path) != harness.files.get(path)]
        # Before anything is read as text: a path outside of the harness is the better sentence.
        check_changes(changed)
        changes = {path: decode(path, files[path]) if path in files else None for path in changed}
        about = _subject(data)
    else:
        path = _place(item, data)
        check_changes([path])
        changes, about = {path: decode(path, data)}, ""
    if not changes or all(harness.files.get(path) == _bytes(text) for path, text in changes.items()):
        raise _Refused(SAME)
    proposal = describe(changes, about, estimator="queue")
    loaded = load_harness(proposal.apply(harness.files), unconfined=harness.unconfined)
    for intervention in loaded.interventions:
        if changes.get(f"{intervention.name}.py") is not None:
            intervention.check()
    return proposal


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _place(item: Item, data: bytes) -> str:
    """The path in the lab of an intervention's file; at the top of the queue, its kind says which layer it belongs to."""
    if "/" in item.name or item.name == MANIFEST:
        return item.name
    if item.path.suffix != ".yaml":
        if item.path.suffix == ".py":
            raise _Refused(
                f"A Python intervention goes into the folder of its layer: {', '.join(f'{x}/' for x in LAYERS)}"
            )
        raise _Refused(f"Not a proposal: a file here ends in {', '.join(PATCHES)} or .yaml, or is {MANIFEST}")
    content, _ = read_yaml(item.name, decode(item.name, data))
    kind = find_kind(str(content.get("kind"))) if isinstance(content, Mapping) else None
    # Without a known kind, the sentence that loading gives is the right one; it needs some layer for it.
    place = f"{kind.layers[0] if kind else LAYERS[0]}/{item.name}"
    return place if has_meaning(place) else item.name


def _subject(patch: bytes) -> str:
    """What the mail of a ``git format-patch`` file says that it does, and who wrote it; empty for a bare diff."""
    if not re.match(rb"From [0-9a-f]{40} |(From|Subject|Date): ", patch):
        return ""
    mail = email.message_from_bytes(patch)
    subject = re.sub(r"^(\s*\[[^\]]*\])+\s*", "", _header(mail, "Subject"))
    author = re.sub(r"\s*<[^>]*>", "", _header(mail, "From")).strip(" \"'")
    return clip(f"{subject} (by {author})" if subject and author else subject, 300)


def _header(mail: Message, name: str) -> str:
    raw = str(mail.get(name, ""))
    try:
        return str(make_header(decode_header(raw)))
    except (LookupError, ValueError, HeaderParseError):  # an encoding that nobody knows
        return raw
