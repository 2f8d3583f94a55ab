"""Quoting known identifiers in SQL: names always, values never."""

from __future__ import annotations

import re
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab_envs.dbbench.quoting.quoter import Quoter

NAMES = ("Squash Ranking", "Rank", "Player Name", "No. of Titles", "Player", "Order", "2010", "Title", "Driver's Car",
         "State/Province", "Score (final)")  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT Player Name FROM Squash Ranking", 'SELECT "Player Name" FROM "Squash Ranking"'),
        ("select player  name from squash ranking", 'select "Player Name" from "Squash Ranking"'),
        ("SELECT MAX(No. of Titles) FROM t", 'SELECT MAX("No. of Titles") FROM t'),
        ("SELECT Driver's Car FROM t WHERE a = 'b'", "SELECT \"Driver's Car\" FROM t WHERE a = 'b'"),
        ("SELECT State/Province, Score (final) FROM t", 'SELECT "State/Province", "Score (final)" FROM t'),
        ("SELECT 'Player Name' FROM 'Squash Ranking'", 'SELECT "Player Name" FROM "Squash Ranking"'),
        ("SELECT COUNT(DISTINCT 'Title') FROM t", 'SELECT COUNT(DISTINCT "Title") FROM t'),
        ("SELECT a FROM t WHERE 'Title' = 'x'", "SELECT a FROM t WHERE \"Title\" = 'x'"),
        ("SELECT a FROM t WHERE LOWER('Title') = 'x'", "SELECT a FROM t WHERE LOWER(\"Title\") = 'x'"),
        (
            "SELECT a FROM t GROUP BY 'Title' ORDER BY 'Rank' DESC",
            'SELECT a FROM t GROUP BY "Title" ORDER BY "Rank" DESC',
        ),
        ("SELECT Player_Name, playername FROM t", 'SELECT "Player Name", "Player Name" FROM t'),
        ('SELECT "Player_Name" FROM `Squash_Ranking`', 'SELECT "Player Name" FROM "Squash Ranking"'),
        ("SELECT Order FROM t ORDER BY Order", 'SELECT "Order" FROM t ORDER BY "Order"'),
        ("UPDATE t SET Order = 1, Player Name = 'x'", 'UPDATE t SET "Order" = 1, "Player Name" = \'x\''),
        ("UPDATE t SET 'Title' = 'Title'", "UPDATE t SET \"Title\" = 'Title'"),
        (
            "INSERT INTO t ('Title', Order) VALUES ('Title', 1)",
            'INSERT INTO t ("Title", "Order") VALUES (\'Title\', 1)',
        ),
        ("SELECT a FROM t WHERE 2010 > 5", 'SELECT a FROM t WHERE "2010" > 5'),
        ("SELECT 2010 FROM t GROUP BY 2010", 'SELECT "2010" FROM t GROUP BY "2010"'),
        ("SELECT a FROM (SELECT 'Title' FROM t)", 'SELECT a FROM (SELECT "Title" FROM t)'),
        ("SELECT a FROM t WHERE b IN (SELECT 'Title' FROM u)", 'SELECT a FROM t WHERE b IN (SELECT "Title" FROM u)'),
    ],
)
def test_names_are_quoted(sql: str, wanted: str) -> None:
    quoter = Quoter(NAMES)
    assert quoter(sql) == wanted
    assert quoter(wanted) == wanted


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT Rank FROM t WHERE Player = 'Player Name'",
        "SELECT Rank FROM t WHERE Player IN ('Title', 'Player Name')",
        "SELECT Rank FROM t WHERE Player LIKE 'Title' AND a BETWEEN 'Rank' AND 'Title'",
        "SELECT REPLACE(Title, 'Title', 'Player Name') FROM t",
        "SELECT CASE WHEN a = 1 THEN 'Title' ELSE 'Rank' END FROM t",
        "SELECT a FROM t WHERE b = LOWER('Title')",
        "SELECT a FROM t WHERE b = '2010' OR b = 2010 LIMIT 2010",
        "SELECT Rank AS title, 1 FROM t ORDER BY title, 2",
        "SELECT 'It''s the Player Name' FROM t",
        "SELECT a FROM t -- Player Name\n",
        "SELECT a /* Player Name */ FROM t",
        "SELECT [Player Name], `Player Name`, \"Player Name\" FROM t",
        "SELECT a FROM t WHERE \"Player Name\" = \"player_name\"",
        "SELECT a FROM t ORDER BY a",
        "INSERT INTO t VALUES ('Title', 'Player Name', 2010)",
        "",
        "'open Player Name",
    ],
)  # fmt: skip
def test_values_and_good_sql_are_left_alone(sql: str) -> None:
    assert Quoter(NAMES)(sql) == sql


def test_dialects() -> None:
    sql = "SELECT Player Name, Title FROM t WHERE \"Title\" = 'x' AND `Rank` = 1"
    assert Quoter(NAMES, "mysql")(sql) == "SELECT `Player Name`, Title FROM t WHERE `Title` = 'x' AND `Rank` = 1"
    assert Quoter(NAMES, "postgres")(sql) == (
        "SELECT \"Player Name\", \"Title\" FROM t WHERE \"Title\" = 'x' AND \"Rank\" = 1"
    )  # fmt: skip


def test_loose_can_be_switched_off() -> None:
    sql = "SELECT Player_Name FROM t"
    assert Quoter(NAMES, loose=False)(sql) == sql
    assert Quoter(("Player Name", "PlayerName"))(sql) == sql


def test_quotes_in_a_name_are_doubled() -> None:
    assert Quoter(['a "b" c'])('SELECT a "b" c') == 'SELECT "a ""b"" c"'


names = st.text(st.sampled_from("abcXYZ12 ./-()&#é'"), min_size=3, max_size=16).filter(
    lambda n: n == n.strip() and re.search(r"[a-zA-Z]{2}", n) and "--" not in n
)


@settings(max_examples=80, deadline=None)
@given(table=names, columns=st.lists(names, min_size=2, max_size=4, unique_by=lambda n: " ".join(n.split()).lower()))
def test_bare_names_become_sql_that_runs(table: str, columns: list[str]) -> None:
    ident = ['"' + name.replace('"', '""') + '"' for name in (table, *columns)]
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE TABLE {ident[0]} ({', '.join(ident[1:])})")
    quoter = Quoter((table, *columns))
    value = columns[1].replace("'", "''")
    out = quoter(f"SELECT {columns[0]} FROM {table} WHERE {columns[1]} = '{value}'")
    assert out.endswith(f"= '{value}'")
    assert quoter(out) == out
    db.execute(out)


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("ab '\"`[]()-*/=,;\n"), max_size=40))
def test_any_text_is_scanned(text: str) -> None:
    assert Quoter(())(text) == text
    assert isinstance(Quoter(("a b", "ab"))(text), str)
