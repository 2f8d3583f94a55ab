"""Reads a Dockerfile for a machine that has this system's programs in place of an image.

The text is taken apart by a port of BuildKit's own parser (e2b-dockerfile-utils). Every instruction is followed as BuildKit does
(https://docs.docker.com/reference/dockerfile), has no effect on a machine in which commands run, or is refused with its
line when the tasks are loaded. ``FROM`` is the one that is not followed: whatever an image would bring must be here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from e2b_dockerfile_utils import (
    DockerfileInstruction,
    DockerfileSyntaxError,
    ShellLex,
    parse_dockerfile_ast,
)

from harnesslab_envs.terminal.copying import ignored
from harnesslab_envs.terminal.spec import Spec, Unplayable

SHELL = ("/bin/sh", "-c")
IGNORED = frozenset(("LABEL", "EXPOSE", "CMD", "STOPSIGNAL", "HEALTHCHECK", "MAINTAINER"))
"""Without effect where commands run in a machine that is up: the official harness replaces CMD, too."""
PLATFORM = {
    **{f"{side}PLATFORM": "linux/amd64" for side in ("TARGET", "BUILD")},
    **{f"{side}OS": "linux" for side in ("TARGET", "BUILD")},
    **{f"{side}ARCH": "amd64" for side in ("TARGET", "BUILD")},
    **{f"{side}VARIANT": "" for side in ("TARGET", "BUILD")},
}
_RUNS_COMMAND = frozenset(("sh", "bash", "env", "exec", "tini", "dumb-init", "$@", '"$@"'))
"""The programs of an ENTRYPOINT that does nothing but run the command, without their folders."""
_VALUED = frozenset(("RUN", "ENV", "ARG", "WORKDIR", "USER", "SHELL", "VOLUME"))
"""Instructions that mean nothing by themselves."""
URL = re.compile(r"^(https?|ftp|git|ssh)://|^git@|\.git(#|$)")
_FLAGS = {
    "RUN": ("mount", "network", "security"),
    "COPY": ("from", "chown", "chmod", "link", "exclude"),
    "ADD": ("chown", "chmod", "link", "exclude", "keep-git-dir", "checksum", "unpack"),
    "FROM": ("platform",),
}


@dataclass(slots=True)
class Stage:
    """From one FROM to the next."""

    name: str
    base: str
    line: int
    steps: list[DockerfileInstruction] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """What the instructions so far leave to the next, and to the agent."""

    environ: dict[str, str]
    args: dict[str, str]
    where: str = "/"
    user: str = ""
    shell: tuple[str, ...] = SHELL

    def lexer(self, escape: str, **options: bool) -> ShellLex:
        """Expands variables as BuildKit does: those of ENV come before those of ARG, unknown ones are empty."""
        return ShellLex(escape, env={**self.args, **self.environ}, skip_unset_env=False, **options)


class Dockerfile:
    """A task's Dockerfile, read. Raises Unplayable where a line cannot be followed here."""

    def __init__(self, spec: Spec):
        self.spec = spec
        self.name = spec.dockerfile_name or "Dockerfile"
        try:
            read = parse_dockerfile_ast(spec.dockerfile)
        except DockerfileSyntaxError as error:
            message = re.sub(r"^Dockerfile parse error( on line \d+)?: ", "", str(error))
            raise self.refused(error.line or 0, f"cannot be read: {message}") from error
        self.escape = read.escape_token
        self.globals: dict[str, str] = {}
        self.stages = list(self._stages(read.instructions))
        self.context = ignored(spec.context, self.name)
        self._needed = self._reached()
        for stage in self._needed:
            for step in stage.steps:
                self._check(stage, step)
        self._check_entrypoint()

    def _stages(self, instructions: list[DockerfileInstruction]) -> Iterator[Stage]:
        state = State({}, {})
        stage: Stage | None = None
        for step in instructions:
            self._check_flags(step)
            if step.name == "FROM":
                if stage is not None:
                    yield stage
                words = [self.expanded(state, word, step) for word in step.args]
                if len(words) not in (1, 3) or (len(words) == 3 and words[1].upper() != "AS"):
                    raise self.refused(step.start_line, "must be 'FROM IMAGE' or 'FROM IMAGE AS NAME'")
                if not words[0]:
                    raise self.refused(step.start_line, f"'{step.original}' names no image")
                stage = Stage(words[2].lower() if len(words) == 3 else "", words[0], step.start_line)
            elif stage is not None:
                stage.steps.append(step)
            elif step.name == "ARG":
                self.arg(state, step, self.spec.build_args)
                self.globals = dict(state.args)
            else:
                raise self.refused(step.start_line, f"{step.name} comes before the first FROM")
        if stage is not None:
            yield stage
        elif self.spec.dockerfile_name:
            raise self.refused(1, "has no FROM")

    def stage(self, name: str, before: int) -> Stage | None:
        """The stage of a name or a number, before another."""
        for number, stage in enumerate(self.stages[:before]):
            if name.lower() == stage.name or name == str(number):
                return stage
        return None

    def _reached(self) -> list[Stage]:
        """The last stage and those that it builds on or copies from."""
        waiting, found = self.stages[-1:], []
        while waiting:
            stage = waiting.pop()
            if stage in found:
                continue
            found.append(stage)
            before = self.stages.index(stage)
            names = [stage.base, *(value for step in stage.steps if (value := flag(step, "from")))]
            waiting += [other for name in names if (other := self.stage(name, before)) is not None]
        return found

    def _check(self, stage: Stage, step: DockerfileInstruction) -> None:
        """Refuse a step that cannot be followed here."""
        before = self.stages.index(stage)
        line, name = step.start_line, step.name
        if name == "ONBUILD":
            if any(self.stage(other.base, self.stages.index(other)) is stage for other in self.stages):
                raise self.refused(line, "ONBUILD is not followed where another stage builds on this one")
        elif name in _VALUED and not any(step.args):
            raise self.refused(line, f"{name} needs a value")
        elif name == "RUN":
            for mount in flags(step, "mount"):
                kind = dict(part.partition("=")[::2] for part in mount.split(",")).get("type", "bind")
                if kind not in ("cache", "tmpfs"):
                    raise self.refused(line, f"RUN --mount=type={kind} is not supported")
            if flag(step, "security") not in ("", "sandbox") or flag(step, "network") == "host":
                raise self.refused(line, f"'{short(step)}' is not supported")
        elif name in ("COPY", "ADD"):
            origin = flag(step, "from")
            if origin and self.stage(origin, before) is None:
                raise self.refused(line, f"copies from the image {origin}, which only a container engine can fetch")
            places = len(step.args) + len([one for one in step.heredocs if f"<<{one.name}" not in step.args])
            if min(places, len(step.args)) < 2:
                raise self.refused(line, f"write {name} as '{name} SOURCE TARGET'")
            if name == "ADD" and any(URL.search(word) for word in step.args[:-1]):
                raise self.refused(line, f"'{short(step)}' needs the network")
        elif name not in IGNORED and name not in _VALUED and name != "ENTRYPOINT":
            raise self.refused(line, f"{name} is not supported")
        elif name == "SHELL" and not step.json:
            raise self.refused(line, 'SHELL takes a list: SHELL ["/bin/bash", "-c"]')

    def _check_entrypoint(self) -> None:
        """The last one of the image counts, and it may do nothing but run the command."""
        stage = self.stages[-1] if self.stages else None
        while stage is not None:
            step = next((step for step in reversed(stage.steps) if step.name == "ENTRYPOINT"), None)
            if step is not None:
                words = step.args if step.json else " ".join(step.args).split()
                if any(posixpath.basename(word) not in _RUNS_COMMAND and not word.startswith("-") for word in words):
                    why = f"'{short(step)}' would run before the agent, and is not run here"
                    raise self.refused(step.start_line, why)
                return
            stage = self.stage(stage.base, self.stages.index(stage))

    def _check_flags(self, step: DockerfileInstruction) -> None:
        for given in step.flags:
            if given.lstrip("-").partition("=")[0] not in _FLAGS.get(step.name, ()) and step.name not in IGNORED:
                raise self.refused(step.start_line, f"{step.name} {given} is not supported")

    def arg(self, state: State, step: DockerfileInstruction, given: Mapping[str, str], declared: bool = False) -> None:
        for word in step.args:
            name, assigned, default = word.partition("=")
            name = self.expanded(state, name, step)
            if name in given and (not declared or name in self.spec.build_args or not assigned):
                state.args[name] = given[name]
            elif assigned:
                state.args[name] = self.expanded(state, default, step)

    def expanded(self, state: State, word: str, step: DockerfileInstruction) -> str:
        return self.lexed(state.lexer(self.escape), word, step)

    def lexed(self, lexer: ShellLex, word: str, step: DockerfileInstruction) -> str:
        try:
            return str(lexer.process_word(word))
        except ValueError as error:
            raise self.refused(step.start_line, str(error)) from error

    def refused(self, line: int, reason: str) -> Unplayable:
        return Unplayable(f"{self.spec.source / self.name}{f', line {line}' if line else ''}: {reason}")


_IDENTIFIER = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


def flags(step: DockerfileInstruction, name: str) -> list[str]:
    return [flag.partition("=")[2] for flag in step.flags if flag.lstrip("-").partition("=")[0] == name]


def flag(step: DockerfileInstruction, name: str) -> str:
    return next(iter(flags(step, name)), "")


def short(step: DockerfileInstruction) -> str:
    text = " ".join(step.original.split())
    return text if len(text) <= 100 else text[:97] + "..."
