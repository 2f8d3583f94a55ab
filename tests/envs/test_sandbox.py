"""The confined machine: what it can do, what stops it, and that the host does not notice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnesslab.errors import EnvironmentUnavailable
from harnesslab_envs.sandbox import Limits, Machine, MachineGone, machine, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
LIMITS = Limits(seconds=20, output=1_000, memory_mb=200, disk_mb=32, processes=40)


@pytest.fixture(scope="module")
def shared() -> Iterator[Machine]:
    """One machine for the tests that leave it as it was."""
    try:
        made = Machine(LIMITS)
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    with made:
        yield made


@pytest.fixture
def own(shared: Machine) -> Iterator[Machine]:
    """A machine of the test's own."""
    with Machine(LIMITS) as made:
        yield made


def test_folder_and_exports_outlive_a_command(shared: Machine) -> None:
    assert shared.run("mkdir -p /tmp/in && cd /tmp/in && export WORD='two words'; local=1; exit 3").code == 3
    assert shared.run('pwd; echo "$WORD $local"').output == "/tmp/in\ntwo words \n"
    assert shared.run('pwd; echo "$WORD"', keep_state=False).output == "/app\n\n"


def test_files_are_put_with_one_time(shared: Machine) -> None:
    shared.put({"/srv/a/b.txt": b"\xff\x00"}, mode=0o640)
    assert shared.run("stat -c '%a %s %Y' /srv/a/b.txt").output == "640 2 1700000000\n"


def test_the_host_is_out_of_reach(own: Machine, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("kept", "utf-8")
    before = [sorted(Path(folder).iterdir()) for folder in ("/etc", "/usr", "/usr/local")]
    seen = own.run(
        f"cat {secret}; echo spoilt > {secret}; rm -rf /etc /usr/share/doc /usr/local /home /root; "
        "echo spoilt > /etc-gone; ls -A /home /root /tmp /var/log /run 2>/dev/null"
    )
    assert "kept" not in seen.output
    assert secret.read_text("utf-8") == "kept"
    assert [sorted(Path(folder).iterdir()) for folder in ("/etc", "/usr", "/usr/local")] == before
    assert not Path("/etc-gone").exists()


def test_processes_and_users_of_the_host_are_out_of_reach(shared: Machine) -> None:
    seen = shared.run(f"kill -0 {os.getpid()}; ls /proc | grep -c '^[0-9]'; grep -c ':[$]' /etc/shadow")
    assert "No such process" in seen.output
    assert int(seen.output.split()[-2]) < 10
    assert seen.output.split()[-1] == "0"  # no hash of a password


@pytest.mark.parametrize(
    "attempt",
    [
        "mount -t tmpfs none /mnt",
        "unshare -U true",
        "mknod /tmp/disk b 254 0",
        "echo x > /proc/sys/kernel/core_pattern",
        "echo 5 > /proc/sys/kernel/pid_max",
        "echo b > /proc/sysrq-trigger",
        "chroot / true",
        "ip link set lo down",
        "timeout 3 bash -c '</dev/tcp/192.0.2.1/80'",
        "date -s 2001-01-01",
        "head -c 1 /dev/mem",
        "ls /sys/kernel",
    ],
)
def test_what_reaches_the_kernel_is_refused(shared: Machine, attempt: str) -> None:
    assert shared.run(attempt).code != 0


def test_time_is_limited(shared: Machine) -> None:
    done = shared.run("echo first; sleep 60", seconds=0.5)
    assert (done.stopped, done.output) == ("time", "first\n")


def test_output_is_limited(shared: Machine) -> None:
    done = shared.run("seq 1 100000")
    assert done.code == 0
    assert done.output.startswith("1\n2\n") and done.output.endswith("99999\n100000\n")
    assert "bytes left out" in done.output and len(done.output) < 1_100
    assert shared.run("yes").stopped == "output"


def test_processes_are_limited(own: Machine) -> None:
    done = own.run("bomb() { bomb | bomb & }; bomb; sleep 15")
    # Root's own limit is not enforced by the kernel; other users' is, and their bomb fizzles out.
    assert done.stopped == "processes" or "Resource temporarily unavailable" in done.output
    assert own.run("echo alive").output == "alive\n"


def test_memory_is_limited(own: Machine) -> None:
    assert own.run("""python3 -c 'bytearray(300 << 20)'""").code != 0
    many = "import time; x = bytearray(90 << 20); time.sleep(15)"
    done = own.run(f"for i in 1 2 3 4; do python3 -c '{many}' & done; wait")
    assert done.stopped == "memory"
    assert own.run("echo alive").output == "alive\n"


def test_disk_is_limited(own: Machine) -> None:
    assert own.run("cd /tmp; for i in 1 2 3; do head -c 20M /dev/zero > $i; done").code != 0


def test_a_sweep_ends_what_was_left_running(shared: Machine) -> None:
    shared.run("nohup sleep 300 >/dev/null 2>&1 & setsid sleep 301 & echo done")
    assert shared.run("pgrep -c sleep").output == "2\n"
    shared.sweep()
    assert shared.run("pgrep -c sleep").output == "0\n"


def test_background_work_does_not_hold_up_its_command(shared: Machine) -> None:
    done = shared.run("(sleep 200; echo late) & echo now")
    assert (done.output, done.stopped) == ("now\n", "")
    shared.sweep()


def test_killing_the_supervisor_ends_the_machine(own: Machine) -> None:
    with pytest.raises(MachineGone):
        own.run("kill -9 2; sleep 5")
    with pytest.raises(MachineGone):
        own.run("true")


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Machine(LIMITS) as made:
        made.run("sleep 300 & echo x > /tmp/x")
        outer = made._process
        assert outer is not None
    assert outer.poll() is not None
    assert list(tmp_path.iterdir()) == []
    made.close()


def test_without_bubblewrap_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.shutil, "which", lambda name, path=None: None if name == "bwrap" else "/bin/x")
    machine.missing.cache_clear()
    try:
        with pytest.raises(EnvironmentUnavailable, match="apt-get install bubblewrap"):
            Machine(LIMITS)
    finally:
        machine.missing.cache_clear()
