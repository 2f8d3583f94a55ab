"""Seeds that start differently, and the search that oracles use."""

from __future__ import annotations

from harnesslab.rollout.env import Split
from harnesslab_envs.planning import Search
from harnesslab_envs.seeds import PATIENCE, distinct_seeds

COUNTS: dict[Split, int] = {"search": 2, "gate": 1, "sealed": 2}


def test_seeds_with_a_start_that_was_there_are_skipped() -> None:
    assert distinct_seeds(lambda seed: seed // 3, COUNTS) == {"search": [0, 3], "gate": [6], "sealed": [9, 12]}


def test_too_few_starts_are_found_out() -> None:
    tried: list[int] = []

    def four(seed: int) -> int:
        tried.append(seed)
        return seed % 4

    assert distinct_seeds(four, COUNTS) is None
    assert len(tried) == 4 + PATIENCE


def test_the_shortest_way_around_a_pit() -> None:
    def step(place: tuple[int, int], move: tuple[int, int]) -> tuple[tuple[int, int], bool, bool]:
        after = place[0] + move[0], place[1] + move[1]
        inside = 0 <= after[0] < 3 and 0 <= after[1] < 3
        return (after if inside else place), after == (2, 0), after == (1, 0)

    moves = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    search = Search(moves, step, lambda place: place)
    plan = search.plan((0, 0))
    assert plan == [(0, 1), (1, 0), (1, 0), (0, -1)], "straight ahead is a pit"
    assert Search(moves[:1], step, lambda place: place).plan((0, 0)) is None


def test_the_search_gives_up_at_its_limit() -> None:
    looked: list[int] = []

    def step(place: int, move: int) -> tuple[int, bool, bool]:
        looked.append(place)
        return place + move, False, False

    assert Search([1], step, lambda place: place, limit=10).plan(0) is None
    assert len(looked) <= 11
