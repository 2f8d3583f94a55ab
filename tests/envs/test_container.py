"""The machine in a container: the same rules as on bubblewrap, on whatever engine answers here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnesslab.errors import EnvironmentFault, EnvironmentUnavailable
from harnesslab_envs.sandbox import Container, Engine, EngineError, Limits, MachineGone, find_engine
from harnesslab_envs.sandbox.container import Marked
from harnesslab_envs.sandbox.engine import LABEL, VARIABLE, owner
from tests.envs.engine_image import base_image, engine_or_skip

LIMITS = Limits(seconds=60, output=1_000, memory_mb=200, disk_mb=32, processes=60)
OWNER = """
import sys, time
from harnesslab_envs.sandbox import Container, find_engine
container = Container(find_engine(), sys.argv[1])
print(container._name, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def engine() -> Engine:
    found = engine_or_skip()
    base_image(found)
    return found


@pytest.fixture(scope="module")
def image(engine: Engine) -> str:
    return base_image(engine)


@pytest.fixture(scope="module")
def shared(engine: Engine, image: str) -> Iterator[Container]:
    """One container for the tests that leave it as it was."""
    with Container(engine, image, LIMITS) as made:
        yield made


def containers(engine: Engine) -> list[str]:
    return engine.call("ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}").split()


def wait_until_gone(engine: Engine, name: str) -> None:
    end = time.monotonic() + 60
    while name in containers(engine):
        assert time.monotonic() < end, f"{name} is still there"
        time.sleep(0.2)


def test_folder_and_exports_outlive_a_command(shared: Container) -> None:
    assert shared.run("mkdir -p /tmp/in && cd /tmp/in && export WORD='two words'; local=1; exit 3").code == 3
    assert shared.run('pwd; echo "$WORD $local"').output == "/tmp/in\ntwo words \n"
    assert shared.run('pwd; echo "$WORD"; cd /usr', keep_state=False).output == "/\n\n"
    assert shared.run("pwd; cat; unset HOME; f() { exit 4; }; f").output == "/tmp/in\n"
    assert shared.run('echo "[$HOME]"; cd /; rmdir /tmp/in; kill -9 $$').code == 137
    assert shared.run("pwd; exec true").output == "/\n"


def test_files_are_put_by_root_with_one_time(shared: Container) -> None:
    shared.put({"/srv/a/b.txt": b"\xff\x00"}, mode=0o640)
    assert shared.run("stat -c '%a %s %Y %u' /srv/a/b.txt").output == "640 2 1700000000 0\n"


def test_it_has_no_privileges_and_no_network(shared: Container) -> None:
    status = shared.run("grep -E '^(CapEff|NoNewPrivs)' /proc/self/status; ls /sys/class/net").output.split()
    assert status == ["CapEff:", "00000000000000fb", "NoNewPrivs:", "1", "lo"]
    assert shared.run("echo 5 > /proc/sys/kernel/pid_max").code != 0


def test_time_is_limited(shared: Container) -> None:
    done = shared.run("echo first; sleep 300", seconds=4)
    assert (done.stopped, done.output) == ("time", "first\n")
    assert shared.run("pgrep -f 'sleep 30[0]'").code == 1


def test_output_is_limited(shared: Container) -> None:
    done = shared.run("seq 1 100000")
    assert done.code == 0
    assert done.output.startswith("1\n2\n") and done.output.endswith("99999\n100000\n")
    assert "bytes left out" in done.output and len(done.output) < 1_100
    done = shared.run("yes")
    assert done.stopped == "output", done


def test_memory_processes_and_files_are_limited(shared: Container) -> None:
    assert shared.run("python3 -c 'bytearray(300 << 20)'").code == 137
    assert shared.run("head -c 40M /dev/zero > /tmp/big; stat -c %s /tmp/big").output.endswith(f"{32 << 20}\n")
    done = shared.run("for i in 1 2 3; do head -c 20M /dev/zero > /tmp/big$i; done; sleep 50")
    assert done.stopped == "disk"
    bomb = shared.run("rm /tmp/big*; bomb() { bomb | bomb & }; bomb; sleep 50", seconds=5)
    assert "Resource temporarily unavailable" in bomb.output
    shared.sweep()
    assert shared.run("echo alive").output == "alive\n"


def test_background_work_goes_on_until_a_sweep_and_may_write(shared: Container) -> None:
    script = "(while echo tick; do sleep 0.2; done; touch /tmp/broken) & sleep 400 >/dev/null 2>&1 & echo now"
    done = shared.run(script)
    assert (done.stopped, done.code, done.output.replace("tick\n", "")) == ("", 0, "now\n")
    assert shared.run("sleep 3; pgrep -fx 'sleep 400' | wc -l; [ -e /tmp/broken ]").output == "1\n"
    shared.sweep()
    assert shared.run("set -- /proc/[0-9]*; echo $#").output == "3\n"  # the first process, and two bash for the command


def test_a_container_that_was_ended_is_told(engine: Engine, image: str) -> None:
    with Container(engine, image, LIMITS) as made:
        engine.call("kill", made._name)
        for _ in range(2):
            with pytest.raises(MachineGone):
                made.run("true")
        with pytest.raises(MachineGone):
            made.put({"/x": b""})


def test_an_image_without_bash_is_told(engine: Engine) -> None:
    with pytest.raises(EnvironmentFault, match="cannot be run"):
        Container(engine, "localhost/harnesslab-none:none")


def test_no_container_outlives_its_process(engine: Engine, image: str) -> None:
    with Container(engine, image, LIMITS) as made:
        assert made._name in containers(engine)
    assert made._name not in containers(engine)
    process = subprocess.Popen([sys.executable, "-c", OWNER, image], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert name in containers(engine)
        process.send_signal(signal.SIGKILL)
    wait_until_gone(engine, name)


def test_what_a_dead_process_left_is_reaped(engine: Engine, image: str) -> None:
    host, _, process = owner().rpartition("/")
    pid, _, started = process.partition(":")
    assert int(pid) == os.getpid()
    names = {"dead": f"{host}/{pid}:{started}0", "alive": owner(), "other": f"elsewhere/{pid}:0"}
    names = {f"harnesslab-test-{key}-{pid}": value for key, value in names.items()}
    try:
        for name, label in names.items():
            words = ("--detach", "--rm", "--network", "none", "--name", name, "--label", f"{LABEL}={label}")
            engine.call("run", *words, image, "/bin/bash", "-c", "sleep 600 & wait")
        assert engine.reap() == 1
        assert set(names) & set(containers(engine)) == set(names) - {f"harnesslab-test-dead-{pid}"}
    finally:
        for name in names:
            try:
                engine.call("kill", name)
            except EngineError:
                continue
            wait_until_gone(engine, name)


def test_an_image_is_built_once_for_a_name(engine: Engine, image: str) -> None:
    tag = f"harnesslab-test-built:{os.getpid()}"
    dockerfile = f"FROM {image}\nCOPY run.sh /srv/\nRUN /srv/run.sh > /srv/out\n".encode()
    try:
        engine.build(
            tag,
            {"Dockerfile": (dockerfile, 0o644), "run.sh": (b"#!/bin/bash\necho built\n", 0o755)},
            network=False,
            seconds=120,
        )
        engine.build(tag, {"Dockerfile": (b"FROM nothing-like-it\n", 0o644)}, network=False, seconds=120)
        with Container(engine, tag) as made:
            assert made.run("cat /srv/out").output == "built\n"
    finally:
        engine.call("image", "rm", "--force", tag)
    with pytest.raises(EngineError):
        engine.build(tag, {"Dockerfile": (b"FROM scratch\nRUN exit 7\n", 0o644)}, network=False, seconds=120)


@pytest.mark.parametrize(
    ("script", "reason"),
    [("echo 'Cannot connect to the daemon' >&2; exit 1", "Cannot connect to the daemon"), (None, "is not installed")],
)
def test_no_engine_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, reason: str
) -> None:
    program = tmp_path / "docker"
    if script:
        program.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(program))
    with pytest.raises(EnvironmentUnavailable, match=reason) as told:
        find_engine()
    assert "start Docker" in str(told.value) and "\n" not in str(told.value)


def test_an_engine_that_hangs_is_given_up(tmp_path: Path) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\nexec sleep 60\n", "utf-8")
    program.chmod(0o755)
    with pytest.raises(EngineError, match=r"did not end within 0\.2 s"):
        Engine(str(program)).call("info", seconds=0.2)


def test_a_mark_ends_an_output_wherever_it_is_cut() -> None:
    for size in (1, 3, 100):
        output = Marked(1_000, "<mark>")
        whole = b"text<mar<mark>later"
        for start in range(0, len(whole), size):
            output.add(whole[start : start + size])
        assert (output.ended, output.text()) == (True, "text<mar")
    unmarked = Marked(1_000, "<mark>")
    unmarked.add(b"text<ma")
    assert (unmarked.ended, unmarked.text()) == (False, "text<ma")
