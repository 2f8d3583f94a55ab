"""The child's side: reads requests, calls the environment, writes replies. Standard library only.

The environment's own output cannot reach the frames: they have a socket of their own, and stdout and stderr are
a log that the parent reads.
"""

from __future__ import annotations

import importlib
import socket
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harnesslab.errors import ConfigError, EnvironmentFault, EnvironmentUnavailable, NothingPlayable
from harnesslab.rollout.env import Environment, Policy, TextEnv
from harnesslab.rollout.null import null_of
from harnesslab.rollout.options import check_options
from harnesslab.rollout.process.wire import PROTOCOL, Start, pack_task, unpack_task
from harnesslab.subproc.frames import HEAD, FrameError, decode, encode, length

POLICIES = 64
"""Oracles that are kept at once; the one that was used longest ago goes first."""
ERROR_LIMIT = 2_000
"""Characters of an error's text."""


class Server:
    """One environment, at most one instance of it, and some policies."""

    def __init__(self, add_package: Callable[[str, Path], None]) -> None:
        """``add_package`` makes a folder importable under a name."""
        self._add_package = add_package
        self._environment: Environment | None = None
        self._instance: TextEnv | None = None
        self._policies: OrderedDict[int, Policy] = OrderedDict()
        self._made = 0

    def answer(self, request: dict[str, Any]) -> Any:
        """The value for a request; raises what the environment raises."""
        what = str(request.pop("do"))
        if what not in _HANDLERS:
            raise ConfigError(f"the child does not know the request '{what}'; the two sides are of different versions")
        return _HANDLERS[what](self, **request)

    def start(self, **fields: Any) -> dict[str, Any]:
        """Import the environment and make it; ``fields`` are those of a Start."""
        wanted = Start(**fields)
        for name, folder in wanted.packages:
            self._add_package(name, Path(folder))
        factory = getattr(importlib.import_module(wanted.module), wanted.attribute)
        check_options(wanted.module, factory, wanted.options)
        made: Environment = factory(**wanted.options)
        self._environment = made
        return {"protocol": PROTOCOL, "name": made.name, "max_steps": made.max_steps}

    def version(self) -> str:
        """The environment's version; may read its data."""
        return self.environment.version

    def tasks(self, split: Any) -> list[dict[str, Any]]:
        """The tasks of a split."""
        return [pack_task(task) for task in self.environment.tasks(split)]

    def instructions(self, split: Any) -> list[str]:
        """The texts of a split's tasks, in order; each empty if the environment does not give them."""
        tasks, instruction = self.environment.tasks(split), getattr(self.environment, "instruction", None)
        return [instruction(task) for task in tasks] if callable(instruction) else [""] * len(tasks)

    def constants(self) -> list[Any]:
        """The environment's candidates for the best constant answer."""
        constants = getattr(self.environment, "constants", None)
        return list(constants()) if callable(constants) else []

    def unplayable(self) -> dict[str, str]:
        """Why tasks are left out, by their names."""
        return {str(name): str(why) for name, why in (getattr(self.environment, "unplayable", None) or {}).items()}

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Any:
        """Start an episode in the one instance, which is made when it is first needed."""
        if self._instance is None:
            self._instance = self.environment.make()
        return self._instance.reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        """Do one action."""
        if self._instance is None:
            raise ConfigError("step was asked for before reset")
        return self._instance.step(action)

    def close(self) -> None:
        """Give back what the instance holds."""
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.close()

    def policy(self, task: dict[str, Any], kind: str) -> int:
        """Make an oracle, or a null agent, and name it by a number."""
        wanted = unpack_task(task)
        if kind == "oracle" and not callable(getattr(self.environment, "oracle", None)):
            raise EnvironmentFault("the environment has no oracle")
        made = self.environment.oracle(wanted) if kind == "oracle" else null_of(self.environment, wanted)
        self._made += 1
        self._policies[self._made] = made
        while len(self._policies) > POLICIES:
            self._policies.popitem(last=False)
        return self._made

    def policy_act(self, policy: int, observation: str, info: dict[str, Any]) -> Any:
        """What the policy does now."""
        if policy not in self._policies:
            raise ConfigError(f"there is no policy {policy} any more: only the last {POLICIES} are kept")
        self._policies.move_to_end(policy)
        return self._policies[policy](observation, info)

    @property
    def environment(self) -> Environment:
        """The environment, once it was started."""
        if self._environment is None:
            raise ConfigError("the first request must be 'start'")
        return self._environment


_HANDLERS: dict[str, Callable[..., Any]] = {
    name: getattr(Server, name)
    for name in (
        "start",
        "version",
        "tasks",
        "instructions",
        "constants",
        "unplayable",
        "reset",
        "step",
        "close",
        "policy",
        "policy_act",
    )
}


def serve(fd: int, add_package: Callable[[str, Path], None]) -> None:
    """Answer requests on the socket ``fd`` until it closes; ``add_package`` makes a folder importable under a name."""
    server = Server(add_package)
    with socket.socket(fileno=fd) as channel:
        while (body := _read(channel)) is not None:
            reply = _reply(server, decode(body))
            # What the environment printed is in the log before the parent reads the reply.
            sys.stdout.flush()
            sys.stderr.flush()
            channel.sendall(reply)


def _reply(server: Server, request: dict[str, Any]) -> bytes:
    number = request.pop("id")
    try:
        return encode({"id": number, "value": server.answer(request)})
    except FrameError as error:
        return _error(number, "fault", f"returned a value that cannot be sent: {error}")
    except EnvironmentUnavailable as error:
        return _error(number, "unavailable", str(error))
    except NothingPlayable as error:
        return _error(number, "unplayable", str(error), unplayable=error.unplayable)
    except ConfigError as error:
        return _error(number, "config", str(error))
    except EnvironmentFault as error:
        return _error(number, "told", str(error))
    except MemoryError:
        return _error(number, "memory", "ran out of its memory")
    except Exception as error:  # noqa: BLE001 - an environment may raise anything
        import traceback

        traceback.print_exc()
        return _error(number, "fault", f"raised {type(error).__name__}: {error}")


def _error(number: Any, kind: str, text: str, **more: Any) -> bytes:
    return encode({"id": number, "error": {"kind": kind, "text": text[:ERROR_LIMIT], **more}})


def _read(channel: socket.socket) -> bytes | None:
    """The body of the next frame, or None where the parent has closed."""
    head = _read_all(channel, HEAD.size)
    return None if head is None else _read_all(channel, length(head))


def _read_all(channel: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = channel.recv(min(size - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)
