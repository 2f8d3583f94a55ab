"""Published files: fetched by pooch, checked by size and SHA-256, and in their place only when they are whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harnesslab.plaintext import clip

if TYPE_CHECKING:
    import requests

CHUNK = 1 << 16
ATTEMPTS = 3
TIMEOUT_S = 30.0
"""For connecting and for each read, not for the whole download."""

Fetch = Callable[[str, str, object], object]
"""Writes what a URL names to a path; the third argument is pooch's and not used."""


class Bar(Protocol):
    """What of a tqdm bar is used."""

    def update(self, n: float) -> Any:
        """Count ``n`` more bytes, or fewer."""


class DownloadFailed(Exception):
    """A source has no usable file. The message names the source and says what it gave."""


def fetch(url: str, target: Path, *, size: int, sha256: str, bar: Bar | None = None, by: Fetch | None = None) -> None:
    """Bring the file of ``size`` bytes with the SHA-256 digest ``sha256`` to ``target``; a whole one stays as it is.

    A lost connection and a fault of the server are tried again. ``by`` fetches in another way than over HTTP. Raises
    DownloadFailed, and OSError where nothing can be written; ``target`` is then as it was before.
    """
    import requests
    from pooch import HTTPDownloader, get_logger, retrieve
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

    def passes(error: BaseException) -> bool:
        if isinstance(error, requests.HTTPError):
            return _status(error) >= 500 or _status(error) == 429
        return isinstance(error, requests.ConnectionError | requests.Timeout | requests.exceptions.ChunkedEncodingError)

    def checked(url: str, file: str, pooch: object) -> None:
        count = _Count(size, bar)
        try:
            (by or HTTPDownloader(count, CHUNK, timeout=TIMEOUT_S))(url, file, pooch)
        except BaseException:
            count.show(0)
            raise
        count.close()
        found = Path(file).stat().st_size
        if found != size:
            raise DownloadFailed(f"{url} gave {f'{found} of' if found < size else 'more than'} {size} bytes")
        Path(file).chmod(0o644)  # temporary files are made for their owner alone

    get_logger().setLevel("WARNING")  # it would print a line for each file
    retrying = Retrying(
        retry=retry_if_exception(passes),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=0.2, max=5),
        reraise=True,
    )
    try:
        retrying(retrieve, url, f"sha256:{sha256}", target.name, target.parent, downloader=checked)
    except requests.HTTPError as error:
        raise DownloadFailed(f"{url} answered {_status(error)}") from error
    except requests.RequestException as error:
        raise DownloadFailed(f"{url} could not be read: {clip(str(_root(error)), 200)}") from error
    except EOFError as error:
        raise DownloadFailed(f"{url} gave more than {size} bytes") from error
    except ValueError as error:
        raise DownloadFailed(f"{url} has another SHA-256 than {sha256}: it is not the published file") from error


def is_whole(path: Path, *, size: int, sha256: str) -> bool:
    """Whether ``path`` is the published file."""
    return path.is_file() and path.stat().st_size == size and file_digest(path) == sha256


def file_digest(path: Path) -> str:
    """SHA-256 of a file, computed once for each (path, size, time of change) in a process."""
    status = path.stat()
    return _digest_once(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=256)
def _digest_once(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _Count:
    """Counts one file on a bar that many share, and ends a download that is longer than it should be."""

    def __init__(self, size: int, bar: Bar | None):
        self.size, self.bar, self.seen, self.shown, self.total = size, bar, 0, 0, 0

    def update(self, n: int) -> None:
        self.seen += n
        if self.seen - CHUNK > self.size:
            raise EOFError
        self.show(min(self.seen, self.size))

    def show(self, seen: int) -> None:
        if self.bar is not None:
            self.bar.update(seen - self.shown)
        self.shown = seen

    def reset(self) -> None:
        """Pooch begins again at the end, to count whole blocks right."""
        self.seen = 0

    def close(self) -> None:
        self.show(self.size)


def _status(error: requests.HTTPError) -> int:
    return error.response.status_code if error.response is not None else 0


def _root(error: BaseException) -> BaseException:
    """The first cause: requests wraps it in three more, whose words name objects."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error
