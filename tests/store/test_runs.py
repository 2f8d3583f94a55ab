"""The run store: what goes in comes out, also when the disk, a lock or a kill gets in the way."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.errors import StoreError
from harnesslab.store import EPISODE_FIELDS, RunStore, identity_hash
from harnesslab.store.codec import pack, to_json, unpack

TRACE = [{"observation": "Küche", "reply": "go", "reward": 0.5, "fired": ["a"]}, {"reply": "\ud800"}]


@pytest.fixture
def store(folder: Path) -> Any:
    records = RunStore.open(folder)
    yield records
    records.close()


def test_a_run_and_its_episodes(store: RunStore) -> None:
    run = store.begin_run("c0", {"env": "kitchen", "n": 2}, split="search", backbone="smol", meta={"a": 1})
    summary = {
        "task_id": "t1",
        "family": "heat",
        "seed": 7,
        "solved": True,
        "reward": 1.0,
        "steps": 2,
        "fired": {"snap": 2},
    }
    episode = store.add_episode(run, {**summary, "colour": "blue"}, TRACE)
    assert episode is not None and store.trace(episode) == TRACE
    (row,) = store.episodes(run)
    assert row["solved"] is True and row["fired"] == {"snap": 2} and row["extra"] == {"colour": "blue"}
    assert set(row) == {"id", "run_id", *EPISODE_FIELDS} and row["progress"] is None
    frame = pd.DataFrame(store.episode_columns(run))
    assert frame.shape == (1, len(EPISODE_FIELDS) + 2) and frame["solved"].dtype == bool
    store.finish_run(run, meta={"b": 2})
    found = store.find_run("c0", identity_hash({"n": 2, "env": "kitchen"}), split="search")
    assert found is not None and found["id"] == run and found["status"] == "done" and found["meta"] == {"a": 1, "b": 2}
    assert store.find_run("c0", "other") is None and store.run(run)["identity"] == {"env": "kitchen", "n": 2}
    assert store.done(run) == {("t1", 0, 7)}


def test_the_same_episode_replaces_itself(store: RunStore) -> None:
    run = store.begin_run("c0", {}, split="gate")
    store.add_episode(run, {"task_id": "t", "solved": False}, [{"a": 1}])
    store.add_episode(run, {"task_id": "t", "solved": True}, [{"a": 2}])
    (row,) = store.episodes(run)
    assert row["solved"] is True and store.trace(row["id"]) == [{"a": 2}]
    assert store._db.execute("SELECT count(*) FROM traces").fetchone() == (1,)


def test_nan_never_reaches_the_records(store: RunStore) -> None:
    run = store.begin_run("c0", {}, split="gate", meta={"x": float("nan")})
    episode = store.add_episode(
        run, {"task_id": "t", "reward": float("inf"), "extra": {"x": float("nan")}}, [{"r": float("-inf")}]
    )
    assert store.episodes(run)[0]["reward"] is None and store.episodes(run)[0]["extra"] == {"x": None}
    assert store.trace(episode or 0) == [{"r": None}] and store.run(run)["meta"] == {"x": None}


def test_an_empty_run_has_all_columns(store: RunStore) -> None:
    columns = store.episode_columns(store.begin_run("c", {}, split="gate"))
    assert set(columns) == {"id", "run_id", *EPISODE_FIELDS} and not any(columns.values())


def test_what_is_not_there(store: RunStore) -> None:
    for call in (
        lambda: store.run("x"),
        lambda: store.trace(1),
        lambda: store.finish_run("x"),
        lambda: store.runs(colour="x"),
    ):
        with pytest.raises(StoreError):
            call()
    with pytest.raises(StoreError, match="64 bits"):
        store.add_episode("x", {"seed": 2**70}, [])


def test_events_journal_progress(store: RunStore) -> None:
    store.add_event("sealed", {"who": "me"})
    store.add_event("decision", {"id": 1})
    assert [event["kind"] for event in store.events()] == ["decision", "sealed"]
    assert store.events("sealed")[0]["data"] == {"who": "me"}
    store.journal_put(3, "baseline", "run1")
    store.journal_put(3, "baseline", {"run": 2})
    assert store.journal_get(3, "baseline") == {"run": 2} and store.journal(3) == {"baseline": {"run": 2}}
    assert store.journal_get(4, "x", "none") == "none"
    store.set_progress("m", "measuring", 1, 10)
    store.set_progress("m", "measuring", 2, 10, {"rate": 3})
    assert [(p["done"], p["meta"]) for p in store.progress()] == [(2, {"rate": 3})]
    store.clear_progress("m")
    assert store.progress() == []


def test_a_newer_database_is_refused(store: RunStore, folder: Path) -> None:
    store._db.execute("PRAGMA user_version=99")
    with pytest.raises(StoreError, match="newer harnesslab"):
        RunStore.open(folder)


def test_a_damaged_database(tmp_path: Path) -> None:
    (tmp_path / ".harnesslab").mkdir()
    (tmp_path / ".harnesslab/lab.db").write_bytes(b"no database " * 1000)
    with pytest.raises(StoreError, match="damaged"):
        RunStore.open(tmp_path, mend=False)
    with RunStore.open(tmp_path) as store:
        assert "lab.db was set aside as lab.db.bad" in store.notices[0]
    assert (tmp_path / ".harnesslab/lab.db.bad").read_bytes() == b"no database " * 1000


def test_a_locked_database_spills_and_takes_in_later(store: RunStore, folder: Path) -> None:
    run = store.begin_run("c", {}, split="gate")
    store._db.execute("PRAGMA busy_timeout=20")
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert store.add_episode(run, {"task_id": "held"}, TRACE) is None
    with pytest.raises(StoreError, match="Another process"):
        store.add_event("x", {})
    assert store.episodes(run) == []
    other.execute("ROLLBACK")
    other.close()
    with RunStore.open(folder) as reader:
        (row,) = reader.episodes(run)
        assert row["task_id"] == "held" and reader.trace(row["id"]) == TRACE
    assert list((store.folder / "spill").iterdir()) == []
    assert store.add_episode(run, {"task_id": "next"}, TRACE) is not None
    assert len(store.episodes(run)) == 2


def test_where_spilling_fails_too_the_episode_waits_in_memory(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run = store.begin_run("c", {}, split="gate")
    store._db.execute("PRAGMA busy_timeout=20")
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError):
            store.add_episode(run, {"task_id": "held"}, TRACE)
    other.execute("ROLLBACK")
    other.close()
    assert list((store.folder / "spill").iterdir()) == []
    store.finish_run(run)
    assert [row["task_id"] for row in store.episodes(run)] == ["held"]


def test_a_torn_spill_file_is_set_aside(store: RunStore, folder: Path) -> None:
    spill = store.folder / "spill"
    spill.mkdir()
    (spill / "a.json").write_text('{"run_id": "x", "summ')
    RunStore.open(folder).close()
    assert [path.name for path in spill.iterdir()] == ["a.json.bad"]


WRITER = """
import sys
from harnesslab.store import RunStore
store = RunStore.open(sys.argv[1])
run = store.begin_run("c", {}, split="gate")
print(run, flush=True)
number = 0
while True:
    store.add_episode(run, {"task_id": f"{sys.argv[2]}{number}"}, [{"n": number}] * 20)
    print(number, flush=True)
    number += 1
"""


def test_two_killed_kernels_lose_nothing_that_was_told(folder: Path) -> None:
    folder.mkdir()
    command = [sys.executable, "-c", WRITER, str(folder)]
    writers = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in "ab"]
    runs, told = [], []
    for writer in writers:
        assert writer.stdout is not None
        runs.append(writer.stdout.readline().strip())
        for _ in range(20):
            writer.stdout.readline()
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
    for writer in writers:
        assert writer.stdout is not None
        rest = writer.stdout.read().split()
        told.append(int(rest[-1]) + 1 if rest else 20)
        writer.wait()
    with RunStore.open(folder) as store:
        for run, count in zip(runs, told, strict=True):
            rows = store.episodes(run)
            assert count <= len(rows) <= count + 1
            assert all(store.trace(row["id"])[0]["n"] == number for number, row in enumerate(rows))


def test_threads(store: RunStore) -> None:
    run = store.begin_run("c", {}, split="gate")

    def work(name: str) -> None:
        for number in range(25):
            store.add_episode(run, {"task_id": f"{name}{number}"}, TRACE)
            store.episodes(run)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.done(run)) == 100


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=5))
@settings(max_examples=60, deadline=None)
def test_a_trace_survives_packing(steps: list[dict[str, Any]]) -> None:
    assert unpack(pack(steps)) == steps


@given(
    st.recursive(
        st.floats() | st.binary() | st.complex_numbers(), lambda s: st.lists(s) | st.dictionaries(st.integers(), s)
    )
)
@settings(max_examples=60, deadline=None)
def test_anything_becomes_strict_json(value: object) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads(to_json(value), parse_constant=refuse)


@pytest.mark.parametrize("data", [b"", b"garbage", pack([])[:-3], pack({"a": 1})])  # type: ignore[arg-type]
def test_a_damaged_trace(data: bytes) -> None:
    with pytest.raises(StoreError, match="damaged"):
        unpack(data)
