"""Reading and writing commits by plumbing, without a working tree and without the user's index."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnesslab.errors import StoreError
from harnesslab.plainjson import loads
from harnesslab.plaintext import one_line, visible
from harnesslab.redaction import scrub
from harnesslab.store.git import Git
from harnesslab.store.refs import check_path, clash, stays_inside

META_TRAILER = "Harnesslab-Meta: "
OBJECT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
MAX_META_BYTES = 262_144
MAX_MESSAGE_CHARS = 20_000


@dataclass(frozen=True)
class Commit:
    """One commit, as read from the repository; `created` in seconds since 1970."""

    id: str
    tree: str
    parents: tuple[str, ...]
    created: float
    author: str
    message: str
    meta: Mapping[str, Any]

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.split("\n", 1)[0]

    @property
    def base(self) -> str:
        """The commit that it is a change of: its parent, or where the meta data say so one further back; "" for a first commit.

        Nothing in a lab is trusted: whoever moves a branch by it checks that it is in the history.
        """
        noted = self.meta.get("base")
        if isinstance(noted, str) and OBJECT.fullmatch(noted):
            return noted
        return self.parents[0] if self.parents else ""


def parse_commit(commit_id: str, data: bytes) -> Commit:
    """Read a raw commit object. Broken UTF-8 and control characters are replaced, never an error."""
    head, _, body = data.partition(b"\n\n")
    fields: dict[str, list[str]] = {}
    for line in head.decode("utf-8", "replace").split("\n"):
        key, _, value = line.partition(" ")
        fields.setdefault(key, []).append(value)
    text = body.decode("utf-8", "replace").rstrip("\n")
    message, meta = _split_meta(text)
    stamp = re.search(r"> (-?\d+) [+-]\d+$", fields.get("committer", [""])[0])
    return Commit(
        id=commit_id,
        tree=fields.get("tree", [""])[0],
        parents=tuple(fields.get("parent", ())),
        created=float(stamp.group(1)) if stamp else 0.0,
        author=one_line(re.sub(r" <.*", "", fields.get("author", [""])[0])),
        message=visible(message),
        meta=meta,
    )


def _split_meta(text: str) -> tuple[str, dict[str, Any]]:
    # Only the last line counts, so a message cannot smuggle in another candidate's meta data.
    start = text.rfind("\n") + 1
    if not text.startswith(META_TRAILER, start):
        return text, {}
    try:
        meta = loads(text[start + len(META_TRAILER) :])
    except ValueError:
        return text, {}
    return text[:start].rstrip("\n"), meta if isinstance(meta, dict) else {}


def compact_json(value: object, what: str) -> str:
    """One line of ASCII JSON without known secrets; NaN, infinities and foreign objects are a `StoreError`."""
    try:
        return scrub(json.dumps(value, separators=(",", ":"), allow_nan=False, sort_keys=True))
    except (TypeError, ValueError) as error:
        raise StoreError(f"The {what} cannot be written as JSON: {error}.", cause="proposal") from None


def write_tree(git: Git, base: str | None, changes: Mapping[str, str | bytes | None]) -> str:
    """The id of the tree of `base` with `changes` applied: path to new content, None to delete."""
    folder = Path(tempfile.mkdtemp(prefix="harnesslab-"))
    index = folder / "index"
    env = {"GIT_INDEX_FILE": str(index)}
    try:
        if base is not None:
            git.run("read-tree", "--end-of-options", base, env=env, write=True)
        for path, content in changes.items():
            if content is not None or not stays_inside(path):  # an odd name may at least be deleted
                check_path(path)
        # Deletions first: a file may become a folder and the other way round.
        zero = "0" * len(base or "0" * 40)
        lines = [f"0 {zero}\t{path}\0" for path, content in changes.items() if content is None]
        for path, content in changes.items():
            if content is not None:
                lines.append(f"100644 {git.write_blob(_content(path, content))}\t{path}\0")
        git.run("update-index", "-z", "--index-info", input="".join(lines).encode(), env=env, write=True)
        return git.text("write-tree", env=env, write=True)
    except OSError as error:
        raise StoreError(f"A temporary index for {git.path} could not be written: {error.strerror}.") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def refuse_clash(git: Git, base: str, tree: str, changes: Mapping[str, Any]) -> None:
    """Raise `StoreError` where `tree`, made of `base` by `changes`, has names that stand in each other's way."""
    before, after = _names(git, base), _names(git, tree)
    lost = sorted(
        (before - after - changes.keys()) | {path for path in changes.keys() - after if changes[path] is not None}
    )
    if lost:
        raise StoreError(f"{lost[0]!r} would be both a file and a folder; rename one of them.", cause="proposal")
    found = clash(sorted(after), sorted(after - before))
    if found is not None:
        message = f"{found[0]!r} and {found[1]!r} are the same name on systems that ignore case or accents; rename one of them."
        raise StoreError(message, cause="proposal")


def _names(git: Git, tree: str) -> set[str]:
    listing = git.run("ls-tree", "-r", "-z", "--name-only", "--end-of-options", tree)
    return {name for name in listing.decode("utf-8", "surrogateescape").split("\0") if name}


def _content(path: str, content: str | bytes) -> bytes:
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    if isinstance(text, str) and scrub(text) != text:
        # A commit is for ever, and labs are shared.
        message = f"{path!r} has a secret in it, such as the API key that is in use; take it out."
        raise StoreError(message, cause="proposal")
    if isinstance(content, bytes):
        return content
    if not isinstance(content, str):
        kind = type(content).__name__
        raise StoreError(f"The content of {path!r} is of type {kind}; give text or bytes.", cause="proposal")
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as error:
        message = (
            f"The text of {path!r} has an unpaired surrogate at {error.start}, which UTF-8 cannot hold; remove it."
        )
        raise StoreError(message, cause="proposal") from None


def write_commit(
    git: Git, tree: str, parents: tuple[str, ...], message: str, meta: Mapping[str, Any] | None = None
) -> str:
    """Store a commit (no ref moves) and return its id; `meta` goes into a trailer as one line of JSON."""
    text = scrub(message.replace("\0", "").strip())[:MAX_MESSAGE_CHARS] or "Unnamed change"
    if meta is not None:
        line = compact_json(dict(meta), "candidate's meta data")
        if len(line) > MAX_META_BYTES:
            raise StoreError(
                f"The candidate's meta data is {len(line)} bytes long; at most {MAX_META_BYTES} can be stored.",
                cause="proposal",
            )
        text = f"{text}\n\n{META_TRAILER}{line}"
    arguments = [option for parent in parents for option in ("-p", parent)]
    return git.text("commit-tree", tree, *arguments, input=text.encode("utf-8", "replace") + b"\n", write=True)


def read_commits(git: Git, ids: list[str]) -> list[Commit]:
    """Many commits by one process; ids that are not there, or of other objects, are left out."""
    commits = (parse_commit(commit_id, data) for commit_id, data in git.objects(ids).items())
    return [commit for commit in commits if commit.tree]


def read_files(git: Git, commit: str, max_bytes: int) -> dict[str, bytes]:
    """All files of a commit, path to content; `StoreError` beyond `max_bytes` in all. Links, submodules and `.harnesslab` are left out.

    A name that leads out of the folder it would be written to is a `StoreError`, too.
    """
    wanted: dict[str, str] = {}
    total = 0
    for entry in git.run("ls-tree", "-r", "-l", "-z", "--end-of-options", commit).split(b"\0"):
        if not entry:
            continue
        head, _, name = entry.partition(b"\t")
        mode, kind, blob, size = head.split()
        if kind != b"blob" or mode == b"120000":
            continue
        path = name.decode("utf-8", "replace")
        if path.split("/")[0].lower() == ".harnesslab":
            continue  # committed by whoever made the lab; ours is on disk, and neither is a part of a harness
        if path in wanted or not stays_inside(path):
            raise StoreError(
                f"Commit {commit[:10]} has a file named {path[:200]!r}, which cannot be part of a harness.",
                cause="refused",
            )
        if not size.isdigit():
            raise _absent(git, commit, path)
        total += int(size)
        wanted[path] = blob.decode()
    if total > max_bytes:
        raise StoreError(f"The files of commit {commit[:10]} are {total} bytes; a harness has at most {max_bytes}.")
    contents = git.objects(wanted.values())
    absent = next((path for path, blob in wanted.items() if blob not in contents), None)
    if absent is not None:
        raise _absent(git, commit, absent)
    return {path: contents[blob] for path, blob in wanted.items()}


def _absent(git: Git, commit: str, path: str) -> StoreError:
    return StoreError(
        f"The repository {git.path} lacks the content of {path[:200]!r} in commit {commit[:10]}: it is a partial clone, or "
        "damaged. harnesslab fetches nothing; make a full clone.",
        cause="corrupt",
    )
