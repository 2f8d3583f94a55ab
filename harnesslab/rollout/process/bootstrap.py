"""The first file that an environment's process runs: ``python bootstrap.py SOCKET LIFE MEMORY_MB``.

It makes harnesslab importable without putting harnesslab's whole site-packages on the path, which would let the
packages of the two Pythons clash. It is run as a script, so it imports nothing of ours before that is done.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import signal
import sys
import threading
from pathlib import Path


def add_package(name: str, folder: Path) -> None:
    """Make ``folder`` importable as the package ``name``, and only that."""
    start = folder / "__init__.py"
    if start.is_file():
        spec = importlib.util.spec_from_file_location(name, start, submodule_search_locations=[str(folder)])
    else:
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)


def limit_memory(megabytes: int) -> None:
    """Bound what this process, and each of its children, may write to of its own (0: no bound).

    RLIMIT_DATA, not RLIMIT_AS: a Java machine or a BLAS reserves gigabytes of addresses that it never uses.
    """
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if megabytes:
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))


def die_with_parent(life: int) -> threading.Thread:
    """End the whole process group when the other end of the pipe ``life`` closes: the parent is gone.

    The folder that the parent made for us, in which we start, then goes as well.
    """
    scratch = Path.cwd()

    def wait() -> None:
        while os.read(life, 1):
            pass
        shutil.rmtree(scratch, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)

    thread = threading.Thread(target=wait, name="harnesslab-life", daemon=True)
    thread.start()
    return thread


def main() -> None:
    """Set the process up and serve until the socket closes."""
    socket_fd, life_fd, megabytes = (int(word) for word in sys.argv[1:4])
    for fd in (socket_fd, life_fd):
        # Programs that the environment starts must not hold our pipes open.
        os.set_inheritable(fd, False)
    limit_memory(megabytes)
    life = die_with_parent(life_fd)
    add_package("harnesslab", Path(__file__).resolve().parents[2])
    from harnesslab.rollout.process.serve import serve

    serve(socket_fd, add_package)
    # The socket is closed, so the parent is going. What we started must go, too, and our folder.
    life.join()


if __name__ == "__main__":
    main()
