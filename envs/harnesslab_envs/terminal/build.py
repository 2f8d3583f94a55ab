"""Follows a task's Dockerfile on a machine, and runs the task's tests there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from harnesslab.errors import EnvironmentFault
from harnesslab_envs.sandbox import Confined, Machine
from harnesslab_envs.terminal.spec import PYTEST, Build, Spec

WORKDIR = "/app"
TESTS = "/tests"
REWARD = "/logs/verifier/reward.txt"
"""Where Harbor's test scripts leave their verdict."""
BUILD_SECONDS = 120.0
_COUNT = re.compile(r"(\d+) (passed|failed|error)")


def build(machine: Machine, spec: Spec) -> None:
    """Make the machine as the Dockerfile says. Raises EnvironmentFault that names the line that does not work here."""
    where = WORKDIR
    machine.set_state(where)
    for step in spec.build:
        if step.what == "workdir":
            where = str(PurePosixPath(where) / step.text)
            machine.set_state(where)
        elif step.what == "env":
            machine.set_state(None, **dict(step.values))
        elif step.what == "copy":
            _copy(machine, spec, step, where)
        else:
            done = machine.run(step.text, seconds=BUILD_SECONDS, keep_state=False)
            if done.code:
                raise EnvironmentFault(
                    f"the task {spec.id} cannot be built here (there is no network): line {step.line} of its "
                    f"Dockerfile, 'RUN {step.text[:80]}', gave {done.output.strip()[-300:]!r}"
                )
    machine.sweep()


def _copy(machine: Machine, spec: Spec, step: Build, where: str) -> None:
    found: dict[str, str] = {}
    for source, target in step.values:
        several = target.endswith(("/", ".")) or len(step.values) > 1
        place = PurePosixPath(where) / target
        root = PurePosixPath(source).as_posix().removeprefix("./").strip("/")
        if root in spec.context:
            found[str(place / PurePosixPath(root).name if several else place)] = root
            continue
        inside = "" if root in ("", ".") else f"{root}/"
        below = [name for name in spec.context if name.startswith(inside)]
        if not below:
            raise EnvironmentFault(f"the task {spec.id} copies '{source}', which its folder does not have")
        found |= {str(place / name[len(inside) :]): name for name in below}
    for mode, wanted in ((0o644, False), (0o755, True)):
        chosen = {path: spec.context[name] for path, name in found.items() if (name in spec.executable) is wanted}
        if chosen:
            machine.put(chosen, mode=mode)


def grade(machine: Confined, spec: Spec, pytest: Sequence[str]) -> tuple[bool, float]:
    """Run the tests: (solved, share of tests that passed). ``pytest`` are the words that start it in the machine; the
    task's own script runs where there are none.

    The tests come to the machine only now; the caller has ended all that the agent has left running.
    """
    machine.run(f"rm -rf {TESTS} /logs", keep_state=False)
    machine.put({f"{TESTS}/{name}": content for name, content in spec.tests.items()})
    if pytest:
        words = [*pytest, "-q", "--tb=no", "-p", "no:cacheprovider"]
        words += ["--rootdir", TESTS, "--confcutdir", TESTS, "-c", "/dev/null", f"{TESTS}/{PYTEST}"]
        script = f"export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1; {shlex.join(words)}"
        done = machine.run(script, seconds=spec.test_seconds, keep_state=False)
        counts = {what: int(count) for count, what in _COUNT.findall(done.output.rstrip().rpartition("\n")[2])}
        total = sum(counts.values())
        share = counts.get("passed", 0) / total if total else 0.0
        return done.code == 0 and share == 1.0, share
    machine.put({f"{TESTS}/run.sh": spec.script.encode()})
    script = f"export TEST_DIR={TESTS}; mkdir -p {PurePosixPath(REWARD).parent}; bash {TESTS}/run.sh"
    done = machine.run(script, seconds=spec.test_seconds, keep_state=False)
    verdict = machine.run(f"cat {REWARD}", keep_state=False)
    solved = verdict.output.strip() in ("1", "1.0") if verdict.code == 0 else done.code == 0
    return solved and not done.stopped, float(solved and not done.stopped)
