"""Trainings killed at any git call or database write, then resumed: exactly as many verdicts as epochs were asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

SCRIPT = """
import os, random, signal, sys
from pathlib import Path
import harnesslab as hl
from harnesslab.errors import OrderError
from harnesslab.store.git import Git
from harnesslab.store.journal import Journal
from harnesslab.store.runs import RunStore
from tests.trainer.test_trainer import RIGHT, WRONG, trainer
from tests.worlds import CorridorWorld

folder, seed, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
TEXTS = [WRONG, RIGHT.replace("right", "right, of course"), WRONG.replace("left", "left, surely"), RIGHT]


def arm(at):
    left = [at]

    def die():
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrap(cls, name):
        plain = getattr(cls, name)

        def both(*given, **named):
            die()
            try:
                return plain(*given, **named)
            finally:
                die()

        setattr(cls, name, both)

    for cls, name in ((Git, "run"), (Journal, "journal_put"), (RunStore, "add_episode")):
        wrap(cls, name)
    return left


def work(path, at, resume):
    left = arm(at)
    lab = hl.Lab.open(path, env=CorridorWorld())
    made = trainer(lab, *TEXTS, search=2, gate=3)
    try:
        for loss in made.resume() if resume else made.epochs(3):
            loss.backward()
            made.optimizer.step()
    except OrderError:
        if lab.runs.journal_get(0, "epochs") is None:  # killed before the training began
            return work_again(made)
    lab.close()
    return left[0]


def work_again(made):
    for loss in made.epochs(3):
        loss.backward()
        made.optimizer.step()


def child(path, at, resume):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work(path, at, resume)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def verdicts(path):
    pid = os.fork()
    if pid == 0:
        lab = hl.Lab.open(path, env=CorridorWorld())
        os._exit(lab.repo.candidates(state=("promoted", "rejected", "undecided")).total)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


dice = random.Random(seed)
killed = 0
for number in range(rounds):
    path = folder / str(number)
    if number == 0:
        assert child(path, 10**9, False) == 0
        assert verdicts(path) == 3, verdicts(path)
        continue
    resume, points = False, []
    for again in range(6):
        at = dice.randint(1, 260) if again < 3 else 10**9
        points.append(at)
        status = child(path, at, resume)
        if os.WIFSIGNALED(status):
            killed += 1
            resume = True
            continue
        assert status == 0, ("failed", points)
        break
    found = verdicts(path)
    assert found == 3, (found, points)
print("killed", killed)
"""


def test_a_training_killed_anywhere_and_resumed_has_as_many_verdicts_as_epochs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), "7", "6"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1]) >= 5
