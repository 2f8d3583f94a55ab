"""Follows a task's Dockerfile on a machine, line by line."""

from __future__ import annotations

import posixpath
import re
import shlex
import time
from collections.abc import Callable

from e2b_dockerfile_utils import DockerfileInstruction, chomp_heredoc_content, parse_heredoc

from harnesslab.errors import EnvironmentFault
from harnesslab_envs.sandbox import Confined, Done, Machine
from harnesslab_envs.sandbox.machine import first_environ
from harnesslab_envs.terminal import standins
from harnesslab_envs.terminal.copying import (
    glob,
    is_archive,
    is_pattern,
    matcher,
    matching,
    moved,
    owner_of,
    packed,
    unpacked,
)
from harnesslab_envs.terminal.dockerfile import PLATFORM, URL, Dockerfile, Stage, State, flag, flags, short
from harnesslab_envs.terminal.spec import Files, Spec, Unplayable

NO_DOCKERFILE = "/app"
"""The folder of a task without a Dockerfile, which Docker could not build."""
STAGED = "/tmp/.harnesslab-copy.tar"
STAGE_FILES = 64 << 20
"""Bytes that COPY --from takes from another stage."""
SAID = 600
_IDENTIFIER = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class Builder:
    """Builds a task's machine; ``make`` gives others for the stages before the last."""

    def __init__(self, file: Dockerfile, make: Callable[[], Machine]):
        self._file, self._spec, self._make = file, file.spec, make

    def build(self, machine: Machine) -> None:
        """Make the machine as the last stage says. Raises EnvironmentFault that names the line that fails here."""
        spec = self._spec
        end = time.monotonic() + spec.build_seconds
        state = self._follow(machine, self._file.stages[-1], end) if self._file.stages else State({}, {}, NO_DOCKERFILE)
        state.environ.update(spec.environ)
        state.where = posixpath.join(state.where, spec.workdir) if spec.workdir else state.where
        machine.set_state(state.where, **state.environ)
        take_user(machine, spec, spec.user if spec.user is not None else state.user)

    def _follow(self, machine: Machine, stage: Stage, end: float) -> State:
        """Do the steps of a stage, after those of the stage that it builds on."""
        base = self._file.stage(stage.base, self._file.stages.index(stage))
        if base is None:
            state = State({"PATH": first_environ()["PATH"]}, {})
        else:
            state = self._follow(machine, base, end)
            state.args = {}
        machine.set_state(state.where)
        number = self._file.stages.index(stage)
        for step in stage.steps:
            try:
                self._do(machine, state, step, number, end)
            except Unplayable as error:
                raise EnvironmentFault(f"the task {self._spec.id} cannot be built here: {error}") from error
        return state

    def _do(self, machine: Machine, state: State, step: DockerfileInstruction, number: int, end: float) -> None:
        """Do one step."""

        def expanded(word: str) -> str:
            return self._file.expanded(state, word, step)

        if step.name == "RUN":
            self._run(machine, state, step, end)
        elif step.name in ("COPY", "ADD"):
            self._copy(machine, state, step, number, end)
        elif step.name == "ENV":
            # All of a line see the values from before it.
            pairs = zip(step.args[::3], step.args[1::3], strict=True)
            state.environ |= {expanded(key): expanded(value) for key, value in pairs}
        elif step.name == "ARG":
            self._file.arg(state, step, {**PLATFORM, **self._file.globals, **self._spec.build_args}, declared=True)
        elif step.name == "WORKDIR":
            state.where = posixpath.normpath(posixpath.join(state.where, expanded(step.args[0])))
            machine.set_state(state.where)
        elif step.name == "USER":
            state.user = expanded(step.args[0])
        elif step.name == "SHELL":
            state.shell = tuple(step.args)
        elif step.name == "VOLUME":
            places = [expanded(word) for word in step.args]
            self._must(machine.run(shlex.join(["mkdir", "-p", *places]), keep_state=False), step)

    def _run(self, machine: Machine, state: State, step: DockerfileInstruction, end: float) -> None:
        left = end - time.monotonic()
        if left <= 0:
            raise self._failed(step, f"the build took more than {self._spec.build_seconds:g} s")
        caches = [
            self._file.expanded(
                state, dict(part.partition("=")[::2] for part in mount.split(",")).get("target", ""), step
            )
            for mount in flags(step, "mount")
        ]
        script = script_of(step, state.shell)
        environ = {**state.args, **state.environ}
        exports = "".join(
            f"export {name}={shlex.quote(value)}\n" for name, value in environ.items() if _IDENTIFIER.match(name)
        )
        made = "".join(f"mkdir -p {shlex.quote(cache)}\n" for cache in caches if cache)
        with standins.inside(machine) as standin:
            done = machine.run(
                exports + made + standin.prefix + script, seconds=left, keep_state=False, user=state.user
            )
            lacking = standin.missing()
        if done.stopped == "time":
            raise self._failed(step, f"the build took more than {self._spec.build_seconds:g} s")
        self._must(done, step, lacking)
        for cache in filter(None, caches):
            machine.run(f"rm -rf {shlex.quote(cache)}", keep_state=False)

    def _copy(self, machine: Machine, state: State, step: DockerfileInstruction, number: int, end: float) -> None:
        lexer = state.lexer(self._file.escape)
        words = [self._file.expanded(state, word, step) if not parse_heredoc(word) else word for word in step.args]
        target = words[-1]
        folder = target in ("", ".", "./") or target.endswith(("/", "/."))
        place = posixpath.normpath(posixpath.join(state.where, target))
        sources = [word for word in words[:-1] if not parse_heredoc(word)]
        texts: dict[str, bytes] = {}
        for heredoc in step.heredocs:
            text = chomp_heredoc_content(heredoc.content) if heredoc.chomp else heredoc.content
            if heredoc.expand:
                plain = state.lexer(self._file.escape, raw_quotes=True, raw_escapes=False, skip_process_quotes=True)
                text = self._file.lexed(plain, text, step)
            texts[heredoc.name] = text.encode()
        if len(sources) + len(texts) > 1 and not folder:
            raise self._failed(step, f"several sources need a target that ends with '/', not {target!r}")
        origin = flag(step, "from")
        excluded = matcher([self._file.lexed(lexer, pattern, step) for pattern in flags(step, "exclude")])
        stage = self._file.stage(origin, number) if origin else None
        available = self._from_stage(stage, sources, step, end) if stage is not None else self._file.context
        if not folder:
            folder = machine.run(f"[ -d {shlex.quote(place)} ]", keep_state=False).code == 0
        wanted = Files(
            {posixpath.join(place, name) if folder else place: data for name, data in texts.items()},
        )
        archives: list[bytes] = []
        for source in sources:
            names = matching(source, available)
            if not names and step.name == "ADD" and URL.search(source):
                raise self._failed(step, "it needs the network")
            # A pattern may match nothing, a name may not.
            if not names and not is_pattern(source):
                raise self._failed(step, f"there is no '{source}' to copy")
            for name in names:
                if name in available.content or name in available.links:
                    if excluded(posixpath.basename(name)):
                        continue
                    data = available.content.get(name)
                    if step.name == "ADD" and data is not None and is_archive(data) and flag(step, "unpack") != "false":
                        archives.append(data)
                        continue
                    at = posixpath.join(place, posixpath.basename(name)) if folder else place
                    wanted = moved(available, {name: at}).over(wanted)
                else:
                    inside = f"{name}/" if name else ""
                    below = [*available.content, *available.links, *available.folders]
                    moves = {
                        one: posixpath.join(place, one[len(inside) :])
                        for one in below
                        if one.startswith(inside) and not excluded(one[len(inside) :])
                    }
                    wanted = moved(available, moves).over(wanted)
                    wanted = Files(folders=frozenset((place,))).over(wanted)
        owner = self._file.lexed(lexer, flag(step, "chown"), step)
        mode = self._file.lexed(lexer, flag(step, "chmod"), step)
        self._put(machine, wanted, owner, mode, step)
        for data in archives:
            machine.put({STAGED: data})
            at = shlex.quote(place)
            script = f"mkdir -p {at} && tar -xf {STAGED} -C {at}; code=$?; rm -f {STAGED}; exit $code"
            self._must(machine.run(script, keep_state=False), step)

    def _put(self, machine: Machine, files: Files, owner: str, mode: str, step: DockerfileInstruction) -> None:
        """Bring files to their absolute places, with their modes, or with those of the flags."""
        script = f"tar -xpf {STAGED} -C / --keep-directory-symlink"
        names = [*files.content, *files.links, *files.folders]
        if owner or mode:
            listed = f"{STAGED}.names"
            machine.put({listed: "\0".join(names).encode()})
            if mode:
                script += f" && xargs -0 -r -a {listed} chmod {shlex.quote(mode)} --"
            if owner:
                script += f" && xargs -0 -r -a {listed} chown -h {shlex.quote(owner_of(owner))} --"
            script += f"; code=$?; rm -f {listed}; (exit $code)"
        machine.put({STAGED: packed(files)})
        self._must(machine.run(f"{script}; code=$?; rm -f {STAGED}; exit $code", keep_state=False), step)

    def _from_stage(self, stage: Stage, sources: list[str], step: DockerfileInstruction, end: float) -> Files:
        """The files of another stage, which is built on a machine of its own, by their paths without the first slash."""
        with self._make() as other:
            self._follow(other, stage, end)
            globs = " ".join(glob(posixpath.normpath("/" + source).lstrip("/")) for source in sources)
            there = f'for one in {globs}; do if [ -e "$one" ] || [ -L "$one" ]; then names+=("$one"); fi; done'
            script = f'cd / && names=(); {there}; tar -cf {STAGED} -T /dev/null -- "${{names[@]}}"'
            done = other.run(script, keep_state=False)
            self._must(done, step)
            data = other.read(STAGED, STAGE_FILES + 1)
        if data is None or len(data) > STAGE_FILES:
            raise self._failed(step, f"more than {STAGE_FILES >> 20} MiB are copied from another stage")
        return unpacked(data)

    def _must(self, done: Done, step: DockerfileInstruction, lacking: str = "") -> None:
        if not done.code and not done.stopped:
            return
        reason = f"needs {lacking}, and there is no network; " if lacking else ""
        how = f"it was stopped ({done.stopped})" if done.stopped else f"exit status {done.code}"
        raise self._failed(step, f"{reason}{how}: {done.output.strip()[-SAID:]!r}")

    def _failed(self, step: DockerfileInstruction, reason: str) -> EnvironmentFault:
        where = f"{self._file.name}, line {step.start_line}, '{short(step)}'"
        return EnvironmentFault(f"the task {self._spec.id} cannot be built here: {where}: {reason}")


def take_user(machine: Confined, spec: Spec, user: str) -> None:
    """Run the agent's commands as a user from now on. Raises EnvironmentFault where the machine has no such user."""
    machine.user = user
    if user and (done := machine.run("true")).code:
        said = done.output.removeprefix("bash: ").strip()
        raise EnvironmentFault(f"the task {spec.id} cannot be played: its user {user!r} cannot be taken: {said}")


def script_of(step: DockerfileInstruction, shell: tuple[str, ...]) -> str:
    """What RUN runs, as one bash command."""
    if step.json:
        return "exec " + shlex.join(step.args)
    text = step.args[0] if step.args else ""
    alone = parse_heredoc(text.strip()) if len(step.heredocs) == 1 else None
    if alone is not None:
        heredoc = step.heredocs[0]
        body = chomp_heredoc_content(heredoc.content) if heredoc.chomp else heredoc.content
        if body.startswith("#!"):
            quoted = shlex.quote(body)
            return f'file=$(mktemp) && printf %s {quoted} > "$file" && chmod 755 "$file" && exec "$file"'
        text = body
    else:
        for heredoc in step.heredocs:
            text += f"\n{heredoc.content}{heredoc.name}"
    return "exec " + shlex.join([*shell, text])
