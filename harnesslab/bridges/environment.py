"""An agent that exists already as an environment: each of its requests to a model is a step of an episode.

The agent runs on a thread (or as a program) and asks its model as ever. Its request is what the step observes; the reply, after the
harness, is what the step does; the agent's next request, or its end, is what comes of it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnesslab.bridges.calls import Asked, Call, Ended
from harnesslab.bridges.redirect import Line, Switchboard, open_line
from harnesslab.errors import ConfigError, EnvironmentFault
from harnesslab.harness.toolschema import checked
from harnesslab.plaintext import clip, in_words
from harnesslab.rollout.env import SPLITS, Action, Policy, Split, Task, TextEnv
from harnesslab.rollout.foreign import PARALLEL, Message, assistant, text_of

STARTER = Path(__file__).parent / "starter"
SECONDS = 300.0
"""How long an agent may go on without asking its model."""
OUTPUT = 1_000_000
"""Characters that are read of what a program prints."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What came of a task: ``score`` from 0 to 1, and whether that counts as solved."""

    score: float
    solved: bool


class Bridge:
    """The environment that :func:`bridge` makes."""

    oracle: Any = None
    """Nobody knows how the tasks are solved."""

    def __init__(
        self,
        tasks: Any,
        play: Callable[[Any, Line], Any],
        score: Callable[..., Any],
        *,
        name: str,
        version: str,
        budget: int,
        solved_at: float,
        deadline: float,
    ):
        self.name, self.version, self.max_steps, self.deadline = name, version, budget, deadline
        self.inputs: dict[str, Any] = {}
        self._tasks = _divided(tasks, self.inputs)
        self._play, self._score, self._solved_at = play, score, solved_at

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split, in the order in which they were given."""
        return self._tasks[split]

    def instruction(self, task: Task) -> str:
        """The task's own text, so that the same task in two splits is noticed."""
        return _text(self.inputs[task.id])

    def make(self) -> TextEnv:
        """An instance: one agent at a time."""
        return BridgeEnv(self)

    def null(self, task: Task) -> Policy:
        """A model that says nothing."""
        return lambda observation, info: ""

    def starter(self) -> Path:
        """A harness that changes nothing."""
        return STARTER

    def play(self, task: Any, line: Line) -> Any:
        """Run the agent on a task; returns what it returns."""
        return self._play(task, line)

    def judge(self, task: Any, output: Any) -> Scored:
        """Score what the agent returned. Raises EnvironmentFault for anything that is not a score."""
        try:
            found = self._score(task, output)
        except Exception as error:
            raise EnvironmentFault(f"score raised {in_words(error)}") from error
        if isinstance(found, bool):
            return Scored(float(found), found)
        try:
            score = float(found)
        except (TypeError, ValueError) as error:
            raise EnvironmentFault(f"score returned {type(found).__name__}; return True, False or a number from 0 to 1", cause="lie") from error  # fmt: skip
        if not math.isfinite(score) or not 0 <= score <= 1:
            raise EnvironmentFault(f"score returned {score:g}; return True, False or a number from 0 to 1", cause="lie")
        return Scored(score, score >= self._solved_at)

    def __repr__(self) -> str:
        return f"bridge({self.name!r}, {' / '.join(str(len(self._tasks[split])) for split in SPLITS)} tasks)"


class BridgeEnv:
    """One instance of a :class:`Bridge`. Waits on a thread of its own, because the agent takes its time."""

    threaded = True

    def __init__(self, world: Bridge):
        self._world = world
        self._call: Call | None = None
        self._task: Any = None

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict]:
        """Start the agent on a task, up to its first request."""
        self.close()
        self._task = self._world.inputs[(options or {})["task"]]
        self._call = Call(self._world.play, self._task)
        found = self._call.next(self._world.deadline)
        if isinstance(found, Ended):
            why = f"it raised {in_words(found.error)}" if found.error is not None else "it finished"
            raise EnvironmentFault(
                f"the agent never asked its model: {why}. Its client must use httpx (as openai does), or the address that it is given"
            )
        return _newest(found), self._info(found, Scored(0.0, False))

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict]:
        """Give the agent its reply, and go on to its next request, or to its end."""
        if self._call is None:
            raise EnvironmentFault("step was called before reset, or after the agent's end")
        self._call.answer(_message(action))
        found = self._call.next(self._world.deadline)
        if isinstance(found, Asked):
            return _newest(found), 0.0, False, False, self._info(found, Scored(0.0, False))
        self.close()
        if found.error is not None:
            return f"The agent raised {in_words(found.error)}", 0.0, True, False, self._info(None, Scored(0.0, False))
        scored = self._world.judge(self._task, found.output)
        return (
            f"The agent finished: {clip(_text(found.output), 2000)}",
            scored.score,
            True,
            False,
            self._info(None, scored),
        )

    def close(self) -> None:
        """Let the agent go; its next request fails."""
        if self._call is not None:
            self._call.hang_up()
            self._call = None

    def _info(self, request: Asked | None, scored: Scored) -> dict[str, Any]:
        public: dict[str, Any] = {"instruction": _text(self._task)}
        if request is not None:
            try:
                tools = checked(request.tools) if request.tools else None
            except ValueError as error:
                raise EnvironmentFault(f"the agent's tools cannot be used: {error}", cause="lie") from error
            messages = [{key: value for key, value in message.items() if not key.startswith("_")} for message in request.messages]  # fmt: skip
            public |= {"tools": tools, "request": {"messages": messages, "tools": tools}}
        return {"public": public, "private": {"solved": scored.solved, "progress": scored.score}}


def bridge(
    tasks: Any,
    run: Callable[..., Any] | None = None,
    score: Callable[..., Any] | None = None,
    *,
    command: Sequence[str] | None = None,
    name: str = "agent",
    version: str | None = None,
    budget: int = 30,
    solved_at: float = 1.0,
    deadline: float = SECONDS,
) -> Bridge:
    """An environment from an agent that exists: pass it as ``env`` to ``Lab.open``.

    ``tasks``: a list of anything that is plain JSON (dealt out to search, gate and sealed), or a mapping from split to such a list. A task
    that is a mapping may have ``id``, ``family`` and ``split``. ``run(task)``: plays a task with your agent and returns what it comes to;
    a coroutine function works, too. Its requests to a model are answered here, whatever address its client has. ``command``: a program
    instead; it gets the task as JSON on standard input, OPENAI_BASE_URL, OPENAI_API_KEY and ANTHROPIC_BASE_URL in its environment, and its
    standard output is what it comes to; ``{input}`` in an argument is the task's text. ``score(task, output)``: True, False, or a number
    from 0 to 1, of which ``solved_at`` or more counts as solved. ``budget``: requests of one episode. ``version``: part of the
    measurement's identity, by default from the source of ``run`` and ``score``. ``deadline``: seconds without a request.
    Raises ConfigError.
    """
    if (run is None) == (command is None):
        raise ConfigError("bridge: pass either run=, a function that plays a task, or command=, a program that does")
    if not callable(score):
        raise ConfigError("bridge: pass score=, a function of a task and of what the agent came to")
    if run is not None and not callable(run):
        raise ConfigError(f"bridge: run is {type(run).__name__}, not a function")
    if isinstance(command, str) or (
        command is not None and not (command and all(isinstance(part, str) for part in command))
    ):
        raise ConfigError("bridge: command is a list of words, the program first")
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise ConfigError(f"bridge: budget is {budget!r}; give a number of requests above 0")
    play = _in_process(run) if run is not None else _program(list(command or ()), deadline)
    about = version if version is not None else _version(run, score, command)
    return Bridge(tasks, play, score, name=name, version=about, budget=budget, solved_at=solved_at, deadline=deadline)


def _in_process(run: Callable[..., Any]) -> Callable[[Any, Line], Any]:
    def play(task: Any, line: Line) -> Any:
        missing = "OPENAI_API_KEY" not in os.environ
        if missing:  # clients refuse to be made without one; nothing is sent anywhere
            os.environ["OPENAI_API_KEY"] = "harnesslab"
        try:
            with open_line(line):
                output = run(task)
                if inspect.isawaitable(output):
                    import asyncio

                    output = asyncio.run(_awaited(output))
                return output
        finally:
            if missing:
                os.environ.pop("OPENAI_API_KEY", None)

    return play


async def _awaited(output: Any) -> Any:
    return await output


def _program(command: list[str], deadline: float) -> Callable[[Any, Line], Any]:
    switchboard: list[Switchboard] = []
    lock = threading.Lock()

    def play(task: Any, line: Line) -> Any:
        with lock:
            if not switchboard:
                switchboard.append(Switchboard())
        with switchboard[0].connect(line) as url:
            own = {"OPENAI_BASE_URL": url, "OPENAI_API_BASE": url, "OPENAI_API_KEY": "harnesslab", "ANTHROPIC_BASE_URL": url.removesuffix("/v1"), "ANTHROPIC_API_KEY": "harnesslab"}  # fmt: skip
            words = [part.replace("{input}", _text(task)) for part in command]
            done = subprocess.run(
                words, input=json.dumps(task, default=str), capture_output=True, text=True, encoding="utf-8", errors="replace",
                env={**os.environ, **own}, check=False,
            )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{words[0]} ended with exit code {done.returncode}: {clip(done.stderr[-2000:], 500)}")
        return done.stdout[:OUTPUT]

    return play


def _divided(tasks: Any, inputs: dict[str, Any]) -> dict[Split, list[Task]]:
    """The tasks by split. A plain list is dealt out: of five in a row two go to search, two to gate, one to sealed."""
    order: tuple[Split, ...] = ("search", "gate", "search", "gate", "sealed")
    given: list[tuple[Any, Any]] = []
    if isinstance(tasks, Mapping):
        given = [(split, task) for split in tasks for task in tasks[split]]
    else:
        if callable(rows := getattr(tasks, "to_dict", None)):
            tasks = rows("records")
        try:
            listed = list(tasks)
        except TypeError as error:
            raise ConfigError(
                f"bridge: tasks is {type(tasks).__name__}; pass a list, or a mapping from split to lists"
            ) from error
        for place, task in enumerate(listed):
            own = task.get("split") if isinstance(task, Mapping) else None
            given.append((own if own is not None else order[place % len(order)], task))
    found: dict[Split, list[Task]] = {split: [] for split in SPLITS}
    for place, (split, task) in enumerate(given):
        if split not in SPLITS:
            raise ConfigError(f"bridge: {split!r:.40} is not a split; the splits are {', '.join(SPLITS)}")
        about = task if isinstance(task, Mapping) else {}
        identity = str(about.get("id", f"task-{place}"))
        if identity in inputs:
            raise ConfigError(f"bridge: two tasks have the id {identity!r:.60}")
        inputs[identity] = task
        found[split].append(Task(identity, split, str(about.get("family", "task")), options={"task": identity}))
    if not inputs:
        raise ConfigError("bridge: there are no tasks")
    return found


def _version(run: Any, score: Any, command: Any) -> str:
    found = hashlib.sha256(json.dumps(command).encode())
    for function in (run, score):
        try:
            found.update(inspect.getsource(function).encode())
        except (OSError, TypeError):  # made in an interpreter, or a builtin
            found.update(str(getattr(function, "__qualname__", type(function).__name__)).encode())
    return found.hexdigest()[:12]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        for key in ("input", "instruction", "question", "prompt", "text"):
            if isinstance(value.get(key), str):
                return str(value[key])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _newest(request: Asked) -> str:
    """What the model is to answer: everything since its last reply."""
    texts: list[str] = []
    for message in reversed(request.messages):
        if message.get("role") in ("assistant", "system", "developer"):
            break
        texts.append(text_of(message))
    return "\n".join(reversed(texts))


def _message(action: Action) -> Message:
    """The agent's reply: whole, or made from an action that was recorded."""
    if isinstance(action, str):
        return assistant(action, ())
    name, arguments = action.get("name"), action.get("arguments") or {}
    if name == "reply" and isinstance(arguments, Mapping) and arguments.get("role") == "assistant":
        return dict(arguments)
    calls = arguments.get("calls", []) if name == PARALLEL else [action]
    return assistant("", [{"id": f"call_{place}", **call} for place, call in enumerate(calls)])
