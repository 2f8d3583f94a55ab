"""The files that COPY and ADD take: which of them, under which names, and as an archive."""

from __future__ import annotations

import io
import posixpath
import re
import shlex
import tarfile
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from e2b_dockerfile_utils import PatternMatcher

from harnesslab_envs.sandbox.rules import PUT_TIME
from harnesslab_envs.terminal.spec import Files


def ignored(files: Files, dockerfile: str) -> Files:
    """The context without what ``.dockerignore`` names (``Dockerfile.dockerignore`` comes first)."""
    own = f"{posixpath.basename(dockerfile)}.dockerignore"
    name = own if own in files.content else ".dockerignore"
    if name not in files.content:
        return files
    lines = files.content[name].decode("utf-8-sig", "replace").splitlines()
    patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return without(files, patterns)


def without(files: Files, patterns: list[str]) -> Files:
    """The files that no pattern of ``.dockerignore``'s sort names."""
    left_out = matcher(patterns)
    return Files(
        {name: data for name, data in files.content.items() if not left_out(name)},
        files.executable,
        {name: target for name, target in files.links.items() if not left_out(name)},
        frozenset(name for name in files.folders if not left_out(name)),
    )


def matcher(patterns: list[str]) -> Callable[[str], bool]:
    """Whether a relative path is named by a pattern of ``.dockerignore``'s sort."""
    cleaned = []
    for pattern in patterns:
        negated = "!" if pattern.startswith("!") else ""
        path = posixpath.normpath(pattern[len(negated) :].strip()).lstrip("/")
        if path not in (".", ""):
            cleaned.append(negated + path)
    found = PatternMatcher(cleaned)
    return lambda name: bool(cleaned and found.matches(name))


def packed(files: Files) -> bytes:
    """A tar archive of files by their absolute paths."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in sorted(files.folders):
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, PUT_TIME
            if entry.name:
                archive.addfile(entry)
        for name, target in files.links.items():
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.type, entry.linkname, entry.mtime = tarfile.SYMTYPE, target, PUT_TIME
            archive.addfile(entry)
        for name, data in files.content.items():
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.size, entry.mtime = len(data), PUT_TIME
            entry.mode = 0o755 if name in files.executable else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def unpacked(data: bytes) -> Files:
    content, links, executable, folders = {}, {}, set(), set()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for entry in archive:
            name = posixpath.normpath(entry.name)
            if entry.isdir():
                folders.add(name)
            elif entry.issym():
                links[name] = entry.linkname
            elif (file := archive.extractfile(entry)) is not None:
                content[name] = file.read()
                if entry.mode & 0o100:
                    executable.add(name)
    return Files(content, frozenset(executable), links, frozenset(folders))


def moved(files: Files, moves: Mapping[str, str]) -> Files:
    """The files with new names; the others are left out."""
    return Files(
        {moves[name]: data for name, data in files.content.items() if name in moves},
        frozenset(moves[name] for name in files.executable if name in moves),
        {moves[name]: target for name, target in files.links.items() if name in moves},
        frozenset(moves[name] for name in files.folders if name in moves),
    )


def is_archive(data: bytes) -> bool:
    """Whether ADD unpacks it: a tar archive, also a compressed one."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            return archive.next() is not None
    except (tarfile.TarError, EOFError, OSError):
        return False


def owner_of(owner: str) -> str:
    """``--chown=1000`` means the group of the same number, too."""
    user, colon, group = owner.partition(":")
    return owner if colon and group else f"{user}:{user}" if user.isdigit() else f"{user}:"


def _regex(pattern: str) -> str:
    """Go's filepath.Match as a regular expression: a wildcard does not reach over a slash."""
    out, rest = "", pattern
    while rest:
        char, rest = rest[0], rest[1:]
        if char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "[" and "]" in rest:
            inside, _, rest = rest.partition("]")
            out += "[" + ("^" if inside.startswith("^") else "") + inside.lstrip("^").replace("\\", "\\\\") + "]"
        elif char == "\\" and rest:
            out, rest = out + re.escape(rest[0]), rest[1:]
        else:
            out += re.escape(char)
    return out


def glob(pattern: str) -> str:
    """A path for the shell, in which only wildcards mean something."""
    return (
        "".join(part if part in "*?[]" else shlex.quote(part) for part in re.split(r"([*?\[\]])", pattern) if part)
        or "."
    )


def matching(source: str, files: Files) -> list[str]:
    """The files and folders that a source names, without the first slash; the whole is the empty name."""
    plain = posixpath.normpath("/" + source).lstrip("/")
    names = {*files.content, *files.links, *files.folders}
    names |= {str(parent) for name in list(names) for parent in PurePosixPath(name).parents if str(parent) != "."}
    if plain == "" or plain in names:
        return [plain]
    pattern = re.compile(_regex(plain))
    return sorted(name for name in names if pattern.fullmatch(name)) if is_pattern(source) else []


def is_pattern(source: str) -> bool:
    """Whether a source has wildcards, so that it may name several files, or none."""
    return re.search(r"[*?\[]", source) is not None
