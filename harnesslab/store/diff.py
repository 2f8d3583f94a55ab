"""What differs between two commits, bounded in size, as plain data for a side-by-side view."""

from __future__ import annotations

from dataclasses import dataclass

from harnesslab.store.git import DIFF_TREE, Git

MAX_FILES = 200
MAX_FILE_BYTES = 200_000
MAX_TEXT_BYTES = 1_000_000


@dataclass(frozen=True)
class FileDiff:
    """One changed file. `before`/`after`: its text, None where it does not exist.

    `note` says why a text is not shown ('binary', 'too large'); then both are None.
    """

    path: str
    status: str
    before: str | None
    after: str | None
    note: str = ""


@dataclass(frozen=True)
class Diff:
    """Two commits compared: unified `text`, the `files`, and whether something was cut to stay small."""

    old: str
    new: str
    text: str
    files: tuple[FileDiff, ...]
    truncated: bool


def compare(git: Git, old: str, new: str) -> Diff:
    """Compare two commits or trees, given by id."""
    raw = git.text(*DIFF_TREE, "-z", "--end-of-options", old, new).split("\0")
    entries = list(zip(raw[0::2], raw[1::2], strict=False))
    shown = entries[:MAX_FILES]
    blobs = [blob for head, _ in shown for blob in head.split(" ")[2:4] if blob.strip("0")]
    sizes = _sizes(git, blobs)
    contents = git.objects(blob for blob in blobs if sizes.get(blob, 0) <= MAX_FILE_BYTES)
    files = tuple(_file_diff(head, path, sizes, contents) for head, path in shown)
    text = git.run(
        *DIFF_TREE,
        "-p",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--end-of-options",
        old,
        new,
    )
    cut = len(text) > MAX_TEXT_BYTES
    return Diff(old, new, text[:MAX_TEXT_BYTES].decode("utf-8", "replace"), files, cut or len(entries) > MAX_FILES)


def _sizes(git: Git, blobs: list[str]) -> dict[str, int]:
    if not blobs:
        return {}
    out = git.text(
        "cat-file", "--batch-check=%(objectname) %(objectsize)", input="".join(f"{b}\n" for b in blobs).encode()
    )
    pairs = (line.split(" ") for line in out.split("\n"))
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _file_diff(head: str, path: str, sizes: dict[str, int], contents: dict[str, bytes]) -> FileDiff:
    before, after, status = head.split(" ")[2:5]
    sides = [blob for blob in (before, after) if blob.strip("0")]
    if any(sizes.get(blob, 0) > MAX_FILE_BYTES for blob in sides):
        return FileDiff(path, status, None, None, f"too large ({max(sizes[b] for b in sides)} bytes)")
    if any(b"\0" in contents.get(blob, b"") for blob in sides):
        return FileDiff(path, status, None, None, "binary")
    texts = [contents[blob].decode("utf-8", "replace") if blob in contents else None for blob in (before, after)]
    return FileDiff(path, status, texts[0], texts[1])
