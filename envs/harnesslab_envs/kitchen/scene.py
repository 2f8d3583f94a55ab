"""One seeded problem: what is where, who wants what. Made from a family and a seed, and never changed."""

from __future__ import annotations

import random
from dataclasses import dataclass

FAMILIES = ("fetch", "clean", "heat", "unpack", "letter")
"""fetch: bring a thing. clean, heat: it must be clean or hot. unpack: it is in something closed.
letter: a letter says where it is."""

OPEN_STORES = ("rack", "basket", "crate", "trolley")
CLOSED_STORES = ("fridge", "cupboard", "drawer", "pantry", "cabinet", "chest")
SURFACES = ("table", "shelf", "counter", "tray", "windowsill", "bench")
HEATERS = ("stove", "microwave")
SINK = "sink"
LETTER = "letter"
GUESTS = ("Mia", "Tom", "Ana", "Ben", "Eva", "Leo", "Ida", "Max")
COLOURS = ("red", "blue", "green", "white", "black", "yellow")
WARES = ("cup", "mug", "bowl", "plate", "jar", "spoon")
FOODS = {
    "pie": ("apple", "cherry", "plum", "pumpkin"),
    "soup": ("bean", "onion", "tomato", "carrot"),
    "bread": ("rye", "corn", "wheat", "garlic"),
}


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a problem fixes. ``guest`` sits at ``target`` and wants ``wanted``, which lies in ``source``
    among ``lookalikes`` (all things of the kind, ``wanted`` included). Of the two heaters only ``heater`` works.
    ``desk`` is where the letter lies; empty in families without one. ``stocked`` are (store, thing) of no use.
    """

    family: str
    kind: str
    guest: str
    wanted: str
    lookalikes: tuple[str, ...]
    source: str
    target: str
    heater: str
    desk: str
    stores: tuple[str, ...]
    surfaces: tuple[str, ...]
    stocked: tuple[tuple[str, str], ...]

    @property
    def places(self) -> tuple[str, ...]:
        """Every place that one can go to, by the alphabet."""
        return tuple(sorted((*self.stores, *self.surfaces, *HEATERS, SINK)))

    @property
    def plan(self) -> tuple[str, ...]:
        """The shortest way to the goal, as actions."""
        first = (f"go to {self.desk}", f"open {LETTER}") if self.family == "letter" else ()
        unpack = (f"open {self.source}",) if self.source in CLOSED_STORES else ()
        fetch = (f"go to {self.source}", *unpack, f"take {self.wanted}")
        treat: tuple[str, ...] = ()
        if self.family == "clean":
            treat = (f"go to {SINK}", f"clean {self.wanted}")
        elif self.family == "heat":
            treat = (f"go to {self.heater}", f"heat {self.wanted}")
        return (*first, *fetch, *treat, f"go to {self.target}", f"put {self.wanted} on {self.target}")


def kinds(family: str) -> tuple[str, ...]:
    """The kinds of things that a family is about."""
    return tuple(FOODS) if family == "heat" else WARES


def make_scene(family: str, kind: str, seed: int) -> Scene:
    """The scene of a family, a kind of thing and a seed: equal arguments, equal scene, in every process."""
    draw = random.Random(f"kitchen/{family}/{kind}/{seed}")  # a text seed is hashed with SHA-512, not with hash()
    stores = (*draw.sample(OPEN_STORES, 2), *draw.sample(CLOSED_STORES, 2))
    source = stores[2 if family == "unpack" else 0]
    surfaces = tuple(draw.sample(SURFACES, 3))
    sorts = draw.sample(FOODS.get(kind, COLOURS), 3)
    lookalikes = [f"{sort} {kind}" for sort in sorts]
    others = [other for other in (*WARES, *FOODS) if other != kind]
    rest = [store for store in stores if store != source]
    stocked = tuple(zip(rest, draw.sample(others, 3), strict=True))
    return Scene(
        family=family,
        kind=kind,
        guest=draw.choice(GUESTS),
        wanted=lookalikes[0],
        lookalikes=tuple(sorted(lookalikes)),
        source=source,
        target=surfaces[0],
        heater=draw.choice(HEATERS),
        desk=surfaces[1] if family == "letter" else "",
        stores=stores,
        surfaces=surfaces,
        stocked=stocked,
    )
