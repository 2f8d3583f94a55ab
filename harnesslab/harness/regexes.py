"""Regular expressions that cannot hang a run.

A harness file is untrusted, and so is the text that its patterns are searched in. The standard
``re`` module cannot be stopped once it backtracks, so patterns are compiled with the ``regex``
package and every search has a deadline of :data:`DEADLINE` seconds. A search that misses it raises
``TimeoutError``, which the pipeline charges to the intervention. Patterns longer than
:data:`MAX_PATTERN` characters are refused when the file is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError, core_schema

if TYPE_CHECKING:
    from regex import Match
    from regex import Pattern as Compiled

DEADLINE = 1.0
"""Seconds that one search may take; a sane pattern needs microseconds."""
MAX_PATTERN = 2000
"""Characters that a pattern may have."""


class Regex:
    """A compiled pattern with a deadline on each use. Case matters unless the pattern starts with ``(?i)``.

    Raises ValueError for a pattern that does not compile. Usable as a pydantic field type: the
    file holds the pattern as a string.
    """

    __slots__ = ("_compiled", "pattern")

    def __init__(self, pattern: str) -> None:
        import regex

        if len(pattern) > MAX_PATTERN:
            raise ValueError(f"the pattern has {len(pattern)} characters; at most {MAX_PATTERN} are allowed")
        try:
            self._compiled: Compiled[str] = regex.compile(pattern)
        except (regex.error, OverflowError, RecursionError) as error:
            raise ValueError(f"bad regex {pattern[:80]!r}: {error}") from error
        self.pattern = pattern

    @property
    def groups(self) -> int:
        """Number of capturing groups."""
        return int(self._compiled.groups)

    def search(self, text: str) -> Match[str] | None:
        """First match anywhere in ``text``."""
        return self._compiled.search(text, timeout=DEADLINE)

    def fullmatch(self, text: str) -> Match[str] | None:
        """A match of the whole of ``text``."""
        return self._compiled.fullmatch(text, timeout=DEADLINE)

    def finditer(self, text: str) -> Iterator[Match[str]]:
        """Every match, left to right; the deadline covers them all."""
        yield from self._compiled.finditer(text, timeout=DEADLINE)

    def sub(self, replacement: str, text: str, count: int = 0) -> str:
        """Replace matches; ``replacement`` may use ``\\1`` and ``\\g<name>``. ``count`` 0 replaces all."""
        return str(self._compiled.sub(replacement, text, count=count, timeout=DEADLINE))

    def check_replacement(self, replacement: str) -> str:
        """Why ``replacement`` cannot be used with this pattern; an empty string if it can."""
        import regex

        try:
            # With an empty alternative the pattern matches the empty string, so that the replacement is expanded.
            regex.compile(f"{self.pattern}|").sub(replacement, "", timeout=DEADLINE)
        except (regex.error, IndexError, TimeoutError) as error:
            return f"bad replacement {replacement[:80]!r}: {error}"
        return ""

    def fitting(self, replacement: str) -> str:
        """``replacement``, for validators of pydantic. Raises PydanticCustomError where it does not fit this pattern."""
        if problem := self.check_replacement(replacement):
            raise PydanticCustomError("regex", "{reason}", {"reason": problem})
        return replacement

    def extract(self, text: str) -> list[str]:
        """The first group that took part in each match, or the whole match where there is no group."""
        return [next((g for g in m.groups() if g is not None), m.group()) for m in self.finditer(text)]

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Regex) and other.pattern == self.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    @classmethod
    def _validate(cls, value: str) -> Regex:
        try:
            return cls(value)
        except ValueError as error:
            raise PydanticCustomError("regex", "{reason}", {"reason": str(error)}) from error

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Read from a string, written as a string."""
        from_text = core_schema.no_info_after_validator_function(cls._validate, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), from_text]),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda value: value.pattern),
        )
