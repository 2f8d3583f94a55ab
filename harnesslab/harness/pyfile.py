"""Interventions written in Python: the escape hatch for what no kind can say.

A file in a layer folder defines functions named after the hooks; they take and return plain JSON forms
(:mod:`harnesslab.harness.jsonform`), or ``None`` when they have nothing to say::

    # action/lowercase.py
    def realize(context: dict, proposal: dict) -> dict | None:
        action = proposal["action"]
        if not isinstance(action, str) or action == action.lower():
            return None
        return {**proposal, "action": action.lower()}

Such a file runs in this process with all its rights; it is loaded only with ``trust=True``.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

from harnesslab.errors import HarnessFileError
from harnesslab.harness.base import HOOKS, Intervention
from harnesslab.harness.context import Context, Decision, Draft, Proposal
from harnesslab.harness.jsonform import from_json, scores_from_json, to_json


class PythonIntervention(Intervention):
    """The hooks of one Python file. Each call gets fresh copies; what comes back is checked."""

    kind = "python"

    def __init__(self, name: str, functions: Mapping[str, Callable[..., Any]], about: str = "") -> None:
        self.name = name
        self.layer = name.split("/", 1)[0]  # type: ignore[assignment]
        self.about = about
        self.hooks = tuple(functions)
        self._functions = functions

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Call the file's ``shape``."""
        result = self._functions["shape"](to_json(context), to_json(draft))
        return None if result is None else from_json(Draft, result)

    def realize(self, context: Context, proposal: Proposal) -> Proposal | None:
        """Call the file's ``realize``."""
        result = self._functions["realize"](to_json(context), to_json(proposal))
        return None if result is None else from_json(Proposal, result)

    def rank(self, context: Context, proposals: Sequence[Proposal]) -> Sequence[float] | None:
        """Call the file's ``rank``."""
        result = self._functions["rank"](to_json(context), [to_json(proposal) for proposal in proposals])
        return None if result is None else scores_from_json(result, len(proposals))

    def regulate(self, context: Context, proposal: Proposal) -> Decision | None:
        """Call the file's ``regulate``."""
        result = self._functions["regulate"](to_json(context), to_json(proposal))
        return None if result is None else from_json(Decision, result)

    def __repr__(self) -> str:
        return f"<python {self.name}: {', '.join(self.hooks)}>"


def load_python(path: str, text: str, *, trust: bool) -> PythonIntervention:
    """The intervention in the Python file ``path`` (``layer/stem.py``). Raises HarnessFileError.

    Without ``trust`` nothing of it is executed, not even compiled.
    """
    if not trust:
        raise HarnessFileError(
            path,
            "Python interventions run with all rights of this process and are not loaded by default. Read the file, then "
            "pass trust=True. (Running them confined is a later feature.)",
        )
    code = _compiled(path, text)
    space: dict[str, Any] = {"__name__": "harnesslab_intervention." + path.removesuffix(".py").replace("/", ".")}
    try:
        exec(code, space)
    except (Exception, SystemExit) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        line = frames[-1].lineno if frames else None
        raise HarnessFileError(path, f"fails when it is loaded: {type(error).__name__}: {error}", line=line) from error
    functions = {name: space[name] for name in HOOKS if callable(space.get(name))}
    if not functions:
        raise HarnessFileError(path, f"defines none of the functions {', '.join(HOOKS)}")
    about = (space.get("__doc__") or "").strip().partition("\n")[0]
    return PythonIntervention(path.removesuffix(".py"), functions, about)


def _compiled(path: str, text: str) -> CodeType:
    try:
        return compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise HarnessFileError(path, f"not valid Python: {getattr(error, 'msg', error)}", line=line) from error
