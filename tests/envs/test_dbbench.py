"""dbbench and tables: the sandbox, the judge, the episode, the tasks."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab import data
from harnesslab.errors import EnvironmentFault, EnvironmentUnavailable, OrderError
from harnesslab.harness.load import load_folder
from harnesslab.rollout.env import SPLITS, Task
from harnesslab.rollout.registry import load_environment
from harnesslab.testing import check_env
from harnesslab_envs.dbbench.env import MAX_SHOWN, TableEnv, TableTasks, call
from harnesslab_envs.dbbench.grading import answers_match, clean_answers, rows_hold, table_hash, target_hashes
from harnesslab_envs.dbbench.records import Record, Table, read_records
from harnesslab_envs.dbbench.sandbox import MAX_QUERY, MAX_ROWS, Sandbox, compare_as_mysql, quote
from harnesslab_envs.dbbench.splits import divide

CITY = Table(
    "City Size", ("City", "order", "No. of (k)"), (("Århus", "1", "285"), ("Oslo", "2", "709"), ("Bergen", "3", "291"))
)
ASK = Record("t-0", "other", "How big is Oslo?", "About City Size.", (CITY,), ("709",))
MOVE = Record(
    "t-1",
    "UPDATE",
    "Set Oslo to 710.",
    "",
    (CITY,),
    ("""UPDATE "City Size" SET "No. of (k)" = '710' WHERE City = 'Oslo'""",),
)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox([CITY])
    yield made
    made.close()


@pytest.fixture
def env() -> TableEnv:
    return TableEnv({record.id: record for record in (ASK, MOVE)})


# --- the sandbox


def test_cells_are_text_and_compared_as_mysql_does(sandbox: Sandbox) -> None:
    assert sandbox.execute("SELECT * FROM `City Size` WHERE city = 'OSLO'").rows == (("Oslo", "2", "709"),)
    assert sandbox.execute('SELECT City FROM "City Size" WHERE City = "arhus"').rows == (("Århus",),)
    assert (
        compare_as_mysql("Zürich", "ZURICH") == 0
        and compare_as_mysql("a", "B") == -1
        and compare_as_mysql("é", "d") == 1
    )


@pytest.mark.parametrize(
    "query, words",
    [
        ("ATTACH 'x.db' AS y", "not authorized"),
        ("VACUUM INTO 'stolen.db'", "authorization denied"),
        ("PRAGMA journal_mode = WAL", "not authorized"),
        ("PRAGMA writable_schema = 1", "not authorized"),
        ("SELECT * FROM pragma_database_list", "not authorized"),
        ("SELECT load_extension('x')", "load_extension"),
        ("SELECT random()", "random"),
        ("SELECT printf('%900000000d', 1)", "printf"),
        ("SELECT zeroblob(1000)", "zeroblob"),
        ("SELECT json_group_array(City) FROM `City Size`", "json_group_array"),
        ("CREATE VIRTUAL TABLE f USING fts5(x)", "not authorized"),
        ("CREATE TEMP TABLE t (a)", "not authorized"),
        ("CREATE TRIGGER t AFTER INSERT ON `City Size` BEGIN SELECT 1; END", "not authorized"),
        ("DELETE FROM sqlite_master", "may not be modified"),
        ("SELECT 1; SELECT 2", "one statement at a time"),
        ("SELEC 1", "syntax error"),
        ("SELECT missing FROM `City Size`", "no such column"),
        ("INSERT INTO `City Size` VALUES (?, ?, ?)", "bindings"),
        ("SELECT '\x00'", "null character"),
        ("SELECT '\ud800'", "surrogates"),
        ("SELECT 1 -- " + "x" * MAX_QUERY, "longer than"),
        ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c", "too much work"),
        ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x || x FROM c) SELECT max(x) FROM c", "too big"),
        ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "parser stack overflow"),
    ],
)
def test_what_is_refused_is_an_error_in_words(
    sandbox: Sandbox, query: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = sandbox.execute(query)
    assert words in result.error and not result.rows
    assert sandbox.execute("SELECT count(*) FROM `City Size`").rows == ((3,),)
    assert not list(tmp_path.iterdir())


def test_growth_and_results_are_bounded(sandbox: Sandbox) -> None:
    numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 200000)"
    assert len(sandbox.execute(f"{numbers} SELECT x FROM c").rows) == MAX_ROWS
    wide = "replace('" + "x" * 100 + "', 'x', '" + "y" * 190 + "')"
    assert sum(len(row[0]) for row in sandbox.execute(f"{numbers} SELECT {wide} FROM c").rows) < 1_100_000  # type: ignore[arg-type]
    assert "full" in sandbox.execute(f"{numbers} INSERT INTO `City Size` SELECT {wide}, 1, 1 FROM c").error


def test_each_statement_is_kept_at_once_and_a_failed_one_changes_nothing(sandbox: Sandbox) -> None:
    for query in ("BEGIN", "DELETE FROM `City Size` WHERE City = 'Oslo'"):
        assert not sandbox.execute(query).error
    assert "no transaction" in sandbox.execute("ROLLBACK").error
    assert sandbox.execute(
        "INSERT INTO `City Size` SELECT x, x, x FROM (SELECT 1 AS x UNION SELECT abs(-9223372036854775808))"
    ).error
    assert sandbox.execute("SELECT count(*) FROM `City Size`").rows == ((2,),)


@given(st.text())
def test_any_text_is_answered(query: str) -> None:
    sandbox = Sandbox([CITY])
    result = sandbox.execute(query)
    assert result.error or not result.rows or isinstance(result.rows[0], tuple)
    sandbox.close()


# --- the judge


@pytest.mark.parametrize(
    "given_answers, label, right",
    [
        (["709"], ["709"], True),
        ([709], ["709.0"], True),
        (["709.009"], ["709"], True),
        (["709.02"], ["709"], False),
        ("709", ["709"], True),
        ("['709']", ["709"], True),
        ("[('a',), ('b',)]", ["b", "a"], True),
        ('["a", "b"]', ["a"], False),
        ("[a, 'b c']", ["a", "b c"], True),
        (["1,200"], ["1200"], True),
        (["12 %"], ["12"], True),
        (["'Oslo'"], ["Oslo"], True),
        (["oslo"], ["Oslo"], False),
        (["b", "a", "a"], ["a", "b"], True),
        (["1", "2"], ["2", "1.001"], True),
        (["1", "1", "2"], ["1", "2"], False),
        ([None], ["none"], True),
        (["null"], ["0"], True),
        ([], ["0"], False),
        ([], [""], False),
        ([["709"]], ["709"], False),
        (["x" * 200_000], ["x" * 200_000], False),
        ("[" * 3_000 + "]" * 3_000, ["709"], False),
    ],
)
def test_answers_are_judged_as_agentbench_does(given_answers: Any, label: list[str], right: bool) -> None:
    assert answers_match(given_answers, label) is right


@given(st.lists(st.text(), min_size=1))
def test_the_label_itself_is_right(label: list[str]) -> None:
    assert answers_match(label, label)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_any_answer_is_judged(answers: Any) -> None:
    assert all(isinstance(value, str) for value in clean_answers(answers))
    assert answers_match(answers, ["no such answer 93"]) is False


def test_the_table_hash_is_the_published_formula(sandbox: Sandbox) -> None:
    rows = sorted(hashlib.md5(",".join(row).encode()).hexdigest()[:5] for row in CITY.rows)
    assert table_hash(sandbox, [CITY]) == hashlib.md5(",".join(rows).encode()).hexdigest()
    sandbox.execute("DROP TABLE `City Size`")
    assert table_hash(sandbox, [CITY]) == ""


def test_a_statement_that_changes_nothing_gives_no_target() -> None:
    idle = Record(
        "t-2", "UPDATE", "?", "", (CITY,), ("UPDATE `City Size` SET City = 'X' WHERE City = 'Rome'",), "f" * 32
    )
    assert target_hashes(idle) == {"f" * 32}
    assert len(target_hashes(MOVE)) == 1


def test_evidence_in_rows() -> None:
    assert rows_hold([("Oslo", "709")], ["709.0"]) and rows_hold([("a",), ("b",)], ["b", "a"])
    assert not rows_hold([("Oslo", "7090")], ["709"]) and not rows_hold([], ["709"])


# --- an episode


def start(env: TableEnv, record: Record) -> dict[str, Any]:
    return env.reset(options={"record": record.id})[1]


def test_a_question(env: TableEnv) -> None:
    info = start(env, ASK)
    assert (
        info["public"]["instruction"]
        == "Additional table information about the question: About City Size.\nQuestion: How big is Oslo?"
    )
    assert [tool["function"]["name"] for tool in info["public"]["tools"]] == ["execute_sql", "commit_final_answer"]
    seen = []
    for action in (
        call("execute_sql", query="SELECT No. of (k) FROM City Size"),
        call("execute_sql", query="SELECT City FROM `City Size`"),
        call("execute_sql", query="SELECT `No. of (k)` FROM `City Size` WHERE City = 'Oslo'"),
        call("commit_final_answer", answers=["709"]),
    ):
        observation, reward, terminated, truncated, info = env.step(action)
        assert not truncated and not info["public"]["invalid"]
        seen.append(
            (observation, reward, terminated, round(info["private"]["progress"] * 3), info["private"]["solved"])
        )
    assert seen[0][0].startswith("Error: ") and seen[0][1:] == (0.0, False, 0, False)
    assert seen[1:] == [
        ("[('Århus',), ('Oslo',), ('Bergen',)]", 0.0, False, 1, False),
        ("[('709',)]", 0.0, False, 2, False),
        ("The answer was committed.", 1.0, True, 3, True),
    ]
    assert (info["private"]["statements"], info["private"]["sql_errors"]) == (3, 1)


def test_a_change_counts_only_once_it_is_committed(env: TableEnv) -> None:
    start(env, MOVE)
    info = env.step(call("execute_sql", query=MOVE.label[0]))[-1]
    assert not info["private"]["solved"] and info["private"]["progress"] == pytest.approx(2 / 3)
    assert env.step(call("commit_final_answer", answers=[]))[1:3] == (1.0, True)
    start(env, MOVE)
    env.step(call("execute_sql", query="UPDATE `City Size` SET `No. of (k)` = 710"))
    assert env.step(call("commit_final_answer", answers=["done"]))[1:3] == (0.0, True)


@pytest.mark.parametrize(
    "action, words",
    [
        ("SELECT 1", "no tool call"),
        ({"name": "sql", "arguments": {"query": "SELECT 1"}}, "no tool 'sql'"),
        ({"name": "execute_sql"}, "takes one argument, 'query'"),
        ({"name": "execute_sql", "arguments": {"query": 7}}, "takes one argument, 'query'"),
        ({"name": "execute_sql", "arguments": {"query": "SELECT 1", "more": 1}}, "takes one argument"),
        ({"name": "commit_final_answer", "arguments": {"answers": {"a": 1}}}, "takes one argument, 'answers'"),
        ({"name": "x" * 5_000, "arguments": {}}, "no tool"),
    ],
)
def test_an_action_that_does_not_fit_is_invalid(env: TableEnv, action: Any, words: str) -> None:
    start(env, ASK)
    observation, reward, terminated, _, info = env.step(action)
    assert (
        words in observation and len(observation) < 400 and info["public"]["invalid"] and not terminated and reward == 0
    )


def test_what_is_shown_is_cut(env: TableEnv) -> None:
    start(env, ASK)
    observation = env.step(
        call(
            "execute_sql",
            query="SELECT hex(hex(hex(hex(hex(hex(hex(City))))))) FROM `City Size`",
        )
    )[0]
    assert observation.endswith("[TRUNCATED]") and len(observation) == MAX_SHOWN + len("[TRUNCATED]")


def test_calls_out_of_order(env: TableEnv) -> None:
    with pytest.raises(OrderError, match="call reset"):
        env.step(call("execute_sql", query="SELECT 1"))
    with pytest.raises(EnvironmentFault, match="no task 'nothing'"):
        env.reset(options={"record": "nothing"})
    with pytest.raises(EnvironmentFault, match="no task None"):
        env.reset(seed=1)
    start(env, ASK)
    env.step(call("commit_final_answer", answers=[]))
    with pytest.raises(OrderError):
        env.step(call("commit_final_answer", answers=["709"]))
    start(env, ASK)
    env.close()
    env.close()


# --- the tasks


def play(environment: TableTasks, task: Task, agent: str) -> bool:
    env, policy = environment.make(), getattr(environment, agent)(task)
    observation, info = env.reset(seed=task.seed, options=task.options)
    for _ in range(environment.max_steps):
        observation, _, terminated, _, info = env.step(policy(observation, info))
        if terminated:
            break
    env.close()
    return bool(info["private"]["solved"])


def test_tables_keeps_the_contract() -> None:
    report = check_env("tables", limit=None)
    assert report.ok and report.tasks == report.oracle_solved == 24 and report.null_solved == 0, str(report)


@pytest.mark.parametrize("split", SPLITS)
def test_tables_is_solved_by_its_oracle_only(split: Any) -> None:
    environment: Any = load_environment("tables")
    tasks = environment.tasks(split)
    assert len(tasks) == 24 and len({task.family for task in tasks[:6]}) >= 5
    assert all(play(environment, task, "oracle") for task in tasks)
    assert not any(play(environment, task, "null") for task in tasks)


def as_sql(record: Record) -> str:
    """A question of ``tables`` as SQL, read from its words."""
    table = record.tables[0]
    column = f"({'|'.join(map(re.escape, sorted(table.columns, key=len, reverse=True)))})"
    forms = {
        f"What is the {column} of the {column} (.+)": 'SELECT "{0}" FROM t WHERE "{1}" = \'{2}\'',
        f"How many rows have (.+) as their {column}": "SELECT count(*) FROM t WHERE \"{1}\" = '{0}'",
        f"Which {column} has the higher {column}, (.+) or (.+)": (
            'SELECT "{0}" FROM t WHERE "{0}" IN (\'{2}\', \'{3}\') ORDER BY 0 + "{1}" DESC LIMIT 1'
        ),
        f"Which {column} has the (.+) highest {column}": 'SELECT "{0}" FROM t ORDER BY 0 + "{2}" DESC LIMIT 1 OFFSET {1}',
        f"What is the (.+) of {column} over all rows with (.+) as their {column}": (
            'SELECT {0}(0 + "{1}") FROM t WHERE "{3}" = \'{2}\''
        ),
    }
    words = {"second": "1", "third": "2", "fourth": "3", "fifth": "4", "sum": "sum", "maximum": "max", "average": "avg"}
    [query] = [
        form.format(*(words.get(part, part.replace("'", "''")) for part in match.groups()))
        for pattern, form in forms.items()
        if (match := re.fullmatch(pattern + r"\?", record.question))
    ]
    return query.replace("FROM t", f"FROM {quote(table.name)}")


def test_the_answers_of_tables_agree_with_sql() -> None:
    """They are worked out in Python; SQL must come to the same."""
    environment: Any = load_environment("tables")
    questions = [record for record in environment._content().records.values() if not record.changes]
    assert len(questions) == 60
    for record in questions:
        sandbox = Sandbox(record.tables)
        result = sandbox.execute(as_sql(record))
        sandbox.close()
        assert answers_match(str(list(result.rows)), record.label), (record, as_sql(record), result)


def test_splits_do_not_depend_on_the_order_of_the_file() -> None:
    records = [Record(f"s-{i}", "ab"[i % 2], f"question {i}", "", (CITY,), ("x",)) for i in range(50)]
    one, two = divide(records), divide(reversed(records))
    assert one == two and [len(one[split]) for split in SPLITS] == [8, 12, 30]


def test_a_starter_harness_lies_there() -> None:
    harness = load_folder(load_environment("tables").starter())
    assert harness.protocol == "text" and not harness.interventions


def test_the_missing_data_is_one_clear_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESSLAB_DATA", str(tmp_path))
    environment = load_environment("dbbench")
    with pytest.raises(EnvironmentUnavailable, match="harnesslab data get dbbench"):
        environment.tasks("search")


def line(**changes: Any) -> str:
    base = {
        "description": "?",
        "label": ["709"],
        "type": ["other"],
        "table": {"table_name": "T", "table_info": {"columns": [{"name": "a"}, {"name": "b"}], "rows": [[1, 2.5]]}},
    }
    return json.dumps(base | changes) + "\n"


def test_lines_are_read_and_a_broken_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "standard.jsonl"
    path.write_text(line() + line(answer_md5="[('abc',)]", type=["INSERT"]), encoding="utf-8")
    first, second = read_records(path, "x")
    assert first.tables[0].rows == (("1", "2.5"),) and first.id == "x-0" and not first.changes
    assert second.published_hash == "abc" and second.changes
    ragged = {"table_name": "T", "table_info": {"columns": [{"name": "a"}], "rows": [[1, 2]]}}
    for broken in ("{", line(label=[]), line(table=ragged)):
        path.write_text(line() + broken, encoding="utf-8")
        with pytest.raises(EnvironmentUnavailable, match=r"standard.jsonl, line 2: not a DBBench task"):
            list(read_records(path, "x"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (line(table=None), "line 1: .*key 'table': must be an object"),
        (line(table=[]), "line 1: .*key 'table'"),
        (line(table={"table_name": 5}), "line 1: .*key 'table.table_name'"),
        (
            line(table={"table_name": "T", "table_info": {"columns": [{"name": "a"}], "rows": [[{}]]}}),
            "key 'table.table_info.rows'",
        ),
        (f"[{line()}]", "line 1: .*ends in the middle"),
        ("[1, 2]", "line 1: .*must hold keys and values, not a list"),
        (line()[:-2] + ', "label": ["1"]}', "line 1: .*key 'label': the key is given twice"),
        ("", "is empty"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_in_the_words_of_the_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "standard.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(EnvironmentUnavailable, match=rf"standard.jsonl.*{message}") as caught:
        list(read_records(path, "x"))
    assert "_" not in str(caught.value).split("not a DBBench task")[1].replace("table_name", "").replace(
        "table_info", ""
    )


# --- the published tasks, where they are


@pytest.fixture
def dbbench() -> TableTasks:
    try:
        data.find("dbbench")
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    environment: Any = load_environment("dbbench")
    return environment


@pytest.mark.data
def test_all_published_tasks(dbbench: TableTasks) -> None:
    splits = {split: dbbench.tasks(split) for split in SPLITS}
    assert {split: len(tasks) for split, tasks in splits.items()} == {"search": 108, "gate": 72, "sealed": 180}
    questions = {
        split: sum(task.family not in ("INSERT", "UPDATE") for task in tasks) for split, tasks in splits.items()
    }
    assert questions == {"search": 36, "gate": 24, "sealed": 60}
    tasks = [task for split in splits.values() for task in split]
    solved = Counter(agent for task in tasks for agent in ("oracle", "null") if play(dbbench, task, agent))
    assert solved == {"oracle": 360}


@pytest.mark.data
def test_the_published_hashes_are_reproduced(dbbench: TableTasks) -> None:
    """What SQLite leaves behind has the hash that MySQL was published with, but for four tasks."""
    reproduced: Counter[str] = Counter()
    for record in dbbench._content().records.values():
        if record.changes:
            sandbox = Sandbox(record.tables)
            sandbox.execute(record.label[0])
            reproduced[record.family] += table_hash(sandbox, record.tables) == record.published_hash
            sandbox.close()
    assert reproduced == {"INSERT": 118, "UPDATE": 118}


@pytest.mark.data
def test_dbbench_keeps_the_contract(dbbench: TableTasks) -> None:
    assert check_env("dbbench", split="gate").ok
