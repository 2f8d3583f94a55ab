"""Finds environments: by name among the entry points of the group ``harnesslab.envs`` and the folders of
``harnesslab_envs``, by the path of a folder, or by import path.

An entry point names a callable that returns an :class:`~harnesslab.rollout.env.Environment`. Its options
are the environment's own, for example ``load_environment("my-env", data="/my/folder")``.
"""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from harnesslab.errors import ConfigError, EnvironmentUnavailable, HarnesslabError
from harnesslab.rollout.env import Environment
from harnesslab.rollout.nullsolved import without_null_solved
from harnesslab.rollout.options import check_options
from harnesslab.rollout.process.folder import find_folder, folder_names, is_path
from harnesslab.rollout.process.load import load_folder

GROUP = "harnesslab.envs"
_METHODS = ("tasks", "make", "starter")
_TEXTS = ("name", "version")


def environments() -> dict[str, EntryPoint]:
    """The environments that are installed, by name. Nothing is imported."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def load_environment(
    environment: str | Environment, *, process: bool | None = None, null_solved: bool = False, **options: Any
) -> Environment:
    """The environment of that name, made with ``options``.

    ``environment`` is an installed name, the path of a folder with an env.toml (with a slash in it), an import path
    ``"package.module:callable"``, or an Environment, which is returned as it is. ``process`` says for folders whether
    a process of its own is wanted; see :func:`~harnesslab.rollout.process.load.load_folder`. Tasks that ``harnesslab envs
    check`` found to be solved by the null agent are left out unless ``null_solved`` asks for them. Raises
    EnvironmentUnavailable where it is not there or cannot be loaded, and ConfigError where it has no such option.
    """
    if not isinstance(environment, str):
        if options:
            raise ConfigError(f"Options ({', '.join(options)}) go with a name, not with a ready environment object.")
        return _checked(environment, type(environment).__name__)
    made = _made(environment, process, options)
    return made if null_solved else without_null_solved(made)


def _made(environment: str, process: bool | None, options: dict[str, Any]) -> Environment:
    if ":" not in environment and environment not in environments():
        folder = find_folder(environment)
        if folder is not None:
            return _checked(load_folder(folder, options, process), environment)
    factory = _import_path(environment) if ":" in environment else _entry_point(environment)
    if not callable(factory):
        raise EnvironmentUnavailable(f"The environment '{environment}' is not a callable that makes one.")
    check_options(environment, factory, options)
    try:
        made = factory(**options)
    except HarnesslabError:
        raise
    except Exception as error:
        raise EnvironmentUnavailable(
            f"The environment '{environment}' could not be created: {type(error).__name__}: {error}"
        ) from error
    return _checked(made, environment)


def lasting_name(name: str) -> str:
    """The name under which the same environment is found from any working folder: a folder's path is made whole."""
    return str(Path(name).expanduser().resolve()) if is_path(name) else name


def is_installed(name: str, *, outside: Path) -> bool:
    """Whether ``name`` means something that was installed, and not code below the folder ``outside``.

    An import path or a folder's path is never installed: it can name anything. Nothing is imported.
    """
    if ":" in name or is_path(name):
        return False
    point = environments().get(name)
    if point is None:
        folder = find_folder(name)
        # A name that means nothing runs nothing either: `load_environment` says what there is.
        return folder is None or not folder.path.is_relative_to(outside)
    # A Python that was started in a foreign folder also finds the packages that lie there.
    return point.dist is None or not Path(str(point.dist.locate_file(""))).resolve().is_relative_to(outside)


def _entry_point(name: str) -> Any:
    known = environments()
    if name not in known:
        raise EnvironmentUnavailable(_unknown(name, sorted({*known, *folder_names()})))
    point = known[name]
    try:
        return point.load()
    except Exception as error:
        package = point.dist.name if point.dist else point.value
        raise EnvironmentUnavailable(
            f"The environment '{name}' of the package '{package}' cannot be loaded: {type(error).__name__}: {error}. "
            "Install what it needs; its README says what."
        ) from error


def _import_path(path: str) -> Any:
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise EnvironmentUnavailable(
            f"The environment '{path}' cannot be imported: {type(error).__name__}: {error}. "
            "An import path has the form 'package.module:callable'."
        ) from error


def _unknown(name: str, known: list[str]) -> str:
    from rapidfuzz import process

    close = process.extractOne(name.lower(), known, score_cutoff=60)
    suggestion = f" Did you mean '{close[0]}'?" if close else ""
    there = ", ".join(known) or "none"
    return (
        f"There is no environment {name[:100]!r}.{suggestion} Installed are: {there}. For another one, install its package "
        f"(entry point group '{GROUP}'), or give a folder's path, './name', or an import path, 'package.module:callable'."
    )


def _checked(environment: Any, name: str) -> Environment:
    missing = [method for method in _METHODS if not callable(getattr(environment, method, None))]
    if missing:
        raise EnvironmentUnavailable(
            f"'{name}' returned a {type(environment).__name__}, which is not an Environment: it has no {', '.join(missing)}."
        )
    for text in _TEXTS:
        if not isinstance(getattr(type(environment), text, None) or getattr(environment, text, None), str | property):
            raise EnvironmentUnavailable(f"'{name}' returned a {type(environment).__name__} whose {text} is not text.")
    result: Environment = environment
    return result
