"""Who owns a failure, and what happens next: the one table.

Each cause has one owner, and each owner has one rule. The loop, the measurer and the epochs look causes up here;
``docs/failures.md`` is written from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Owner = Literal["policy", "environment", "backbone", "harness", "task", "user"]
"""``policy`` is the agent itself: it simply did not reach the goal. The others name what failed."""

NEXT: dict[Owner, str] = {
    "environment": "The episode is unscorable. It is played once more with a new instance.",
    "backbone": "The connection retries within its patience; then the episode is unscorable and played once more. "
    "Three such episodes in a row stop the run.",
    "harness": "The episode counts as lost: it is charged to the harness that was played.",
    "task": "The task is set aside by name: unscorable on both sides, not played again unless fresh=True.",
    "user": "Everything stops with one sentence. Finished episodes are kept; resume() continues.",
}
"""The one rule of each owner."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One cause of failure: who owns it, and what it is in words."""

    owner: Owner
    what: str


RULES: dict[str, Rule] = {
    "crash": Rule("environment", "make, reset or step raised, or the environment's process died"),
    "hang": Rule("environment", "a call did not return within the deadline"),
    "lie": Rule("environment", "a call returned something that the protocol does not allow"),
    "busy": Rule("backbone", "the rate is still limited (HTTP 429) when patience runs out"),
    "server": Rule("backbone", "HTTP 5xx when patience runs out"),
    "timeout": Rule("backbone", "no reply within the timeout when patience runs out"),
    "garbled": Rule("backbone", "a reply without choices, without JSON, empty, or broken off"),
    "broke": Rule("backbone", "a backbone written by the user raised, or returned something other than a Completion"),
    "intervention": Rule("harness", "an intervention raised"),
    "stalled": Rule("harness", "a Python intervention did not answer within its deadline and was killed"),
    "died": Rule("harness", "the process of a Python intervention ended: it exited, or broke a limit"),
    "nonsense": Rule("harness", "an intervention returned something that the hook does not allow, or too much"),
    "outgrown": Rule("harness", "the candidate's request does not fit the model's context; the baseline's did"),
    "provoked": Rule("harness", "the endpoint refuses the candidate's request; it accepted the baseline's"),
    "context": Rule("task", "the request does not fit the model's context"),
    "refused": Rule("task", "the endpoint refuses the request (HTTP 400, 413, 422, content filter)"),
    "unplayable": Rule("task", "the environment failed on this task each time it was tried"),
    "key": Rule("user", "the key is refused (HTTP 401, 403)"),
    "model": Rule("user", "the endpoint does not know the model (HTTP 404, or its words)"),
    "quota": Rule("user", "the account's quota or credit is used up"),
    "unreachable": Rule("user", "nothing answers at the address: connection refused, DNS, TLS"),
    "budget": Rule("user", "the lab's budget is used up"),
    "setup": Rule(
        "user", "something is missing or wrong here: a package, a file, a recording, a setting, a field of the request"
    ),
}

CHARGED = {"context": "outgrown", "refused": "provoked"}
"""What a refused request becomes on the candidate's side where the baseline's episode was played to its end."""

IN_A_ROW = 3
"""Failures of one kind in a row after which going on makes no sense: episodes without a reply, skipped proposals."""
TRIES = 2
"""How often one measurement plays an episode that broke through no fault of the harness."""


def owner_of(cause: str) -> Owner:
    """The owner of a cause; unknown causes, such as those of newer records, are the environment's."""
    rule = RULES.get(cause)
    return rule.owner if rule is not None else "environment"


def table() -> str:
    """The rules as Markdown, for the documentation."""
    lines = ["| owner | cause | what happened | what happens next |", "|---|---|---|---|"]
    for owner, then in NEXT.items():
        for cause, rule in RULES.items():
            if rule.owner == owner:
                lines.append(f"| {owner} | `{cause}` | {rule.what} | {then} |")
    return "\n".join(lines)
