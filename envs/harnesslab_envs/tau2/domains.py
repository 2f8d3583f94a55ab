"""The three domains: their tasks, tickets, tools and fresh worlds, all from the package but for the corrected tasks."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from tau2.data_model.tasks import Task as Tau2Task
from tau2.environment.environment import Environment as World
from tau2.utils.utils import DATA_DIR

from harnesslab import data as hl_data
from harnesslab.rollout.env import Split, Task
from harnesslab.rollout.taskfiles import TaskFileError, decode, kind, parse_json, read_bytes, read_json

HOW = "Get the file again: harnesslab data get tau2"
DOMAINS = ("telecom", "retail", "airline")
SEARCH_SHARE = 0.6
"""Of the published train tasks; the rest of them is ``gate``. The published test tasks are ``sealed``."""
TICKET_NOTE = (
    "What follows is what the customer was told to ask for; 'you' is the customer. The customer cannot be asked: take "
    "their consent to what the request needs as given."
)


@dataclass(frozen=True)
class Domain:
    """One domain. ``tasks`` by our id; ``version`` names the task file where it is not the package's own."""

    name: str
    tasks: Mapping[str, Tau2Task]
    splits: Mapping[Split, Sequence[Task]]
    version: str

    def world(self, task: Tau2Task) -> World:
        """A fresh world in the task's initial state."""
        world = _MAKERS[self.name]()
        start = task.initial_state
        world.set_state(
            initialization_data=start.initialization_data if start else None,
            initialization_actions=start.initialization_actions if start else None,
            message_history=[],
        )
        return world

    @cached_property
    def schemas(self) -> list[dict[str, Any]]:
        """The tools as OpenAI schemas, the user's too where the agent does both parts; last the one that ends."""
        world = _MAKERS[self.name]()
        tools = [*world.get_tools(), *(world.get_user_tools() if world.solo_mode else [])]
        return [*(tool.openai_schema for tool in tools), _done(self.talks)]

    @cached_property
    def policy(self) -> str:
        """The policy that the agent must follow."""
        return str(_MAKERS[self.name]().get_policy())

    @property
    def talks(self) -> bool:
        """Whether the agent may tell the customer something when it is done; official solo has no such thing."""
        return self.name != "telecom"

    def instruction(self, task: Tau2Task) -> str:
        """Policy and ticket."""
        ticket = task.ticket if self.name == "telecom" else _ticket(task)
        return f"<policy>\n{self.policy.strip()}\n</policy>\n\n<ticket>\n{ticket}\n</ticket>"


def read_domain(name: str, data: str | Path | None = None) -> Domain:
    """Read a domain. Raises EnvironmentUnavailable where the corrected tasks of retail and airline are missing."""
    folder = Path(DATA_DIR) / "tau2" / "domains" / name
    published = read_json(folder / "split_tasks.json")
    file = folder / "tasks.json" if name == "telecom" else hl_data.find("tau2", data) / f"{name}-tasks.json"
    raw = read_bytes(file)
    tasks = {f"{name}-{number}": task for number, task in _tasks(file, raw, set(published["base"])).items()}
    version = "" if name == "telecom" else f"-{hashlib.sha256(raw).hexdigest()[:8]}"
    return Domain(name, tasks, _divide(name, published), f"{name}{version}")


def _tasks(file: Path, raw: bytes, wanted: set[str]) -> dict[str, Tau2Task]:
    """The wanted tasks of a file by their ids. Raises TaskFileError where one of them is missing or of another shape."""
    loaded = parse_json(decode(raw, file), file)
    if not isinstance(loaded, list):
        raise TaskFileError(file, f"must hold a list of tasks, not {kind(loaded)}. {HOW}")
    found: dict[str, Tau2Task] = {}
    for number, entry in enumerate(loaded):
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            what = "has no text under the key 'id'" if isinstance(entry, dict) else f"is {kind(entry)}, not an object"
            raise TaskFileError(file, f"task {number} (from 0) {what}. {HOW}")
        if entry["id"] not in wanted:
            continue
        if not entry.get("evaluation_criteria"):
            raise TaskFileError(file, f"task {number} (from 0) lacks this key. {HOW}", key="evaluation_criteria")
        try:
            found[entry["id"]] = Tau2Task.model_validate(entry)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"]))
            raise TaskFileError(file, f"task {number} (from 0): {first['msg']}. {HOW}", key=key) from error
    if lacking := sorted(wanted - found.keys()):
        raise TaskFileError(
            file, f"{len(lacking)} of {len(wanted)} published tasks are missing (such as {lacking[0]}). {HOW}"
        )
    return found


def _divide(name: str, published: Mapping[str, Sequence[str]]) -> dict[Split, tuple[Task, ...]]:
    splits: dict[Split, list[str]] = {
        "search": [],
        "gate": [],
        "sealed": [f"{name}-{one}" for one in published["test"]],
    }
    families: dict[str, list[str]] = {}
    for task_id in sorted((f"{name}-{one}" for one in published["train"]), key=_shuffle_key):
        families.setdefault(_family(name, task_id), []).append(task_id)
    for members in families.values():
        bound = round(SEARCH_SHARE * len(members))
        splits["search"] += members[:bound]
        splits["gate"] += members[bound:]
    return {split: tuple(_mixed(name, chosen, split)) for split, chosen in splits.items()}


def _mixed(name: str, chosen: Iterable[str], split: Split) -> Iterator[Task]:
    """Families mixed evenly, so that the first n tasks of a split hold each in about its share."""
    families: dict[str, list[str]] = {}
    for task_id in sorted(chosen, key=_shuffle_key):
        families.setdefault(_family(name, task_id), []).append(task_id)
    placed = [
        ((place + 0.5) / len(members), family, task_id)
        for family, members in families.items()
        for place, task_id in enumerate(members)
    ]
    for _, family, task_id in sorted(placed):
        yield Task(task_id, split, family, options={"task": task_id})


def _family(name: str, task_id: str) -> str:
    """The sort of trouble, in telecom; else the domain."""
    return task_id.partition("[")[2].partition("]")[0] if name == "telecom" else name


def _shuffle_key(task_id: str) -> str:
    return hashlib.sha256(task_id.encode()).hexdigest()


def _ticket(task: Tau2Task) -> str:
    """The instructions to the user, which an official run gives to a simulated user, as a ticket."""
    told = task.user_scenario.instructions
    if isinstance(told, str):
        return f"{TICKET_NOTE}\n\n{told}"
    parts = {
        "Reason for call": told.reason_for_call,
        "Known": told.known_info,
        "Unknown": told.unknown_info,
        "Instructions": told.task_instructions,
    }
    return "\n\n".join([TICKET_NOTE, *(f"{title}: {text.strip()}" for title, text in parts.items() if text)])


def _done(talks: bool) -> dict[str, Any]:
    message = {"type": "string", "description": "What to tell the customer; name every amount and fact asked for."}
    parameters = {"properties": {"message": message}, "required": ["message"]} if talks else {"properties": {}}
    about = "Call this function when you are done with the task."
    return {
        "type": "function",
        "function": {"name": "done", "description": about, "parameters": {"type": "object", **parameters}},
    }


class _Maker:
    """Makes worlds of one domain; the database is parsed anew each time, but read from disk once."""

    def __init__(self, name: str, model: str):
        self._name, self._model = name, model

    def __call__(self) -> World:
        module = importlib.import_module(f"tau2.domains.{self._name}.environment")
        made: World = module.get_environment(db=self._database())
        return made

    def _database(self) -> Any:
        model = getattr(importlib.import_module(f"tau2.domains.{self._name}.data_model"), self._model)
        return model.model_validate_json(self._text)

    @cached_property
    def _text(self) -> bytes:
        return (Path(DATA_DIR) / "tau2" / "domains" / self._name / "db.json").read_bytes()


class _Telecom:
    """Makes telecom worlds, where the agent has the user's tools as well; the small databases are copied."""

    @cached_property
    def _originals(self) -> tuple[Any, Any]:
        from tau2.domains.telecom.data_model import TelecomDB
        from tau2.domains.telecom.user_data_model import TelecomUserDB
        from tau2.domains.telecom.utils import TELECOM_DB_PATH, TELECOM_USER_DB_PATH

        return TelecomDB.load(TELECOM_DB_PATH), TelecomUserDB.load(TELECOM_USER_DB_PATH)

    def __call__(self) -> World:
        from tau2.domains.telecom.environment import get_environment

        db, user_db = (original.model_copy(deep=True) for original in self._originals)
        made: World = get_environment(db=db, user_db=user_db, solo_mode=True)
        return made


_MAKERS: Mapping[str, Callable[[], World]] = {
    "telecom": _Telecom(),
    "retail": _Maker("retail", "RetailDB"),
    "airline": _Maker("airline", "FlightDB"),
}
