"""Fixtures that all tests share. No test may see the user's git identity, models or data by accident."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from tests.fileserver import Server, serving
from tests.worlds import CorridorWorld

# pytest-xdist sets it in its workers; tables would then be as narrow as a terminal that nobody sees.
os.environ.pop("COLUMNS", None)

SLOW = (
    "analysis/test_frames.py",
    "analysis/test_plots.py",
    "analysis/test_report.py",
    "bridges",
    "browser",
    "envs",
    "envtools",
    "harness/confined",
    "harness/test_reply_formats.py::test_a_hostile_reply_is_read_soon",
    "ledger/test_acts.py",
    "ledger/test_model.py",
    "llm/test_aside.py",
    "llm/test_client.py",
    "llm/test_hostile_endpoints.py",
    "llm/test_local.py",
    "llm/test_record.py",
    "packaging",
    "panels",
    "public/test_plugins.py",
    "public/test_names.py::test_a_users_script_is_strictly_typed",
    "rollout/process",
    "rollout/test_agent.py",
    "rollout/test_owners.py",
    "rollout/test_remote.py",
    "rollout/test_splits.py::test_ten_thousand_tasks_take_seconds",
    "server",
    "store/test_crash.py",
    "store/test_edits.py",
    "store/test_index.py",
    "store/test_links_out.py",
    "store/test_locks_of_git.py",
    "store/test_looking.py",
    "store/test_model.py",
    "store/test_repo.py",
    "store/test_runs.py",
    "test_benchmark_environments.py",
    "test_binder.py",
    "test_checkout.py",
    "test_data.py",
    "test_export.py",
    "test_extras.py",
    "test_foreign_lab.py",
    "test_labfolder.py",
    "test_opening.py",
    "test_openings.py",
    "test_plants.py",
    "test_testing.py",
    "test_testing_tasks.py",
    "trainer/test_ablate.py",
    "trainer/test_anytime.py",
    "trainer/test_callbacks.py",
    "trainer/test_controls.py",
    "trainer/test_endpoint_failures.py",
    "trainer/test_killed.py",
    "trainer/test_lucky.py",
    "trainer/test_mining_end_to_end.py",
    "trainer/test_mining_estimator.py",
    "trainer/test_optimizer.py",
    "trainer/test_owners.py",
    "trainer/test_plan.py",
    "trainer/test_plugins.py",
    "trainer/test_queue.py",
    "trainer/test_probe.py",
    "trainer/test_readers_line.py",
    "trainer/test_repeats.py",
    "trainer/test_screening.py",
    "trainer/test_sealed_floors.py",
    "trainer/test_shared_budget.py",
    "trainer/test_transfer.py",
)
"""What `make quick` leaves out: folders, modules and tests that take seconds each."""


EXAMPLES = 3
"""Examples of one parametrised test that `make quick` runs, spread over all of them; `make test` runs every one."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the modules that `make quick` leaves out."""
    here = Path(__file__).parent
    quick = config.getoption("markexpr") == "not slow" and collection_path.is_relative_to(here)
    return True if quick and collection_path.relative_to(here).as_posix() in SLOW else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in `SLOW`, and the examples that `make quick` leaves out."""
    here = Path(__file__).parent
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for examples in tests.values():
        chosen = {round(place * (len(examples) - 1) / (EXAMPLES - 1)) for place in range(EXAMPLES)}
        for place, item in enumerate(examples):
            if place not in chosen:
                item.add_marker(pytest.mark.slow)
    for item in items:
        if not item.path.is_relative_to(here):
            continue
        name = f"{item.path.relative_to(here).as_posix()}::{item.name.partition('[')[0]}"
        if any(name == slow or name.startswith((f"{slow}/", f"{slow}::")) for slow in SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def open_lab(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens labs for the corridor (or another environment) under the test's own folder, and closes them after it."""
    opened: list[Any] = []

    def open_(name: str = "lab", env: Any = None, **options: Any) -> Any:
        opened.append(hl.Lab.open(tmp_path / name, env=env if env is not None else CorridorWorld(), **options))
        return opened[-1]

    yield open_
    for lab in opened:
        lab.close()


def always(action: str) -> Any:
    """A scripted backbone that does the same thing in every step."""
    return hl.LLM.scripted(lambda messages: f"Action: {action}", name=f"always {action}")


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of a few files on this machine, which misbehaves on request."""
    with serving() as running:
        yield running
