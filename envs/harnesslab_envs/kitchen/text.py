"""What the game says. All wording is here; rules are in ``world``."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab_envs.kitchen.scene import LETTER, Scene

NOT_UNDERSTOOD = (
    "I do not understand that. The commands are: go to PLACE, open THING, take THING, put THING on PLACE, "
    "clean THING, heat THING."
)
NOT_NOW = "You cannot do that now."
TOO_LATE = "The guest has waited too long and leaves."
SERVED = "Thank you! That is right."
WRONG = "The guest shakes the head: that is not what was asked for."

_STATE = {"clean": "clean ", "heat": "hot "}


def instruction(scene: Scene) -> str:
    """The task as the agent is told it; the rest is told on the way."""
    if scene.family == "letter":
        return f"Read the letter, then bring the guest the {scene.kind}."
    if scene.family == "unpack":
        return f"Unpack the {scene.kind} and bring it to the guest."
    article = "" if scene.family == "heat" and scene.kind != "pie" else "a "
    return f"Bring the guest {article}{_STATE.get(scene.family, '')}{scene.kind}."


def opening(scene: Scene) -> str:
    """The first observation."""
    if scene.family == "letter":
        return f"The {LETTER} is on the {scene.desk}."
    return whereabouts(scene)


def whereabouts(scene: Scene) -> str:
    """Where the wanted thing is, in the guest's words."""
    return f"{scene.guest}: Please go to the {scene.source}, my {scene.kind} is there."


def seat(scene: Scene) -> str:
    """Where the guest is."""
    return f"{scene.guest} is at the {scene.target}."


def letter(scene: Scene) -> str:
    """What the letter says."""
    return f"The {LETTER} says: {whereabouts(scene).partition(': ')[2]}"


def contents(scene: Scene, place: str, things: Sequence[str], *, can_take: bool) -> str:
    """What is in an open store; says whose thing is whose where it is among look-alikes."""
    if not things:
        return f"The {place} is empty."
    listed = ", the ".join(things)
    if not can_take:
        return f"In the {place} you see the {listed}."
    wish = f" {scene.guest}: Please take the {scene.wanted}." if scene.wanted in things else ""
    return f"You see the {listed}.{wish}"


def taken(scene: Scene, thing: str, *, ready: bool) -> str:
    """After a take: the thing, its state, and what to know next. ``ready``: it is as it was asked for."""
    if ready:
        return f"You have the {thing}. {seat(scene)}"
    if scene.family == "clean":
        return f"You have the {thing}. It is dirty."
    return f"You have the {thing}. It is cold. The {scene.heater} works."


def offer(verb: str, thing: str, place: str = "") -> str:
    """What can be done here with a thing."""
    return f"You can {verb} the {thing}" + (f" on {place}." if place else ".")
