"""Questions from a CSV file: one reply, graded by comparison with the expected answer."""

import csv
from pathlib import Path

from harnesslab.rollout.env import Task

HERE = Path(__file__).parent


def rows():
    """The rows of tasks.csv by id. The file's own column says which split a row belongs to."""
    with (HERE / "tasks.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def same(given, expected):
    """Grade here: exact after trimming and lowering. Put your own rule in its place."""
    return given.strip().rstrip(".").lower() == expected.strip().lower()


class Desk:
    """Plays one question at a time."""

    def reset(self, *, seed=None, options=None):
        self.row, self.solved = rows()[options["id"]], False
        return "Answer the question.", self._info()

    def step(self, action):
        if not isinstance(action, str) or not action.startswith("answer "):
            return "Write: answer <your answer>", 0.0, False, False, self._info(invalid=True)
        self.solved = same(action.removeprefix("answer "), self.row["answer"])
        return "Thank you.", float(self.solved), True, False, self._info()

    def close(self):
        pass

    def _info(self, invalid=False):
        public = {"instruction": self.row["question"], "invalid": invalid}
        return {"public": public, "private": {"solved": self.solved}}


class Questions:
    """The environment: its tasks, its instances, and the proof that the tasks can be solved."""

    name, version, max_steps = "questions", "1", 3

    def tasks(self, split):
        found = [row for row in rows().values() if row["split"] == split]
        return [Task(row["id"], split, row["topic"], options={"id": row["id"]}) for row in found]

    def make(self):
        return Desk()

    def oracle(self, task):
        expected = rows()[task.id]["answer"]
        return lambda observation, info: f"answer {expected}"

    def starter(self):
        return HERE / "starter"


def environment():
    return Questions()
