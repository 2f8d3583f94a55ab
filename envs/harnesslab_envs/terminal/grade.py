"""Runs the tests of a task, or of one of its steps, and reads their verdict as the task's format has it."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from harnesslab.errors import EnvironmentFault
from harnesslab_envs.sandbox import Confined
from harnesslab_envs.terminal import rewards, standins
from harnesslab_envs.terminal.spec import HARBOR, PYTEST, Part, Spec
from harnesslab_envs.terminal.upload import upload

TESTS = "/tests"
LOGS = "/logs/verifier"
OUTPUT = f"{LOGS}/test-stdout.txt"
OUTPUT_SIZE = 1 << 18
"""Bytes of the tests' output that are read, the last ones."""
SAID = 400


@dataclass(frozen=True, slots=True)
class Tools:
    """What runs tests in a machine. ``pytest``: the words that start it, none where the machine's own is to be taken;
    ``python`` and ``path`` are those of :func:`.standins.inside`, and ``offline`` says whether stand-ins are wanted."""

    pytest: Sequence[str] = ()
    python: str | None = None
    path: str = ""
    offline: bool = True


def grade(machine: Confined, spec: Spec, part: Part, tools: Tools, solved_at: float = 1.0) -> rewards.Verdict:
    """Run the tests and return their verdict. Raises EnvironmentFault where there is none: a trial's error.

    The tests come to the machine only now. What the agent has left running goes on, as in both formats: a task may ask for
    a server. A script that runs for too long has no verdict in Harbor, and has failed in Terminal-Bench.
    """
    machine.run(f"rm -rf {TESTS} {LOGS}; mkdir -p {LOGS}; chmod 777 {LOGS}", keep_state=False)
    upload(machine, part.tests, TESTS)
    script = part.script and f"{TESTS}/{part.script}"
    command = _own_pytest(tools) if not script else runnable(machine, script)
    environ = {"TEST_DIR": TESTS, "DEBIAN_FRONTEND": "noninteractive", **part.environ}
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environ.items())
    user = part.test_user if part.test_user is not None else machine.user

    def run(prefix: str) -> tuple[str, int]:
        done = machine.run(
            f"{prefix}{exports}{command} > {OUTPUT} 2>&1 < /dev/null",
            seconds=part.test_seconds,
            keep_state=part.same_shell,
            user=user,
        )
        return done.stopped, done.code

    lacking = ""
    if tools.offline:
        with standins.inside(machine, tools.pytest, tools.python, tools.path) as standin:
            stopped, code = run(standin.prefix)
            lacking = standin.missing()
    else:
        stopped, code = run("")
    output = (machine.read(OUTPUT, OUTPUT_SIZE) or b"").decode("utf-8", "replace")
    if lacking:
        raise _fault(spec, f"its tests need {lacking}, and there is no network to get it", output)
    if stopped == "time":
        if spec.format == HARBOR:
            raise _fault(spec, f"its tests did not end within {part.test_seconds:g} s", output)
        return rewards.LOST
    try:
        if spec.format == HARBOR and script:
            return rewards.from_files(
                machine.read(f"{LOGS}/reward.json"), machine.read(f"{LOGS}/reward.txt"), solved_at
            )
        return rewards.from_pytest(output)
    except rewards.NoReward as error:
        how = f"was stopped ({stopped})" if stopped else f"ended with status {code}"
        raise _fault(spec, f"its tests gave no verdict: {error}; {part.script or 'pytest'} {how}", output) from error


def runnable(machine: Confined, script: str) -> str:
    """The command that runs a script by its own first line where it has one, as Harbor does; any user may run it."""
    machine.run(f"chmod a+rx {script}", keep_state=False)
    return f'if [ "$(head -c 2 {script})" = "#!" ]; then {script}; else bash {script}; fi'


def _own_pytest(tools: Tools) -> str:
    """pytest on the tests of a task without a script."""
    start = "pytest" if tools.offline and tools.pytest else "python3 -m pytest -p no:cacheprovider"
    return f"{start} -rA {posixpath.join(TESTS, PYTEST)}"


def _fault(spec: Spec, reason: str, output: str) -> EnvironmentFault:
    said = output.strip()[-SAID:]
    return EnvironmentFault(f"the task {spec.id} cannot be scored: {reason}" + (f": {said!r}" if said else ""))
