"""What can go wrong, as an HTTP status, a code for programs and a sentence for people."""

from __future__ import annotations

from harnesslab.errors import BaselineMoved, ConfigError, HarnesslabError, LabLocked, StoreError
from harnesslab.store import RetryConflict

STATUS: dict[str, int] = {
    "bad_request": 400,
    "bad_ref": 400,
    "forbidden": 403,
    "not_found": 404,
    "outside_root": 404,
    "not_a_lab": 404,
    "locked": 409,
    "moved": 409,
    "conflict": 409,
    "ownership": 409,
    "newer_database": 409,
    "read_only": 409,
    "refused": 409,
    "vanished": 410,
    "corrupt": 422,
    "store": 500,
    "internal": 500,
    "deadline": 504,
}
"""The HTTP status of each code."""


class Problem(HarnesslabError):
    """An answer that is an error: a code of `STATUS` and one sentence."""

    def __init__(self, code: str, message: str):
        self.code = code
        super().__init__(message)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS[self.code]


def problem_of(error: Exception) -> Problem:
    """The problem that an error of the library is; what is not known to be harmless keeps its words to itself."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, LabLocked):
        return Problem("locked", str(error))
    if isinstance(error, BaselineMoved):
        return Problem("moved", str(error))
    if isinstance(error, RetryConflict):
        shown = "\n\n".join(f"{path}:\n{text[:2000]}" for path, text in list(error.texts.items())[:3])
        return Problem("conflict", f"{error}\n\n{shown}".strip())
    if isinstance(error, ConfigError):
        return Problem("bad_request", str(error))
    if isinstance(error, StoreError):
        return Problem(error.cause if error.cause in STATUS else "store", str(error))
    if isinstance(error, HarnesslabError):
        return Problem("refused", str(error))
    return Problem("internal", "The server met an unexpected error; its log has the details.")
