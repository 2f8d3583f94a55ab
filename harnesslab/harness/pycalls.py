"""Calls in Python's notation, parsed and never run."""

from __future__ import annotations

import ast
import re
from typing import Any


def python_calls(text: str) -> list[tuple[str, Any]]:
    """The calls of a text that is nothing but calls: on lines, in a list, in print() or assigned; else none.

    The arguments are ``{"": [positional values]}`` together with the named ones; all of them literals. To print what
    was assigned adds no call.
    """
    try:
        tree = ast.parse(text.strip()[:20_000])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[tuple[str, Any]] = []
    assigned: set[str] = set()
    for statement in tree.body:
        value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        if isinstance(statement, ast.Assign):
            assigned |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
        elif isinstance(value, ast.Call) and _prints(value, assigned):
            continue
        for node in value.elts if isinstance(value, ast.List) else [value]:
            call = _python_call(node)
            if call is None:
                return []
            found.append(call)
    return found


def _prints(node: ast.Call, assigned: set[str]) -> bool:
    is_print = isinstance(node.func, ast.Name) and node.func.id == "print" and not node.keywords
    return is_print and all(isinstance(given, ast.Name) and given.id in assigned for given in node.args)


def _python_call(node: Any) -> tuple[str, Any] | None:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and len(node.args) == 1
    ):
        node = node.args[0]
    if isinstance(node, ast.Await):
        node = node.value
    if not isinstance(node, ast.Call):
        return None
    try:
        name = ast.unparse(node.func)
        arguments: dict[str, Any] = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords if word.arg}
        given = [ast.literal_eval(value) for value in node.args]
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    if len(arguments) != len(node.keywords) or not re.fullmatch(r"[\w.]+", name):
        return None
    return name, {"": given, **arguments} if given else arguments
