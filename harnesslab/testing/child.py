"""The other process of :func:`~harnesslab.testing.check_env`: reads a request from stdin, writes digests to stdout."""

from __future__ import annotations

import datetime
import json
import sys
import time
from typing import Any, Self

from harnesslab.rollout.registry import load_environment
from harnesslab.testing.play import trajectory_digest


def main() -> None:
    """``{"environment", "options", "split", "tasks": [id], "later": seconds}`` in, ``{id: digest}`` out, both as JSON."""
    request = json.load(sys.stdin)
    if request.get("later"):
        # Before the environment is imported, so that it gets these clocks under whatever name.
        set_clocks(request["later"])
    environment = load_environment(request["environment"], **request["options"])
    wanted = set(request["tasks"])
    digests = {
        task.id: trajectory_digest(environment, task, environment.max_steps)
        for task in environment.tasks(request["split"])
        if task.id in wanted
    }
    print(json.dumps(digests))


def set_clocks(later: float) -> None:
    """Let every clock of this process that tells the date be ``later`` seconds ahead, for as long as it lives."""
    clock, clock_ns, kept = (
        time.time,
        time.time_ns,
        {name: getattr(time, name) for name in ("gmtime", "localtime", "ctime")},
    )
    strftime = time.strftime

    def at(name: str) -> Any:
        return lambda seconds=None: kept[name](clock() + later if seconds is None else seconds)

    class Datetime(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Self:
            return cls.fromtimestamp(clock() + later, tz)

        @classmethod
        def utcnow(cls) -> Self:
            return cls.fromtimestamp(clock() + later, datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Self:
            return cls.fromtimestamp(clock() + later)

    class Date(datetime.date):
        @classmethod
        def today(cls) -> Self:
            return cls.fromtimestamp(clock() + later)

    ours: dict[Any, dict[str, Any]] = {
        time: {
            "time": lambda: clock() + later,
            "time_ns": lambda: clock_ns() + int(later * 1e9),
            "strftime": lambda form, at=None: strftime(form, time.localtime() if at is None else at),
            **{name: at(name) for name in kept},
        },
        datetime: {"datetime": Datetime, "date": Date},
    }
    for module, names in ours.items():
        for name, value in names.items():
            setattr(module, name, value)


if __name__ == "__main__":
    main()
