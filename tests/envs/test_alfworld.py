"""ALFWorld: finding games, splits, and an episode where its packages and games are there."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from harnesslab.errors import EnvironmentFault, EnvironmentUnavailable
from harnesslab.rollout.process.folder import find_folder
from harnesslab.rollout.process.load import how
from harnesslab.rollout.registry import load_environment
from harnesslab_envs.alfworld.env import environment
from harnesslab_envs.alfworld.games import find_games, parse
from harnesslab_envs.mixing import mixed

NAMES = (
    "train/look_at_obj_in_light-A-None-B-1/trial_1/game.tw-pddl",
    "train/pick_and_place_simple-A-None-B-2/trial_2/game.tw-pddl",
    "train/pick_and_place_with_movable_recep-A-None-B-2/trial_2/game.tw-pddl",
    "valid_seen/pick_two_obj_and_place-A-None-B-3/trial_3/game.tw-pddl",
    "valid_unseen/pick_heat_then_place_in_recep-A-None-B-4/trial_4/game.tw-pddl",
)


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same games as a zip (with a folder before their names) and as a tar, beside a file that is none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with zipfile.ZipFile(tmp_path / "games.zip", "w") as archive:
        for name in NAMES:
            archive.writestr(f"json_2.1.1/{name}", f'"{name}"')
        archive.writestr("json_2.1.1/train/readme.txt", "x")
    with tarfile.open(tmp_path / "games.tar.xz", "w:xz") as tar:
        for name in (*NAMES, "../x/../../game.tw-pddl"):
            member = tarfile.TarInfo(name)
            member.size = len(name) + 2
            tar.addfile(member, io.BytesIO(f'"{name}"'.encode()))
    return tmp_path


@pytest.mark.parametrize("kind", ["games.zip", "games.tar.xz"])
def test_games_are_found_in_archives(archives: Path, kind: str) -> None:
    for _ in range(2):
        games = find_games(str(archives / kind))
        assert games.names == NAMES
        assert games.read(NAMES[0]).decode() == f'"{NAMES[0]}"'
    assert not list((archives / "cache").rglob(".unpack-*"))
    assert not (archives / "game.tw-pddl").exists()


def test_games_are_found_in_the_data_folder(archives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESSLAB_DATA", str(archives / "data"))
    with pytest.raises(EnvironmentUnavailable, match="harnesslab data get alfworld"):
        find_games()
    for name in NAMES[:2]:
        file = archives / "data" / "alfworld" / "json_2.1.1" / name
        file.parent.mkdir(parents=True)
        file.write_text("{}", "utf-8")
    assert find_games().names == NAMES[:2]


def test_a_broken_archive_is_told(tmp_path: Path) -> None:
    (tmp_path / "games.zip").write_bytes(b"no zip")
    with pytest.raises(EnvironmentUnavailable, match=r"games\.zip cannot be read"):
        find_games(str(tmp_path / "games.zip"))


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"grammar": ""}'])
def test_a_wrong_game_is_told(content: bytes) -> None:
    with pytest.raises(EnvironmentFault, match="the-game"):
        parse(content, "the-game")


def test_an_unsolvable_game_is_told() -> None:
    game = {"pddl_domain": "", "pddl_problem": "", "grammar": "", "solvable": False}
    with pytest.raises(EnvironmentFault, match="not solvable"):
        parse(json.dumps(game).encode(), "g")


def test_published_splits_do_not_mix(archives: Path) -> None:
    environ = environment(str(archives / "games.zip"))
    assert {task.options["game"].split("/")[0] for task in environ.tasks("search")} == {"train"}
    assert [task.family for task in environ.tasks("gate")] == ["pick_two_obj_and_place"]
    assert [task.family for task in environ.tasks("sealed")] == ["pick_heat_then_place_in_recep"]
    # A type that is not among the six is left out.
    assert len(environ.tasks("search")) == 2


def test_mixed_holds_each_family_in_its_share() -> None:
    items = [f"a{n}" for n in range(20)] + [f"b{n}" for n in range(10)]
    chosen = mixed(items, lambda item: item[0], lambda item: item)
    assert sorted(chosen) == sorted(items)
    assert [item[0] for item in chosen[:6]].count("b") == 2
    assert mixed(reversed(items), lambda item: item[0], lambda item: item) == chosen


@pytest.fixture
def official() -> Any:
    """The environment over the official games, in processes of its own."""
    folder = find_folder("alfworld")
    games = Path(os.environ.get("HARNESSLAB_ALFWORLD_GAMES") or "absent")
    if folder is None or not how(folder):
        pytest.skip("alfworld is not installed: harnesslab envs install alfworld")
    if not games.exists():
        pytest.skip("the official games are not here: HARNESSLAB_ALFWORLD_GAMES names none")
    return load_environment("alfworld", games=str(games.resolve()))


def test_a_game_leaves_no_library_behind(official: Any) -> None:
    task = official.tasks("sealed")[1]
    env = official.make()
    for _ in range(2):
        env.reset(seed=task.seed, options=task.options)
    libraries = {
        line.split(maxsplit=5)[5]
        for pid in map(
            int, (Path("/proc") / str(os.getpid()) / "task" / str(os.getpid()) / "children").read_text().split()
        )
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines()
        if "libdownward" in line
    }
    env.close()
    assert len(libraries) == 1


def test_an_episode_by_the_walkthrough(official: Any) -> None:
    environ = official
    task = next(task for task in environ.tasks("sealed") if task.family == "pick_and_place_simple")
    env, policy = environ.make(), environ.oracle(task)
    try:
        observation, info = env.reset(seed=task.seed, options=task.options)
        assert observation.startswith("You are in the middle of a room.") and "Your task" not in observation
        assert info["public"]["instruction"].startswith("put ")
        start = observation, info
        nothing, _, _, _, info = env.step("fly to the moon")
        assert (nothing, info["public"]["invalid"]) == ("Nothing happens.", True)
        assert info["public"]["admissible"] == start[1]["public"]["admissible"]
        observation = start[0]
        for _ in range(environ.max_steps):
            action = policy(observation, info)
            assert action in info["public"]["admissible"]
            observation, reward, terminated, _, info = env.step(action)
            if terminated:
                break
        assert (reward, info["private"]["solved"]) == (1.0, True)
    finally:
        env.close()
