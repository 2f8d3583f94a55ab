"""Interventions written in Python: the escape hatch for what no kind can say.

A file in a layer folder defines functions named after the hooks, at its top level; they take and return plain JSON forms
(:mod:`harnesslab.harness.jsonform`), or ``None`` when they have nothing to say::

    # action/lowercase.py
    def realize(context: dict, proposal: dict) -> dict | None:
        action = proposal["action"]
        if not isinstance(action, str) or action == action.lower():
            return None
        return {**proposal, "action": action.lower()}

Reading such a file runs nothing. At work it runs in a confined process (:mod:`harnesslab.harness.confined`), one for each
intervention and episode; with ``unconfined=True`` it runs in this process with all its rights.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

from harnesslab.errors import HarnessFileError, InterventionFault
from harnesslab.harness.base import HOOKS, Intervention
from harnesslab.harness.confined.box import Box, Code
from harnesslab.harness.context import Answer, Context, Decision, Draft, Proposal
from harnesslab.harness.jsonform import from_json, scores_from_json, to_json

_DEFINED = re.compile(
    rf"^(?:def[ \t]+({'|'.join(HOOKS)})[ \t]*\(|({'|'.join(HOOKS)})[ \t]*(?::[^=\n]*)?=[^=])", re.MULTILINE
)
_ABOUT = re.compile(r"""\A(?:[ \t]*(?:#.*)?\n)*[rR]?(\"{3}|'{3}|"|')\s*(.*?)\s*(?:\n|\1)""")


class PythonIntervention(Intervention):
    """What the two ways to run a file have in common: each call gets fresh values, and what comes back is checked."""

    kind = "python"
    remembers = True

    def __init__(self, name: str, hooks: Sequence[str], about: str = "") -> None:
        self.name = name
        self.layer = name.split("/", 1)[0]  # type: ignore[assignment]
        self.about = about
        self.hooks = tuple(hooks)

    def observe(self, context: Context, observation: str) -> str | None:
        """Call the file's ``observe``; the pipeline checks the text."""
        text: str | None = self._call("observe", context, observation)
        return text

    def offer(self, context: Context, tools: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]] | None:
        """Call the file's ``offer``; the pipeline checks the tools."""
        offered: Sequence[dict[str, Any]] | None = self._call("offer", context, tools)
        return offered

    def call(self, context: Context, action: dict[str, Any]) -> Answer | None:
        """Call the file's ``call``, which may return a text or an answer."""
        result = self._call("call", context, action)
        return self._checked("call", Answer, {"text": result} if isinstance(result, str) else result)

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Call the file's ``shape``."""
        return self._answer("shape", Draft, context, draft)

    def realize(self, context: Context, proposal: Proposal) -> Proposal | None:
        """Call the file's ``realize``."""
        return self._answer("realize", Proposal, context, proposal)

    def rank(self, context: Context, proposals: Sequence[Proposal]) -> Sequence[float] | None:
        """Call the file's ``rank``."""
        result = self._call("rank", context, proposals)
        try:
            return None if result is None else scores_from_json(result, len(proposals))
        except ValueError as error:
            raise self._lie("rank", error) from error

    def regulate(self, context: Context, proposal: Proposal) -> Decision | None:
        """Call the file's ``regulate``."""
        return self._answer("regulate", Decision, context, proposal)

    def _answer(self, hook: str, form: Any, context: Context, value: Any) -> Any:
        return self._checked(hook, form, self._call(hook, context, value))

    def _checked(self, hook: str, form: Any, result: Any) -> Any:
        try:
            return None if result is None else from_json(form, result)
        except ValueError as error:
            raise self._lie(hook, error) from error

    def _call(self, hook: str, context: Context, value: Any) -> Any:
        """What the file's function returns, unchecked."""
        raise NotImplementedError

    def _remember(self, hook: str, context: Context, memory: Any) -> None:
        """Put into the context's memory what the file has left there; the pipeline checks it."""
        if not isinstance(memory, dict):
            raise self._lie(hook, ValueError("context['memory'] must stay an object"))
        context.memory.clear()
        context.memory.update(memory)

    def _lie(self, hook: str, error: ValueError) -> InterventionFault:
        return InterventionFault(f"{self.name}: {hook} failed: ValueError: {error}", cause="nonsense")

    def __repr__(self) -> str:
        return f"<python {self.name}: {', '.join(self.hooks)}>"


class Confined(PythonIntervention):
    """A file that runs in a confined process. Outside of an episode each call has a process to itself."""

    def __init__(self, code: Code, about: str = "") -> None:
        super().__init__(code.name, code.hooks, about)
        self.code = code

    def check(self) -> None:
        """Load the file once in a confined process. Raises HarnessFileError with the line."""
        Box(self.code).check()

    def begin(self) -> Intervention:
        """The same with a process for one episode."""
        return Running(self.code, self.about)

    def _call(self, hook: str, context: Context, value: Any) -> Any:
        running = Running(self.code, self.about)
        try:
            return running._call(hook, context, value)
        finally:
            running.end()


class Running(PythonIntervention):
    """A file at work in one episode; its process starts at once and is waited for when it is needed."""

    def __init__(self, code: Code, about: str) -> None:
        super().__init__(code.name, code.hooks, about)
        self._box = Box(code)

    def begin(self) -> Intervention:
        """Itself: it has begun."""
        return self

    def end(self) -> None:
        """End the process, and with it all that the file remembers."""
        self._box.close()

    def _call(self, hook: str, context: Context, value: Any) -> Any:
        result, memory = self._box.ask(hook, context, to_json(value))
        self._remember(hook, context, memory)
        return result


class Unconfined(PythonIntervention):
    """A file that was loaded into this process."""

    def __init__(self, name: str, functions: Mapping[str, Callable[..., Any]], about: str = "") -> None:
        super().__init__(name, tuple(functions), about)
        self._functions = functions

    def _call(self, hook: str, context: Context, value: Any) -> Any:
        form = to_json(context)
        result = self._functions[hook](form, to_json(value))
        # The function may have put another object in its place.
        self._remember(hook, context, form.get("memory"))
        return result


def load_python(path: str, text: str, *, unconfined: bool = False) -> PythonIntervention:
    """The intervention in the Python file ``path`` (``layer/stem.py``). Raises HarnessFileError.

    Nothing of it is executed, not even parsed, since a hostile file can crash Python's parser; with ``unconfined`` it is
    executed at once, in this process.
    """
    name = path.removesuffix(".py")
    found = _ABOUT.match(text)
    about = found[2] if found else ""
    space = _executed(path, text) if unconfined else {}
    defined = space.keys() if unconfined else {first or second for first, second in _DEFINED.findall(text)}
    hooks = tuple(hook for hook in HOOKS if hook in defined and (not unconfined or callable(space[hook])))
    if not hooks:
        raise HarnessFileError(path, f"defines none of the functions {', '.join(HOOKS)} at its top level")
    if unconfined:
        return Unconfined(name, {hook: space[hook] for hook in hooks}, about)
    return Confined(Code(name, path, text, hooks), about)


def _executed(path: str, text: str) -> dict[str, Any]:
    code = _compiled(path, text)
    space: dict[str, Any] = {"__name__": "harnesslab_intervention." + path.removesuffix(".py").replace("/", ".")}
    try:
        exec(code, space)
    except (Exception, SystemExit) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        line = frames[-1].lineno if frames else None
        raise HarnessFileError(path, f"fails when it is loaded: {type(error).__name__}: {error}", line=line) from error
    return space


def _compiled(path: str, text: str) -> CodeType:
    try:
        return compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise HarnessFileError(path, f"not valid Python: {getattr(error, 'msg', error)}", line=line) from error
