"""The kind and the miner that dbbench comes with: where identifiers come from, and how both are found."""

from __future__ import annotations

from typing import Any

import pytest

import harnesslab as hl
from harnesslab import Failures, View
from harnesslab.errors import HarnessFileError
from harnesslab.harness import kind as kinds
from harnesslab.harness import load_harness
from harnesslab.harness.files import intervention_file
from harnesslab.harness.kind import brought_by
from harnesslab.trainer.estimators.mining.replay import Replay
from harnesslab_envs.dbbench.quoting.mine import mine
from tests.harness.conftest import context, harness, history, pipeline, reply, tools
from tests.trainer.trajectories import episode, run

__all__ = ["context", "harness", "history", "pipeline", "reply", "tools"]

TASK = (
    "Additional table information: The name of this table is Squash Ranking, and the headers of this table are "
    "Rank,Player Name,No. of Titles.\nQuestion: who leads?"
)


@pytest.mark.parametrize(
    ("told", "sql", "wanted"),
    [
        (TASK, "SELECT Player Name FROM Squash Ranking ORDER BY No. of Titles",
         'SELECT "Player Name" FROM "Squash Ranking" ORDER BY "No. of Titles"'),
        ('CREATE TABLE "My Table" (id INT, "Full Name" TEXT)', "SELECT Full Name FROM My Table",
         'SELECT "Full Name" FROM "My Table"'),
        ("Table: Home Ports\nColumns: Port, Year built", "SELECT Year built FROM Home Ports",
         'SELECT "Year built" FROM "Home Ports"'),
        ("Use `Home Ports`.", "SELECT a FROM Home Ports", 'SELECT a FROM "Home Ports"'),
    ],
)  # fmt: skip
def test_default_sources(pipeline: Any, context: Any, reply: Any, tools: Any, told: str, sql: str, wanted: str) -> None:
    pipe = pipeline("kind: quote\nwhen: {tool: execute_sql}\nparams: {argument: query}\n")
    chosen = pipe.choose(context("", told, tools=tools), [reply(f"Action: execute_sql\n```\n{sql}\n```")])
    assert chosen.proposal.action["arguments"]["query"] == wanted
    assert chosen.fired == ("action/it",)


def test_own_pattern_in_a_past_observation(pipeline: Any, context: Any, reply: Any, history: Any) -> None:
    text = "kind: quote\nparams: {identifiers: 'cols=(.+)', separator: '|', dialect: mysql}\n"
    now = context("ok", history=history(("cols=a b|c d", "x")))
    answer = [reply("Action: SELECT a b, 'c d' FROM t")]
    assert pipeline(text).choose(now, answer).proposal.action == "SELECT `a b`, `c d` FROM t"
    unseen = pipeline(text.replace("dialect: mysql", "results: 0"))
    assert unseen.choose(now, answer).fired == ()


def test_silent_when_nothing_is_known_or_needed(pipeline: Any, context: Any, reply: Any) -> None:
    pipe = pipeline("kind: quote\n")
    assert pipe.choose(context("", "Hello."), [reply("Action: SELECT a b")]).fired == ()
    assert pipe.choose(context("", TASK), [reply("Action: SELECT Rank FROM t WHERE a = 'Player Name'")]).fired == ()


def test_it_comes_with_the_environment() -> None:
    assert brought_by("quote") == "the environment 'dbbench'"
    assert brought_by("rescue") == brought_by("qoute") == ""


def test_where_it_cannot_be_loaded_the_environment_is_named(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(kinds._KINDS, "quote")
    with pytest.raises(HarnessFileError, match="unknown kind 'quote'; it comes with the environment 'dbbench', which"):
        harness({"action/it.yaml": "kind: quote\n"})


def test_an_unknown_kind_is_answered_with_those_there_are(harness: Any) -> None:
    with pytest.raises(HarnessFileError, match=r"quote \(from the environment 'dbbench'\).*environment or package"):
        harness({"action/it.yaml": "kind: nothing_like_it\n"})


def failed_with(sql: str, error: str) -> View:
    told = "Which is it? The name of this table is Cars, and the headers of this table are Model Year,Price."
    call = {"name": "run", "arguments": {"text": sql}}
    raw = {"raw": f"Action: run\n```\n{sql}\n```"}
    episodes = run(episode("a", (call, error, raw), instruction=told, tools=("run",)))
    return View(Failures(episodes), load_harness({"harness.toml": b'name = "demo"\n'}))


@pytest.mark.parametrize(
    ("error", "first", "quoted"),
    [
        ("Error: no such column: Model", "sqlite", '"Model Year"'),
        (
            "Error 1064: You have an error in your SQL syntax; check the MySQL manual near 'Year'",
            "mysql",
            "`Model Year`",
        ),
    ],
)
def test_the_miner_proposes_the_quotes_of_the_database_that_complained(error: str, first: str, quoted: str) -> None:
    view = failed_with("SELECT Model Year FROM Cars", error)
    (idea,) = mine(view)
    variant = idea.variants[0]
    assert variant.when == {"tool": "run"} and variant.params == {"dialect": first}
    text = intervention_file("quote", variant.params, when=variant.when)
    hits = Replay(view.harness, view.episodes, view.tools).hits("action/quote.yaml", text)
    assert f"SELECT {quoted} FROM Cars" in hits[0].what.replace("\\", "")


def test_the_miner_is_silent_without_errors_about_names() -> None:
    assert list(mine(failed_with("SELECT 1", "Error: the disk is full"))) == []


def test_the_miner_is_found_by_entry_point() -> None:
    assert hl.MiningEstimator().miners["quote"] is mine
