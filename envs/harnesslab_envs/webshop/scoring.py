"""The published reward for a purchase: its type, attributes, options and price against the goal's (own code, same rules)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rapidfuzz import fuzz

from harnesslab_envs.webshop.goals import Goal, price_of
from harnesslab_envs.webshop.records import Product

SIMILAR = 85
"""Two texts mean the same when the ratio of their token sets, a whole number of 100, is above this."""
NAMES_ALIKE = 0.2
"""Products are of one type when more than this share of the wanted title's words is in the bought one's."""
CATEGORY_MARK = "›"

_COLOURS = """amber apricot aqua azure beige black blue blush bronze brown burgundy camel caramel champagne charcoal chestnut
chocolate cognac copper coral cream crimson cyan dark denim ebony emerald espresso fuchsia gold graphite gray green grey indigo
ivory jade khaki lavender lemon light lilac lime magenta mahogany maroon mauve midnight mint mocha multicolor mustard navy nude
olive orange peach pewter pink plum purple red rose ruby rust sand sapphire silver slate steel stone tan taupe teal turquoise
violet walnut wheat white wine yellow"""
COLOURS = tuple(sorted(_COLOURS.split()))
"""Colours are compared by the first of these words that is in them, in this order: "light navy blue" is "blue"."""

# A title's words without these stand for its nouns, which the published code finds with a language model.
_COMMON = """a about above after all also an and any are as at be best both but by can each extra for free from great has have
her his high how i if in into is it its large long made more most my new no non not of off on one only or our out over own
perfect per plus set she small so some such super than that the their them then these they this those to too two under up use
used very via was we well when which who will with without you your"""
_NO_NOUNS = frozenset(_COMMON.split())
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Score:
    """``total`` from 0 to 1; the parts are the published ones. ``options`` is None where the goal names none."""

    total: float
    type: float
    attributes: float
    options: float | None
    price: bool


def score(goal: Goal, bought: Product, chosen: Mapping[str, str]) -> Score:
    """What buying ``bought`` with the ``chosen`` options (name to value) is worth."""
    kind = type_score(goal.product, bought)
    attributes = attribute_matches(goal.attributes, bought)
    options = option_matches(goal.options, chosen.values())
    price = price_of(bought) <= goal.price_upper
    wanted = len(goal.attributes) + len(goal.options) + 1
    return Score(
        total=(attributes + options + price) / wanted * kind,
        type=kind,
        attributes=attributes / len(goal.attributes),
        options=options / len(goal.options) if goal.options else None,
        price=price,
    )


def type_score(wanted: Product, bought: Product) -> float:
    """1 for the same type of product; 0.5, 0.1 or 0 the less the titles share."""
    shelves = [{part.strip() for part in product.path.split(CATEGORY_MARK)} for product in (wanted, bought)]
    alike = title_score(wanted.title, bought.title)
    if alike == 0:
        return 0.0
    if alike < 0.1:
        return 0.1
    same = bought.query == wanted.query or len(shelves[0] & shelves[1]) >= 2 or alike > NAMES_ALIKE
    return 1.0 if same else 0.5


def title_score(wanted: str, bought: str) -> float:
    """The share of the wanted title's words that are in the bought one's; 0.2 where the wanted one has none."""
    words = title_words(wanted)
    return len(set(words) & set(title_words(bought))) / len(words) if words else NAMES_ALIKE


def title_words(title: str) -> list[str]:
    """The words that may name the thing, in lower case: no numbers, and none of the most common other words."""
    words = _WORD.findall(title.lower())
    return [word for word in words if word not in _NO_NOUNS and not word[0].isdigit()]


def attribute_matches(wanted: Iterable[str], bought: Product) -> int:
    """How many wanted attributes are like one of the product's, or stand in its title, features or description."""
    texts = [bought.title.lower(), " ".join(bought.features).lower(), bought.description.lower()]
    return sum(
        any(similar(known, attribute) for known in bought.attributes) or any(attribute in text for text in texts)
        for attribute in wanted
    )


def option_matches(wanted: Iterable[str], chosen: Iterable[str]) -> int:
    """How many wanted options are like one that was chosen; colours are compared by their colour word."""
    values = [colour_word(value) for value in chosen]
    return sum(any(similar(value, colour_word(option)) for value in values) for option in wanted)


def similar(one: str, two: str) -> bool:
    """Is the ratio of their token sets above SIMILAR? As published: ASCII only, case and punctuation aside, rounded."""
    return round(fuzz.token_set_ratio(_plain(one), _plain(two))) > SIMILAR


def colour_word(text: str) -> str:
    """The first colour word in the text, also inside of another word; the text itself where there is none."""
    return next((colour for colour in COLOURS if colour in text), text)


def _plain(text: str) -> str:
    return re.sub(r"\W", " ", text.encode("ascii", "ignore").decode()).lower().strip()
