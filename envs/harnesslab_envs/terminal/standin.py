"""Stands in for installers inside a machine without a network, while a Dockerfile or a published test script runs.

Published scripts begin with ``apt-get install curl``, ``curl https://astral.sh/uv/install.sh | sh`` and
``uvx --with pytest pytest ...``. What they install is often here already. Each stand-in says yes to what is here, and
notes what is not in a file, so that a verdict that lacks something is never taken for one. Standard library only.

    python standin.py TOOL ARGUMENTS...     with HARNESSLAB_STANDINS, the folder of the stand-ins
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOOLS = ("apt", "apt-get", "curl", "wget", "pip", "pip3", "uv", "uvx", "pytest")
MISSING = "missing.txt"
OWN = frozenset(("pytest", "pytest-json-ctrf", "uv", "pip", "setuptools", "wheel"))
"""Python packages that the stand-ins bring."""
OWN_PROGRAMS = frozenset(("curl", "wget", "ca-certificates", "python3-pip", "pip", "uv", "python3-venv", "gnupg"))
"""Debian packages that are only wanted to install others."""
TESTS = "/tests/"
UV_ENV = 'mkdir -p "$HOME/.local/bin" && : > "$HOME/.local/bin/env"\n'
_URL = re.compile(r"^[a-z]+://(?:[^/@]*@)?(\[[^]]*\]|[^/:?#]+)", re.IGNORECASE)
_LOCAL = re.compile(r"^(localhost|machine|127\.[0-9.]+|0\.0\.0\.0|\[::1?\]|[^.]+)$", re.IGNORECASE)
_WITH_VALUE = {
    "pip": {"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--target", "-t", "--prefix", "--root"}
    | {"--timeout", "--retries", "--platform", "--python", "-p", "--trusted-host", "--upgrade-strategy", "-c"},
    "uv": {"--python", "-p", "--index-url", "--index", "--default-index", "--extra-index-url", "--project"}
    | {"--directory", "--cache-dir", "--group", "--extra", "--env-file", "--python-preference"},
    "apt": {"-o", "-t", "--target-release", "-c"},
}


def main(tool: str, words: list[str]) -> int:
    """The exit status of a tool; some become another program."""
    if tool in ("apt", "apt-get"):
        return apt(words)
    if tool in ("curl", "wget"):
        return fetch(tool, words)
    if tool in ("pip", "pip3"):
        return pip(tool, words)
    if tool == "uvx":
        return uvx(words)
    return uv(words) if tool == "uv" else run_pytest(words)


def apt(words: list[str]) -> int:
    """``update`` has nothing to do; ``install`` says what is not here; all else is the real one's."""
    given = arguments(words, "apt")
    if not given or given[0] not in ("update", "install", "upgrade", "clean", "autoclean", "autoremove"):
        return real("apt-get", words)
    absent = [name for name in given[1:] if given[0] == "install" and not debian(name)]
    return lacking("Debian package", absent, 100)


def debian(name: str) -> bool:
    """Whether a Debian package is here, or a program of its name."""
    plain = re.split(r"[=/:]", name, maxsplit=1)[0]
    if plain in OWN_PROGRAMS or shutil.which(plain, path=real_path()):
        return True
    asked = ["dpkg-query", "-W", "-f", "${db:Status-Status}", plain]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.startswith("installed")
    except OSError:
        return False


def fetch(tool: str, words: list[str]) -> int:
    """The installer of uv; all else is the real program's, which reaches this machine's own servers."""
    if any("astral.sh/uv" in word or "astral-sh/uv" in word for word in words):
        for option in ("-o", "--output", "-O", "--output-document"):
            if option in words[:-1] and (target := words[words.index(option) + 1]) != "-" and "://" not in target:
                Path(target).write_text(UV_ENV, "utf-8")
                return 0
        sys.stdout.write(UV_ENV)
        return 0
    hosts = [match.group(1) for word in words if (match := _URL.match(word))]
    return lacking("address", [host for host in hosts if not _LOCAL.match(host)], 6) or real(tool, words)


def pip(tool: str, words: list[str]) -> int:
    """``install`` says what is not here; all else is the real one's."""
    given = arguments(words, "pip")
    if not given or given[0] not in ("install", "download"):
        return real(tool, words)
    return python_packages(given[1:], files(words))


def files(words: list[str]) -> list[str]:
    """The requirements files among the words of pip."""
    named = [value for word, value in itertools.pairwise(words) if word in ("-r", "--requirement", "--requirements")]
    return named + [word.split("=", 1)[1] for word in words if word.startswith(("--requirement=", "-r="))]


def python_packages(names: list[str], lists: list[str]) -> int:
    """Say which Python packages are not here."""
    for place in lists:
        try:
            lines = Path(place).read_text("utf-8-sig", "replace").splitlines()
        except OSError as error:
            print(f"pip: {place}: {error.strerror}", file=sys.stderr)
            return 1
        names = [name for name in names if name != place] + [
            line.split(" #")[0].strip() for line in lines if line.strip() and not line.lstrip().startswith(("#", "-"))
        ]
    return lacking("Python package", [name for name in names if not python_package(name)], 1)


def python_package(wanted: str) -> bool:
    """Whether the machine's Python has a package, in the version that ``==`` names."""
    match = re.match(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?\s*(?:(@)|==\s*([^\s;,]+)|[<>=!~].*)?", wanted)
    if match is None or match.group(2):
        return False
    name, version = re.sub(r"[-_.]+", "-", match.group(1)).lower(), match.group(3)
    if name in OWN:
        return True
    asked = f"import importlib.metadata as m; print(m.version({name!r}))"
    try:
        done = subprocess.run(["python3", "-c", asked], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.returncode == 0 and version in (None, done.stdout.strip())


def uvx(words: list[str]) -> int:
    """``uvx [--with PACKAGE]... TOOL ARGUMENTS``."""
    wanted, rest, lists = wanted_by_uv(words)
    if not rest:
        return 0
    tool = rest[0].split("@")[0].split("==")[0]
    if (status := python_packages([*wanted, *([] if "--from" in words else [tool])], lists)) != 0:
        return status
    return become(tool, rest[1:])


def uv(words: list[str]) -> int:
    """The subcommands of uv that test scripts use."""
    _, given, _ = wanted_by_uv(words)
    if not given:
        print("uv 0.0.0 (a stand-in without network)")
        return 0
    what, rest = given[0], words[words.index(given[0]) + 1 :]
    if what == "pip":
        return pip("pip", rest)
    if what in ("tool", "x") and (what == "x" or rest[:1] == ["run"]):
        return uvx(rest[1:] if what == "tool" else rest)
    if what == "add":
        wanted, names, lists = wanted_by_uv(rest)
        return python_packages([*wanted, *names], lists)
    if what == "run":
        wanted, command, lists = wanted_by_uv(rest)
        if (status := python_packages(wanted, lists)) != 0 or not command:
            return status
        return become("python3", command) if command[0].endswith(".py") else become(command[0], command[1:])
    if what == "venv":
        place = next((word for word in arguments(rest, "uv") if word), ".venv")
        (Path(place) / "bin").mkdir(parents=True, exist_ok=True)
        (Path(place) / "bin" / "activate").write_text(f"VIRTUAL_ENV={place}\n", "utf-8")
        return 0
    if what in ("init", "python", "cache", "self", "sync", "lock"):
        return lacking("uv command", [what], 1) if what in ("sync", "lock") else 0
    return lacking("uv command", [what], 2)


def wanted_by_uv(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """(packages of ``--with`` and ``--from``, the words from the first that is no option, requirements files)."""
    wanted: list[str] = []
    lists: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option, joined, value = rest.pop(0).partition("=")
        if option == "--":
            break
        takes = option in ("--with", "-w", "--from", "--with-requirements", "--with-editable", "-m", "--module")
        if (takes or option in _WITH_VALUE["uv"]) and not joined:
            value = rest.pop(0) if rest else ""
        if option in ("--with", "-w", "--from", "--with-editable"):
            wanted += [part.strip() for part in value.split(",") if part.strip()]
        elif option == "--with-requirements":
            lists.append(value)
        elif option in ("-m", "--module"):
            return wanted, ["python3", "-m", value, *rest], lists
    return wanted, rest, lists


def run_pytest(words: list[str]) -> int:
    """pytest as the stand-ins bring it, with the plugin for ``--ctrf`` where that is asked for.

    The task's tests read no settings and fixtures from outside their folder, where an agent could leave some.
    """
    launcher = os.environ.get("HARNESSLAB_PYTEST", "").split("\x1f")
    plugin = ["-p", "ctrf.main"] if any(word.startswith("--ctrf") for word in words) else []
    alone = []
    if any(word.startswith(TESTS) for word in words) and not any(
        word.startswith(("-c", "--rootdir")) for word in words
    ):
        names = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
        own = next((TESTS + name for name in names if Path(TESTS, name).is_file()), "/dev/null")
        alone = ["--rootdir", TESTS, "--confcutdir", TESTS, "-c", own]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return execute([*launcher, "-p", "no:cacheprovider", *plugin, *alone, *words])


def become(tool: str, words: list[str]) -> int:
    """Run another program, a stand-in first."""
    if tool in ("pytest", "py.test"):
        return run_pytest(words)
    if tool in ("python", "python3") and words[:2] == ["-m", "pytest"]:
        return run_pytest(words[2:])
    return execute(["python3" if tool == "python" and not shutil.which("python") else tool, *words])


def real(tool: str, words: list[str]) -> int:
    """Run the program of that name that is not a stand-in."""
    found = shutil.which(tool, path=real_path())
    if found is None:
        return lacking("program", [tool], 127)
    os.environ["PATH"] = real_path()
    return execute([found, *words])


def real_path() -> str:
    """PATH without the stand-ins."""
    own = os.environ.get("HARNESSLAB_STANDINS", "") + "/bin"
    return os.pathsep.join(part for part in os.environ.get("PATH", "").split(os.pathsep) if part != own)


def execute(words: list[str]) -> int:
    """Become a program."""
    sys.stdout.flush()
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)
        return 127


def arguments(words: list[str], kind: str) -> list[str]:
    """The words that are neither options nor their values."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE[kind] or (kind == "pip" and word in ("-r", "--requirement", "--requirements")):
            next(rest, None)
        elif not word.startswith("-"):
            found.append(word)
    return found


def lacking(kind: str, names: list[str], status: int) -> int:
    """0 where nothing is lacking; else note it, and fail."""
    if not names:
        return 0
    note = f"{kind}{'s' if len(names) > 1 else ''} {', '.join(names)}"
    print(f"{note}: not on this machine, and there is no network to get it", file=sys.stderr)
    try:
        with Path(os.environ["HARNESSLAB_STANDINS"], MISSING).open("a", encoding="utf-8") as file:
            file.write(note + "\n")
    except (OSError, KeyError):
        pass  # a user that may not write there: the failure itself is what is left
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
