"""Settings of a training: as keyword, as mapping, or from ``config/train_harness.yaml``."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator

from harnesslab.errors import ConfigError
from harnesslab.labfolder import looks_like_lab
from harnesslab.rollout.env import Split
from harnesslab.rollout.episode import REPLY_SECONDS
from harnesslab.rollout.process.folder import is_path
from harnesslab.rollout.registry import is_installed

if TYPE_CHECKING:
    from harnesslab.lab import Lab
    from harnesslab.llm.types import Backbone


class Settings(BaseModel):
    """How much is measured. Counts are tasks unless stated otherwise; ``None`` means the whole split."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    search: int | None = Field(None, ge=1, description="tasks of the search split to play for proposals")
    gate: int | None = Field(None, ge=1, description="tasks of the gate split to play for each decision")
    sealed: int | None = Field(None, ge=1, description="tasks of the sealed split to play at an opening")
    families: tuple[str, ...] | None = Field(None, description="only tasks of these families")
    fresh_gate: bool = Field(
        False, description="after each promotion, decide on gate tasks that were not used yet, as far as there are any"
    )
    repeats: int = Field(1, ge=1, description="episodes per task")
    budget: int | None = Field(None, ge=1, description="steps per episode; the environment's own limit by default")
    workers: int | None = Field(None, ge=1, description="episodes at a time; the backbone's own limit by default")
    seed: int = Field(0, description="seed of sampled replies")
    leave_out: tuple[str, ...] = Field((), description="ids of tasks to leave out")
    tolerance: int | float = Field(
        0.5, ge=0, description="unscorable episodes allowed in a run: a number (2), or a share of the panel (0.1)"
    )
    deadline: float | None = Field(
        None, gt=0, description="seconds for one call of the environment; the environment's own by default"
    )
    reply_deadline: float = Field(
        REPLY_SECONDS, gt=0, description="seconds for one reply of the backbone, retries included"
    )
    proposer_deadline: float = Field(1800.0, gt=0, description="seconds that the estimator may take for its proposals")
    max_calls: int | None = Field(None, ge=1, description="the lab's call budget, over all its trainings")
    max_tokens: int | None = Field(None, ge=1, description="the lab's token budget")
    max_seconds: float | None = Field(None, gt=0, description="the lab's time budget: seconds that calls take")
    max_money: float | None = Field(None, gt=0, description="the lab's cost budget, in the currency of `prices`")
    prices: dict[str, tuple[float, float]] = Field(
        default_factory=dict, description="model: [price of a million prompt tokens, of a million completion tokens]"
    )
    progress: bool = Field(True, description="show progress bars")

    @field_validator("tolerance", mode="before")
    @classmethod
    def _share(cls, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise ValueError("give a number of episodes (2) or a share of the panel (0.1)")
        if isinstance(value, float) and value > 1:
            raise ValueError("a share is at most 1.0; write a number of episodes as a whole number")
        return value

    @field_validator("leave_out", mode="before")
    @classmethod
    def _ids(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    def limit(self, split: Split) -> int | None:
        """How many tasks of a split are played; ``None`` for all."""
        return {"search": self.search, "gate": self.gate, "sealed": self.sealed}[split]


class Model(BaseModel):
    """A backbone: ``local`` with the options of ``LLM.local``, or ``model`` with those of ``LLM``."""

    model_config = ConfigDict(extra="forbid")

    local: str | None = None
    model: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one(self) -> Model:
        if (self.local is None) == (self.model is None):
            raise ValueError("give either 'local', the name or path of a local model, or 'model', the name at a server")
        return self


class TrainFile(BaseModel):
    """The whole of a training's file. Its paths are relative to its folder."""

    model_config = ConfigDict(extra="forbid")

    _file: Path = PrivateAttr(default_factory=lambda: Path("settings").resolve())

    format: Literal[1] = 1
    lab: str | None = None
    env: str | None = None
    llm: Model | None = None
    estimator: str | None = None
    settings: Settings = Settings()


def read_config(path: str | Path) -> TrainFile:
    """Read and check a training's file. Raises ConfigError, naming file and key."""
    file = Path(path).expanduser()
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file} is not valid YAML: {' '.join(str(error).split())}") from error
    try:
        found = TrainFile.model_validate(data or {})
    except ValidationError as error:
        raise ConfigError(f"{file}: {explain(error)}") from error
    found._file = file.resolve()
    return found


def make_settings(given: Settings | dict[str, Any] | None, base: Settings) -> Settings:
    """The settings of the file, with those that were given in code put over them. Raises ConfigError."""
    if isinstance(given, Settings):
        return given
    try:
        return Settings.model_validate({**base.model_dump(exclude_unset=True), **(given or {})})
    except ValidationError as error:
        raise ConfigError(f"settings: {explain(error)}") from error


def open_lab(config: TrainFile, *, trust: bool = False, unconfined: bool = False) -> Lab:
    """The lab that the file names; a new one is created when it is first used.

    ``trust`` and ``unconfined``: as for Lab.open. Raises ConfigError; among others, for a file that came with a lab and names code to run.
    """
    from harnesslab.lab import Lab

    if config.lab is None:
        raise ConfigError("no lab: pass lab=..., or name one in the configuration file")
    lab, env = _path(config, config.lab), config.env
    if env is not None and is_path(env):
        env = str(_path(config, env))
    foreign = None if trust else _lab_of(config)
    if env is not None and foreign is not None and not is_installed(env, outside=foreign):
        raise ConfigError(
            f"{config._file}, key 'env': this file is part of the lab {foreign}, and {env[:200]!r} is not an installed "
            f"environment, so loading it would run the lab's code: pass lab=hl.Lab.open({str(lab)!r}, env={env[:200]!r}) if you trust it, "
            "or use harnesslab train --trust"
        )
    if foreign is not None and not lab.is_relative_to(foreign):
        raise _untrusted(config, foreign, "lab", f"{str(lab)[:200]!r} is outside of it")
    return Lab.prepare(lab, env=env, trust=trust, unconfined=unconfined)


def open_llm(config: TrainFile, *, trust: bool = False) -> Backbone:
    """The backbone that the file names.

    A file that came with a lab may be somebody else's: without ``trust`` it sends no key of the user's to where it says, and
    has nothing recorded outside of the lab. Raises ConfigError.
    """
    from harnesslab.llm import LLM, Connection

    if config.llm is None:
        raise ConfigError("no backbone: pass llm=..., or name one in the configuration file")
    options = dict(config.llm.options)
    foreign = None if trust else _lab_of(config)
    variable = options.pop("api_key_env", None)
    if variable is not None:
        if foreign is not None:
            raise _untrusted(
                config,
                foreign,
                "llm.options.api_key_env",
                f"the value of {str(variable)[:60]!r} would be sent to where it says",
            )
        if not isinstance(variable, str) or not os.environ.get(variable):
            raise ConfigError(f"llm.options.api_key_env: the environment variable {variable!r} is not set")
        options["api_key"] = os.environ[variable]
    if isinstance(options.get("cache"), str):
        cache = _path(config, options["cache"])
        if foreign is not None and not cache.is_relative_to(foreign):
            raise _untrusted(config, foreign, "llm.options.cache", f"{str(cache)[:200]!r} is outside of it")
        options["cache"] = str(cache)
    try:
        if config.llm.model is None:
            local = str(config.llm.local)
            return LLM.local(str(_path(config, local)) if local.endswith(".gguf") else local, **options)
        if isinstance(options.get("connection"), dict):
            options["connection"] = Connection(**options["connection"])
        return LLM(config.llm.model, **options)
    except TypeError as error:
        raise ConfigError(f"llm.options: {error}") from error


def _lab_of(config: TrainFile) -> Path | None:
    """The lab that the file came with, so that somebody else may have written it."""
    return next((folder for folder in config._file.parents if looks_like_lab(folder)), None)


def _untrusted(config: TrainFile, lab: Path, key: str, why: str) -> ConfigError:
    return ConfigError(
        f"{config._file}, key '{key}': this file is part of the lab {lab}, and {why}: pass lab=... and llm=... to Trainer, copy the "
        "file out of the lab, or use harnesslab train --trust"
    )


def _path(config: TrainFile, path: str) -> Path:
    try:
        return (config._file.parent / Path(path).expanduser()).resolve()
    except (RuntimeError, ValueError, OSError) as error:  # the home of nobody, a loop of links, a null byte
        raise ConfigError(f"{config._file}: {path!r} is not a usable path: {error}") from error


def explain(error: ValidationError) -> str:
    """The first thing that is wrong, as key and reason."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"]) or "the file"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message = "unknown key"
        known = [*TrainFile.model_fields, *Settings.model_fields, *Model.model_fields]
        if close := difflib.get_close_matches(str(first["loc"][-1]), known, n=1):
            message += f"; did you mean '{close[0]}'?"
    return f"key '{key}': {message}"
