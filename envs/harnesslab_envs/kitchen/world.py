"""The rules of the kitchen: what is possible, and what each action does."""

from __future__ import annotations

from harnesslab_envs.kitchen import text
from harnesslab_envs.kitchen.scene import CLOSED_STORES, HEATERS, LETTER, SINK, Scene

PATIENCE = 2
"""The guest waits for so many times the shortest plan."""


class World:
    """The state of one episode. Starts at no place, with empty hands.

    One hand: one thing at a time, which can be put back into an open store. What is put on a surface is served, and
    that ends the episode.
    """

    def __init__(self, scene: Scene):
        self.scene = scene
        self.place = ""
        self.held = ""
        self.opened: set[str] = set()
        self.clean: set[str] = set()
        self.hot: set[str] = set()
        self.served_at = ""
        self.served = ""
        self.reached: set[str] = set()
        """Subgoals that were reached at some time."""
        self._where = dict.fromkeys(scene.lookalikes, scene.source) | {thing: store for store, thing in scene.stocked}

    @property
    def over(self) -> bool:
        """Something was served."""
        return bool(self.served)

    @property
    def solved(self) -> bool:
        """The right thing, in the right state, was served to the right guest."""
        scene = self.scene
        return self.served == scene.wanted and self.served_at == scene.target and self._ready(scene.wanted)

    @property
    def progress(self) -> float:
        """The share of subgoals reached; 1 only when solved."""
        return 1.0 if self.solved else len(self.reached) / len(self._subgoals())

    def admissible(self) -> list[str]:
        """All that is possible now, in a fixed order."""
        scene, place = self.scene, self.place
        actions = [f"go to {other}" for other in scene.places if other != place]
        if place == scene.desk and place and LETTER not in self.opened:
            actions.append(f"open {LETTER}")
        if self._closed(place):
            actions.append(f"open {place}")
        elif not self.held:
            actions += [f"take {thing}" for thing in self._things()]
        if self.held:
            actions += self._uses()
        return actions

    def act(self, action: str) -> str:
        """Do an admissible action and return what is seen then."""
        verb, _, rest = action.partition(" ")
        seen: str = getattr(self, f"_{verb}")(rest)
        self.reached |= {goal for goal, done in self._subgoals().items() if done}
        return seen

    def _uses(self) -> list[str]:
        """What can be done here with the thing in the hand."""
        uses = []
        if self.place in self.scene.stores and not self._closed(self.place):
            uses.append(f"put {self.held} in {self.place}")
        if self.place in self.scene.surfaces:
            uses.append(f"put {self.held} on {self.place}")
        if self.place == SINK:
            uses.append(f"clean {self.held}")
        if self.place in HEATERS:
            uses.append(f"heat {self.held}")
        return uses

    def _ready(self, thing: str) -> bool:
        """Whether the thing is in the state that was asked for."""
        family = self.scene.family
        return thing in self.clean if family == "clean" else thing in self.hot if family == "heat" else True

    def _closed(self, place: str) -> bool:
        return place in self.scene.stores and place in CLOSED_STORES and place not in self.opened

    def _things(self) -> list[str]:
        """What is in the store here."""
        return sorted(thing for thing, store in self._where.items() if store == self.place)

    def _go(self, rest: str) -> str:
        self.place = rest.removeprefix("to ")
        if self._closed(self.place):
            return text.offer("open", self.place)
        if self.place in self.scene.stores:
            return self._look()
        if self.place == self.scene.desk and LETTER not in self.opened:
            return text.offer("open", LETTER)
        if not self.held:
            return f"You are at the {self.place}."
        if self.place in self.scene.surfaces:
            return text.offer("put", self.held, self.place)
        return text.offer("clean" if self.place == SINK else "heat", self.held)

    def _open(self, rest: str) -> str:
        self.opened.add(rest)
        return text.letter(self.scene) if rest == LETTER else self._look()

    def _look(self) -> str:
        return text.contents(self.scene, self.place, self._things(), can_take=not self.held)

    def _take(self, rest: str) -> str:
        self.held = rest
        del self._where[rest]
        return text.taken(self.scene, rest, ready=self._ready(rest))

    def _clean(self, rest: str) -> str:
        self.clean.add(rest)
        return f"The {rest} is clean. {text.seat(self.scene)}"

    def _heat(self, rest: str) -> str:
        if self.place != self.scene.heater:
            return f"The {self.place} is broken. The {rest} stays cold."
        self.hot.add(rest)
        return f"The {rest} is hot. {text.seat(self.scene)}"

    def _put(self, rest: str) -> str:
        if self.place in self.scene.stores:
            self._where[self.held], self.held = self.place, ""
            return self._look()
        self.served, self.served_at, self.held = self.held, self.place, ""
        return text.SERVED if self.solved else text.WRONG

    def _subgoals(self) -> dict[str, bool]:
        """What is on the way to the goal, and whether it holds now."""
        scene = self.scene
        right = self.held == scene.wanted
        goals = {
            "found": self.place == scene.source and not self._closed(self.place),
            "taken": right or self.served == scene.wanted,
        }
        if scene.family == "letter":
            goals["read"] = LETTER in self.opened
        if scene.family in ("clean", "heat"):
            goals["ready"] = self._ready(scene.wanted)
        goals["brought"] = right and self.place == scene.target
        goals["served"] = self.solved
        return goals
