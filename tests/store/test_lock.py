"""The lab's lock: between threads, between processes, and after its owner died."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harnesslab.errors import LabLocked, StoreError
from harnesslab.store.lock import LabLock

HOLDER = """
import sys, pathlib
from harnesslab.store.lock import LabLock
with LabLock(pathlib.Path(sys.argv[1])).hold("train for long"):
    print("held", flush=True)
    sys.stdin.readline()
"""


def hold_elsewhere(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_reentrant_also_through_a_second_handle(tmp_path: Path) -> None:
    one, two = LabLock(tmp_path), LabLock(tmp_path)
    with one.hold("a"), two.hold("b", wait=0), one.hold("c", wait=0):
        owner = one.owner()
        assert owner is not None and owner["purpose"] == "a"
    assert one.owner() is None


def test_another_process_is_named_then_its_death_frees_the_lock(tmp_path: Path) -> None:
    process = hold_elsewhere(tmp_path)
    with (
        pytest.raises(LabLocked, match=rf"process {process.pid} .*train for long"),
        LabLock(tmp_path).hold("x", wait=0.1),
    ):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    with LabLock(tmp_path).hold("x", wait=5):
        pass
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    process.stdout.close()


def test_threads_exclude_each_other(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(30):
            with LabLock(tmp_path).hold("count"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    with pytest.raises(ValueError), LabLock(tmp_path).hold("fail"):
        raise ValueError  # an error inside must release it
    for thread in threads:
        thread.join()
    assert most == 1 and inside == 0


def test_a_waiting_thread_gives_up(tmp_path: Path) -> None:
    with LabLock(tmp_path).hold("mine"):
        failures: list[BaseException] = []

        def want() -> None:
            try:
                with LabLock(tmp_path).hold("theirs", wait=0.05):
                    pass
            except LabLocked as error:
                failures.append(error)

        thread = threading.Thread(target=want)
        thread.start()
        thread.join()
    assert len(failures) == 1 and "mine" in str(failures[0])


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="writable"), LabLock(tmp_path / "file/sub").hold("x"):
        pass
