"""Somebody else's repository without what it configures: git sees its objects and refs, and our configuration.

A repository can name programs in many places (filters, drivers, helpers, aliases, hooks, remotes, an `include`),
and each version of git adds some. So nothing is blocked by name. `GIT_COMMON_DIR` points git to a folder of ours,
which holds a configuration with the few settings that git needs to read the repository right (`_KEPT`), and
attributes that switch filters and drivers off, those of the user's own configuration included. Refs, HEAD and index
are found through `GIT_DIR`, objects through `GIT_OBJECT_DIRECTORY`: these stay those of the lab.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from harnesslab.errors import StoreError
from harnesslab.plaintext import one_line
from harnesslab.store.ownfiles import refuse_entry
from harnesslab.store.process import execute, explain

MAX_CONFIG_BYTES = 1_000_000
MAX_NAMES = 8
"""Settings that a notice names."""

_KEPT = re.compile(
    r"core\.(repositoryformatversion|filemode|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf|sharedrepository"
    r"|logallrefupdates)|(user|author|committer)\.(name|email)|user\.useconfigonly"
    # Of an extension that it does not know git says so, and stops. These are known, and nothing for us.
    r"|extensions\.(?!(noop|partialclone|worktreeconfig|relativeworktrees|preciousobjects)$)[a-z0-9-]+"
)
"""Settings of a repository that hold for us: the form of its files, and whose commits these are."""

_USUAL = re.compile(
    r"core\.(bare|untrackedcache|compression|commitgraph|multipackindex|checkstat|trustctime|quotepath|abbrev)"
    r"|extensions\.(noop|preciousobjects|relativeworktrees)|remote\..*\.(url|pushurl|fetch|tagopt|prune|mirror)"
    r"|branch\..*\.(remote|merge|rebase|pushremote|description)|(init|gc|pull|push|fetch|color|advice|user|commit|merge|rebase|rerere)\.[a-z]+"
)
"""Settings that we do not use and that nobody needs to be warned of: they name no program and no other file."""

_TOUCHED = (
    "HEAD",
    "index",
    "config",
    "packed-refs",
    "shallow",
    "refs",
    "reftable",
    "logs",
    "objects",
    "info",
    "harnesslab",
)
"""What is read or written inside a git folder, by git for us or by ourselves."""

_ATTRIBUTES = "* -filter !diff !merge -ident\n"


@dataclass(frozen=True)
class Folders:
    """Where a checkout's repository is: `own` has HEAD and index, `common` the rest; the same but for linked worktrees."""

    own: Path
    common: Path


class Isolation:
    """The environment in which git may be run in one checkout. Made at the first use; follows changes of the lab's files."""

    def __init__(self, path: Path):
        self.path = path
        self._folders: Folders | None = None
        self._made: tuple[object, Path] | None = None
        self._settings: list[tuple[str, str]] = []
        self._guard = threading.Lock()

    @property
    def folders(self) -> Folders:
        """The folders of the repository; `StoreError` where it is not this folder's own, or reaches out of itself."""
        if self._folders is None:
            folders = _locate(self.path)
            code, _, err = execute(self.path, ["rev-parse", "--git-dir"], self._variables(folders))
            if code:
                raise _unusable(folders, explain(self.path, ["rev-parse"], err.decode("utf-8", "replace"), code))
            self._folders = folders
        return self._folders

    def check(self) -> None:
        """As :attr:`folders`, but looks again: before anything is written, somebody may have put a link there."""
        self._folders = None
        self.folders  # noqa: B018

    def environment(self) -> dict[str, str]:
        """The variables that point git to the repository and away from its configuration."""
        return self._variables(self.folders)

    def _variables(self, folders: Folders) -> dict[str, str]:
        shallow = folders.common / "shallow"
        return {
            "GIT_DIR": str(folders.own),
            "GIT_COMMON_DIR": str(self._stand_in(folders)),
            "GIT_OBJECT_DIRECTORY": str(folders.common / "objects"),
            "GIT_WORK_TREE": str(self.path),
            **({"GIT_SHALLOW_FILE": str(shallow)} if shallow.exists() else {}),
        }

    def notices(self) -> list[str]:
        """A sentence on what the repository configures that could run a program or lead git elsewhere; [] for a plain one."""
        names = [one_line(name)[:80] for name in self._unused()]
        if not names:
            return []
        listed = ", ".join(names[:MAX_NAMES]) + (
            f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        )
        return [
            f"{self.path} configures git with {listed}. harnesslab ignores this and runs none of it, but git commands that "
            f"you run there yourself may not: read {self.folders.common / 'config'} first."
        ]

    def _unused(self) -> list[str]:
        folders = self.folders
        self._stand_in(folders)
        names = [
            key for key, value in self._settings if not (_KEPT.fullmatch(key) or _USUAL.fullmatch(key)) or "::" in value
        ]
        names += [f"hooks/{hook}" for hook in _hooks(folders.common)]
        for name in ("info/grafts", "info/attributes", "objects/info/alternates", "config.worktree", "refs/replace"):
            place = folders.common / name
            if place.is_file() or (place.is_dir() and any(place.iterdir())):
                names.append(name)
        return list(dict.fromkeys([*names, *self._submodules()]))

    def _submodules(self) -> list[str]:
        """git works in each of them under its own configuration, to see whether it is dirty."""
        code, out, _ = execute(self.path, ["ls-files", "--stage", "-z"], self.environment())
        entries = out.decode("utf-8", "surrogateescape").split("\0") if not code else []
        return [f"submodule {entry.partition(chr(9))[2]}" for entry in entries if entry.startswith("160000 ")]

    def _stand_in(self, folders: Folders) -> Path:
        config, exclude = folders.common / "config", folders.common / "info" / "exclude"
        key = (_stamp(config), _stamp(exclude))
        with self._guard:
            made = self._made
            # The folder is in the system's place for temporary files, where old files may be deleted.
            if made is None or made[0] != key or not all((made[1] / name).is_file() for name in ("config", _INFO)):
                self._settings = _read_settings(config)
                kept = {name: value for name, value in self._settings if _KEPT.fullmatch(name)}
                made = self._made = key, _write_stand_in(kept, _read(exclude))
            return made[1]


_INFO = "info/attributes"


def _locate(path: Path) -> Folders:
    dot_git = path / ".git"
    if not os.path.lexists(dot_git):
        if not path.is_dir():
            raise StoreError(f"There is no folder {path}; create a lab there first.")
        message = f"{path} has no git repository of its own; create a lab there first."
        raise StoreError(message, cause="not_a_lab")
    if dot_git.is_symlink():
        raise _elsewhere(dot_git)
    if dot_git.is_dir():
        if os.path.lexists(dot_git / "commondir"):
            raise _elsewhere(dot_git / "commondir")
        folders = Folders(dot_git, dot_git)
    else:
        folders = _linked(dot_git)
    _refuse_links(folders)
    if not _is_mine(path, dot_git, folders.own):
        # git's own check of who owns the repository, which it leaves out where GIT_DIR is given. It also reads the
        # configuration, so it is only asked where it decides.
        code, _, err = execute(path, ["rev-parse", "--git-dir"])
        if code:
            raise _unusable(folders, explain(path, ["rev-parse"], err.decode("utf-8", "replace"), code))
    return folders


def _is_mine(*places: Path) -> bool:
    if not hasattr(os, "geteuid"):
        return False
    with contextlib.suppress(OSError):
        return all(place.lstat().st_uid == os.geteuid() for place in places)
    return False


def _unusable(folders: Folders, error: StoreError) -> StoreError:
    if error.cause != "not_a_lab":
        return error
    message = (
        f"{folders.own} is damaged: git does not take it for a repository. If only its HEAD is lost, "
        f"`echo 'ref: refs/heads/main' > {folders.own / 'HEAD'}` restores it; else clone or unpack the lab again."
    )
    return StoreError(message, cause="corrupt")


def _linked(dot_git: Path) -> Folders:
    """The folders behind a `.git` file, which must point back here: else writes would go to a stranger's repository."""
    text = _read(dot_git)
    if not text.startswith("gitdir:"):
        message = f"{dot_git.parent} has no git repository of its own; create a lab there first."
        raise StoreError(message, cause="not_a_lab")
    own = (dot_git.parent / text.removeprefix("gitdir:").strip()).resolve()
    if own.parent.name == "worktrees":  # made by `git worktree add`
        common = own.parent.parent
        listed = _read(own / "commondir").strip()
        if (own / listed).resolve() == common and (own / _read(own / "gitdir").strip()).resolve() == dot_git.resolve():
            return Folders(own, common)
    elif not os.path.lexists(own / "commondir"):  # a submodule
        worktree = dict(_read_settings(own / "config")).get("core.worktree", "")
        if worktree and (own / worktree).resolve() == dot_git.parent.resolve():
            return Folders(own, own)
    raise _elsewhere(dot_git)


def _elsewhere(place: Path) -> StoreError:
    message = f"{place} leads to a repository that is not this folder's own, so the lab is not opened; {_CLONE}."
    return StoreError(message, cause="refused")


_CLONE = "copy the lab with `git clone` and open the copy"


def _refuse_links(folders: Folders) -> None:
    """Refuse links and special files: a write would follow a link out of the lab, a read of a pipe would never end."""
    waiting = [
        place for folder in dict.fromkeys((folders.own, folders.common)) for name in _TOUCHED
        if os.path.lexists(place := folder / name)
    ]  # fmt: skip
    while waiting:
        place = waiting.pop()
        try:
            found = place.lstat()
            if not stat.S_ISDIR(found.st_mode):
                if not stat.S_ISREG(found.st_mode):
                    refuse_entry(place, found, _CLONE)
                continue
            # The rest of a repository git replaces file by file: it may share them with a clone.
            in_place = place.name in ("logs", "harnesslab") or "logs" in place.parts[len(folders.common.parts) :]
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif in_place or not entry.is_file(follow_symlinks=False):
                        refuse_entry(Path(entry.path), entry.stat(follow_symlinks=False), _CLONE)
        except FileNotFoundError:
            continue  # a lock file of a git that is at work
        except OSError as error:
            message = f"{place} cannot be read: {error.strerror}; make it readable or copy the lab."
            raise StoreError(message, cause="read_only") from None


def _hooks(folder: Path) -> list[str]:
    with contextlib.suppress(OSError), os.scandir(folder / "hooks") as entries:
        return sorted(entry.name for entry in entries if not entry.name.endswith(".sample"))[:20]
    return []


def _read_settings(config: Path) -> list[tuple[str, str]]:
    """The settings in one file, in git's own reading, without the files that it includes. Keys in git's form."""
    if not config.exists():
        return []
    found = config.lstat()
    if not stat.S_ISREG(found.st_mode):
        refuse_entry(config, found, _CLONE)
    if found.st_size > MAX_CONFIG_BYTES:
        raise StoreError(
            f"{config} is larger than {MAX_CONFIG_BYTES // 1_000_000} MB, so the lab is not opened.", cause="refused"
        )
    arguments = ["config", "--file", str(config), "--no-includes", "--list", "-z"]
    code, out, err = execute(_base(), arguments)
    if code:
        raise explain(config.parent.parent, arguments, err.decode("utf-8", "replace"), code)
    entries = (entry.partition("\n") for entry in out.decode("utf-8", "surrogateescape").split("\0") if entry)
    return [(key, value if given else "true") for key, given, value in entries]


def _write_stand_in(settings: dict[str, str], exclude: str) -> Path:
    lines = ["[core]\n\tbare = false\n"]
    for key, value in settings.items():
        section, _, name = key.partition(".")
        quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'[{section}]\n\t{name} = "{quoted}"\n')
    files = {"config": "".join(lines), _INFO: _ATTRIBUTES, "info/exclude": exclude}
    digest = hashlib.sha256(repr(sorted(files.items())).encode("utf-8", "surrogateescape")).hexdigest()[:20]
    folder = _base() / digest
    try:
        for name in ("info", "refs", "objects"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            scratch = folder / f"{name}.{threading.get_ident()}"
            scratch.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
            scratch.replace(folder / name)
    except OSError as error:
        message = f"The folder {folder} for temporary files cannot be written: {error.strerror}."
        raise StoreError(message) from None
    return folder


_bases: dict[int, Path] = {}
_bases_guard = threading.Lock()


def _base() -> Path:
    """This process's folder for stand-ins. A forked child gets one of its own, for the parent deletes its at the end."""
    with _bases_guard:
        base = _bases.get(os.getpid())
        if base is None or not base.is_dir():
            try:
                base = _bases[os.getpid()] = Path(tempfile.mkdtemp(prefix="harnesslab-git-"))
            except OSError as error:
                raise StoreError(f"No folder for temporary files can be made: {error.strerror}.") from None
        return base


@atexit.register
def _clean_up() -> None:
    base = _bases.get(os.getpid())
    if base is not None:
        shutil.rmtree(base, ignore_errors=True)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> str:
    """The text of a small plain file; empty where there is none."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return ""
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read(MAX_CONFIG_BYTES)
    except OSError:
        return ""
