"""Environments by name, by import path, and every way in which one is not there."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from harnesslab.errors import ConfigError, EnvironmentUnavailable
from harnesslab.rollout import registry
from harnesslab.rollout.registry import environments, load_environment


class Tiny:
    """As little as the registry asks for."""

    name, version, max_steps = "tiny", "1", 1

    def __init__(self, size: int = 1):
        self.size = size

    def tasks(self, split: str) -> list[Any]:
        return []

    def make(self) -> Any:
        raise NotImplementedError

    def oracle(self, task: Any) -> Any:
        raise NotImplementedError

    def starter(self) -> Path:
        return Path()


not_callable = 7


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points as if a few packages were installed."""
    found = {
        "tiny": f"{__name__}:Tiny",
        "kitchen": f"{__name__}:Tiny",
        "broken": "no_such_module_of_ours:environment",
        "empty": f"{__name__}:Path",
    }
    made = tuple(EntryPoint(name, value, registry.GROUP) for name, value in found.items())
    monkeypatch.setattr(registry, "entry_points", lambda group: made if group == registry.GROUP else ())
    monkeypatch.setattr(registry, "folder_names", lambda: [])


def test_the_installed_ones_are_found() -> None:
    assert {"dbbench", "tables"} <= set(environments())


@pytest.mark.usefixtures("points")
def test_by_name_with_options() -> None:
    assert list(environments()) == ["broken", "empty", "kitchen", "tiny"]
    tiny: Any = load_environment("tiny", size=3)
    assert isinstance(tiny, Tiny) and tiny.size == 3


def test_by_import_path() -> None:
    assert load_environment(f"{__name__}:Tiny").name == "tiny"


def test_an_object_is_returned_as_it_is() -> None:
    tiny = Tiny()
    assert load_environment(tiny) is tiny


@pytest.mark.usefixtures("points")
@pytest.mark.parametrize(
    "name, words",
    [
        ("kitchn", "Did you mean 'kitchen'.*Installed are: broken, empty, kitchen, tiny"),
        ("KITCHEN", "Did you mean 'kitchen'"),
        ("zzzzzzzz", r"There is no environment 'zzzzzzzz'\. Installed are"),
        ("broken", "'broken' of the package .*cannot be loaded: ModuleNotFoundError: .*no_such_module_of_ours"),
        ("empty", "not an Environment: it has no tasks, make, starter"),
        ("no_such_module_of_ours:x", "cannot be imported: ModuleNotFoundError.*package.module:callable"),
        (f"{__name__}:nothing", "cannot be imported: AttributeError"),
        (f"{__name__}:not_callable", "is not a callable"),
        (":", "cannot be imported"),
    ],
)
def test_what_is_not_there_is_one_clear_sentence(name: str, words: str) -> None:
    with pytest.raises(EnvironmentUnavailable, match=words):
        load_environment(name)


def test_nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: ())
    monkeypatch.setattr(registry, "folder_names", lambda: [])
    with pytest.raises(EnvironmentUnavailable, match="Installed are: none"):
        load_environment("kitchen")


@pytest.mark.usefixtures("points")
def test_wrong_options() -> None:
    with pytest.raises(ConfigError, match=r"'tiny' does not take these options: .*'colour'.* Its options: size"):
        load_environment("tiny", colour="red")
    with pytest.raises(ConfigError, match=r"size.* go with a name"):
        load_environment(Tiny(), size=2)
    with pytest.raises(EnvironmentUnavailable, match="a object, which is not an Environment"):
        load_environment(object())  # type: ignore[arg-type]
