"""A support desk: sixteen tickets, three tools, and an agent with four bad habits, one a family of tickets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harnesslab.rollout.env import Action, Policy, Split, Task, TextEnv

FAMILIES = ("plain", "prose", "hasty", "cents")


def tool(name: str, **parameters: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in parameters.items()},
        "required": list(parameters),
    }
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS = [
    tool("find_order", order="string"),
    tool("refund", order="string", euros="number"),
    tool("close_ticket", ticket="string"),
]


class Desk:
    """One ticket: find the order, refund exactly its price, close the ticket."""

    def __init__(self, number: int):
        self.number, self.family = number, FAMILIES[number % 4]
        self.ticket, self.order, self.cents = f"T-{number}", f"A-{70 + number}", 1250 + 125 * number
        self.refunded: float | None = None
        self.closed = False

    @property
    def instruction(self) -> str:
        return f"Ticket {self.ticket}, {self.family}: order {self.order} arrived broken. Refund its price and close the ticket."

    @property
    def solved(self) -> bool:
        return self.closed and self.refunded == self.cents / 100

    def handle(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name == "find_order":
            return f"The order cost {self.cents} cents." if arguments.get("order") == self.order else "Not found."
        if name == "refund":
            self.refunded = float(arguments["euros"])
            return f"Refunded {self.refunded} EUR."
        self.closed = True
        return "The ticket is closed."


HARNESS = {
    "harness.toml": b'name = "desk"\nprotocol = "tools"\n[prompt]\nsystem = "You handle tickets."\nhistory = 8\n',
    "action/rescue.yaml": b"kind: rescue\n",
    "regulation/finish.yaml": b"kind: finish_guard\nparams: {finish_tool: close_ticket, until_tool: refund, message: Find the order first.}\n",
    "regulation/units.py": b'def regulate(context, proposal):\n    action = proposal["action"]\n'
    b'    if isinstance(action, dict) and action["name"] == "find_order":\n'
    b'        return {"note": "Refunds are in euros."}\n',
}
BASELINE = {"harness.toml": HARNESS["harness.toml"]}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": f"c-{name}", "type": "function", "function": function}],
    }


def clumsy(messages: Sequence[Mapping[str, Any]], tools: Any = None) -> dict[str, Any]:
    """The agent's model: writes calls as prose, closes at once, and takes cents for euros, until it is told."""
    said = "\n".join(str(message.get("content") or "") for message in messages)
    ticket, family, order = re.search(r"Ticket (T-\d+), (\w+): order (A-\d+)", said).groups()  # type: ignore[union-attr]
    if "Refunded" in said or (family == "hasty" and "Find the order first" not in said):
        return call("close_ticket", ticket=ticket)
    cost = re.search(r"cost (\d+) cents", said)
    if cost is None:
        if family == "prose":
            text = json.dumps({"name": "find_order", "arguments": {"order": order}})
            return {"role": "assistant", "content": f"I look it up.\n```json\n{text}\n```"}
        return call("find_order", order=order)
    told = family != "cents" or "in euros" in said
    return call("refund", order=order, euros=int(cost[1]) / (100 if told else 1))


class DeskEnv:
    """The desk as an environment."""

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict]:
        self.desk = Desk(seed or 0)
        return "The ticket is open.", self._info()

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict]:
        assert isinstance(action, dict)
        observation = self.desk.handle(action["name"], action["arguments"])
        return observation, float(self.desk.solved), self.desk.closed, False, self._info()

    def close(self) -> None:
        """Holds nothing."""

    def _info(self) -> dict:
        public = {"instruction": self.desk.instruction, "tools": TOOLS}
        return {"public": public, "private": {"solved": self.desk.solved}}


class DeskWorld:
    """Sixteen tickets a split."""

    name, version, max_steps = "desk", "1", 6

    def tasks(self, split: Split) -> list[Task]:
        return [Task(f"{split}-{n}", split, FAMILIES[n % 4], seed=n) for n in range(16)]

    def make(self) -> TextEnv:
        return DeskEnv()

    def oracle(self, task: Task) -> Policy:
        raise NotImplementedError

    def starter(self) -> Path:
        raise NotImplementedError
