"""What comes with an extra of the package, and the sentence where that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from harnesslab.errors import ExtraMissing

Extra = Literal["lab", "local", "dask", "serve", "inspect"]


@contextmanager
def comes_with(name: Extra) -> Iterator[None]:
    """Around imports of packages that come with an extra. Raises ExtraMissing, which says how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "harnesslab"):
            raise
        raise ExtraMissing(missing, name) from error
