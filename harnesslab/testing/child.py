"""The other process of :func:`~harnesslab.testing.check_env`: reads a request from stdin, writes digests to stdout."""

from __future__ import annotations

import json
import sys

from harnesslab.rollout.registry import load_environment
from harnesslab.testing.play import trajectory_digest


def main() -> None:
    """``{"environment", "options", "split", "tasks": [id]}`` in, ``{id: digest}`` out, both as JSON."""
    request = json.load(sys.stdin)
    environment = load_environment(request["environment"], **request["options"])
    wanted = set(request["tasks"])
    digests = {
        task.id: trajectory_digest(environment, task, environment.max_steps)
        for task in environment.tasks(request["split"])
        if task.id in wanted
    }
    print(json.dumps(digests))


if __name__ == "__main__":
    main()
