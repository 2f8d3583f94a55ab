"""dbbench on a private MariaDB: confined statements, published hashes, nothing left behind."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnesslab import data
from harnesslab.errors import ConfigError, EnvironmentUnavailable
from harnesslab.harness.load import load_folder
from harnesslab.rollout.registry import load_environment
from harnesslab_envs.dbbench import FILES, server
from harnesslab_envs.dbbench.env import TableEnv, call, tools
from harnesslab_envs.dbbench.mariadb import MariaDatabase, MariaDB
from harnesslab_envs.dbbench.records import Record, Table, read_records
from harnesslab_envs.dbbench.sandbox import MAX_ROWS
from harnesslab_envs.dbbench.server import missing

served = pytest.mark.skipif(bool(missing()), reason=missing())
FRUIT = Table(
    "2 fruit", ("Name", "a`b %s", "From"), (("Apple", "1", "Kent"), ("Pear", "20", "Jura"), ("Plum", "3", ""))
)
OWNER = """
import time
from harnesslab_envs.dbbench.server import Server
print(Server().folder, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[MariaDB]:
    made = MariaDB()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def database(engine: MariaDB) -> Iterator[MariaDatabase]:
    made = engine.open([FRUIT])
    try:
        yield made
    finally:
        made.close()


@served
def test_statements_run_and_are_kept(database: MariaDatabase) -> None:
    assert database.execute("SELECT `Name` FROM `2 fruit` WHERE `From` = 'kent'").rows == (("Apple",),)
    assert database.execute("BEGIN; ").error == ""
    assert database.execute("UPDATE 2 fruit SET x = 1").error.startswith("You have an error in your SQL syntax")
    assert database.execute("INSERT INTO `2 fruit` VALUES ('Fig', '7', NULL)").rows == ()
    assert database.execute("SELECT COUNT(*), '%s' FROM `2 fruit`").rows == ((4, "%s"),)
    assert database.execute("SELECT 1; SELECT 2").error
    assert database.execute("CREATE TABLE other (a INT) ENGINE = MyISAM").error == ""
    assert "ENGINE=InnoDB" in str(database.execute("SHOW CREATE TABLE other").rows)
    assert database.execute("x" * 20_001).error == "the statement is longer than 20000 characters"


@served
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM mysql.user",
        "SELECT 'x' INTO OUTFILE '/tmp/harnesslab-outfile'",
        "LOAD DATA INFILE '/etc/passwd' INTO TABLE `2 fruit`",
        "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE `2 fruit`",
        "SET GLOBAL group_concat_max_len = 9",
        "CREATE DATABASE other",
        "CREATE USER other",
        "GRANT ALL ON *.* TO CURRENT_USER",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
        "INSTALL SONAME 'x'",
        "SET enforce_storage_engine = NULL",
        "SHUTDOWN",
    ],
)
def test_what_reaches_beyond_the_database_is_refused(database: MariaDatabase, statement: str) -> None:
    assert database.execute(statement).error
    assert not Path("/tmp/harnesslab-outfile").exists()
    assert database.execute("SELECT LOAD_FILE('/etc/passwd')").rows == ((None,),)


@served
def test_no_database_sees_another(engine: MariaDB, database: MariaDatabase) -> None:
    other = engine.open([FRUIT])
    try:
        names = {row[0] for row in database.execute("SHOW DATABASES").rows}
        assert names - {"information_schema"} == {database._name}
        assert database.execute(f"SELECT * FROM {other._name}.`2 fruit`").error
        assert other.execute("DROP TABLE `2 fruit`").error == ""
        assert database.execute("SELECT COUNT(*) FROM `2 fruit`").rows == ((3,),)
        assert (other.hash([FRUIT]), bool(database.hash([FRUIT]))) == ("", True)
    finally:
        other.close()
    with database._root.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        assert (other._name,) not in cursor.fetchall()


@served
def test_work_and_rows_are_bounded(database: MariaDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnesslab_envs.dbbench.mariadb.DEADLINE_S", 1)
    for slow in ("SELECT SLEEP(50)", "SELECT BENCHMARK(10000000000, MD5('x'))"):
        assert database.execute("SET max_statement_time = 0").error == ""
        assert database.execute(slow).error == "the statement did too much work and was stopped"
    many = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT a.i FROM n a, n b"
    assert database.execute("SET @kept = 5").error == ""
    assert len(database.execute(many).rows) == MAX_ROWS
    assert database.execute("SELECT @kept").rows == ((5,),)
    assert database.execute("SET PASSWORD = PASSWORD('mine')").error == ""
    assert database.execute("SELECT SLEEP(50)").error
    assert database.execute("SELECT 1").rows == ((1,),)
    with database._root.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = %s", (database._name,))
        assert cursor.fetchone() == (1,)


@served
def test_an_episode_is_judged_by_the_published_hash(engine: MariaDB) -> None:
    database = engine.open([FRUIT])
    change = "UPDATE `2 fruit` SET `From` = 'Wales' WHERE Name = 'apple'"
    database.execute(change)
    published = database.hash([FRUIT])
    database.close()
    right = Record("one", "UPDATE", "Change it.", "", (FRUIT,), (change,), published)
    other = Record("two", "UPDATE", "Change it.", "", (FRUIT,), (change,), "0" * 32)
    env = TableEnv({"one": right, "two": other}, engine)
    for name, reward in (("one", 1.0), ("two", 0.0)):
        observation, info = env.reset(options={"record": name})
        assert observation == "The MariaDB database is ready."
        assert "MariaDB" in info["public"]["tools"][0]["function"]["description"]
        env.step(call("execute_sql", query=change))
        assert env.step(call("commit_final_answer", answers=["done"]))[1] == reward
    env.close()


@served
def test_the_published_rule_for_cells_and_rows(engine: MariaDB) -> None:
    """CONCAT_WS leaves out NULL; five digits a row, sorted; GROUP_CONCAT ends after 1,024 characters."""
    long = Table("t", ("a", "b"), tuple((str(number), "x") for number in range(400)))
    database = engine.open([long])
    full = database.hash([long])
    database.execute("UPDATE t SET b = NULL")
    assert database.hash([long]) != full
    rows = sorted(hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()[:5] for number in range(400))
    joined = ",".join(rows)[:1024].encode()
    assert database.hash([long]) == hashlib.md5(joined, usedforsecurity=False).hexdigest()
    database.execute("DELETE FROM t")
    assert database.hash([long]) == "None"
    database.close()


@served
@pytest.mark.data
def test_published_hashes_are_reproduced(engine: MariaDB) -> None:
    """A sample of both files; ``envs/README.md`` has all of them."""
    try:
        folder = data.find("dbbench")
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    records = [record for file in FILES for record in read_records(folder / file, Path(file).stem)]
    for record in [record for record in records if record.changes][::16]:
        database = engine.open(record.tables)
        assert database.execute(engine.gold(record)).error == "", record.id
        assert database.hash(record.tables) in engine.targets(record), record.id
        database.close()


@served
def test_a_server_that_has_ended_is_started_anew() -> None:
    engine = MariaDB()
    try:
        engine.open([FRUIT])
        assert engine._server is not None
        first = engine._server
        os.kill(int((first.folder / "pid").read_text()), signal.SIGKILL)
        again = engine.open([FRUIT])
        assert again.execute("SELECT COUNT(*) FROM `2 fruit`").rows == ((3,),)
        assert engine._server is not first and not first.folder.exists()
    finally:
        engine.close()


@served
def test_the_server_and_its_data_go_with_its_process() -> None:
    one = server.Server()
    assert oct(one.folder.stat().st_mode)[-3:] == "700"
    one.close()
    one.close()
    assert not one.folder.exists()
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        number = int((folder / "pid").read_text())
        assert folder.exists()
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + 30
    while folder.exists() or Path(f"/proc/{number}").exists():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_without_a_server_or_a_client_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_which", lambda program: None)
    server.server_version.cache_clear()
    with pytest.raises(EnvironmentUnavailable, match="apt-get install mariadb-server"):
        _ = MariaDB().tag
    monkeypatch.setattr(server, "_which", lambda program: f"/bin/{program}")
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentUnavailable, match=r"pip install 'harnesslab\[mariadb\]'"):
        _ = MariaDB().tag
    with pytest.raises(ConfigError, match="sqlite, mariadb"):
        load_environment("dbbench", engine="postgres")


def test_sqlite_is_told_as_before() -> None:
    from harnesslab_envs.dbbench.engines import SQLite

    described = tools(SQLite())[0]["function"]
    assert isinstance(described, dict)
    assert described["description"] == "Run one SQL statement on the SQLite database. Returns the rows, or the error."
    folders = [load_folder(folder) for folder in (SQLite.starter, MariaDB.starter)]
    prompts = [folder.prompt.system for folder in folders]
    assert prompts[0].replace("an SQLite", "a MariaDB") == prompts[1] != prompts[0]
