"""What the shopper is asked for: goals from the records, in the published order, shared out among the splits."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harnesslab.errors import ConfigError
from harnesslab.rollout.env import SPLITS, Split
from harnesslab_envs.mixing import mixed
from harnesslab_envs.webshop.records import Instruction, Product

Kind = Literal["human", "synthetic"]
SHUFFLE_SEED = 233
"""With which the published goals are shuffled."""
TEST, DEV = 500, 1_000
"""The first goals of the published order are the test set, the next the development set; training has the rest."""
MAX_GOALS = 100_000
PRICE_STEPS = tuple(10.0 * step for step in range(1, 100))
ANY_PRICE = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Goal:
    """One task. ``product`` is the one that it was written for; another that fits as well earns as much."""

    id: str
    product: Product
    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    price_upper: float


def price_of(product: Product) -> float:
    """What it costs. Of a range, the published code draws a new price in each process; here each product has its own."""
    if len(product.pricing) == 1:
        return product.pricing[0]
    return random.Random(f"price {product.asin}").uniform(*product.pricing)


def make_goals(products: Iterable[Product], kind: Kind) -> list[Goal]:
    """All goals, in the published order: that of the products, then shuffled with the published seed.

    ``human``: one for each instruction of a person that names attributes. ``synthetic``: one for each template and each
    combination of the product's options. Raises ConfigError where there are more than MAX_GOALS.
    """
    found = []
    for product in products:
        said = _human(product) if kind == "human" else _synthetic(product)
        found += [_priced(product, instruction, place) for place, instruction in enumerate(said)]
        if len(found) > MAX_GOALS:
            raise ConfigError(f"There are more than {MAX_GOALS:,} {kind} goals; use a smaller catalogue.")
    random.Random(SHUFFLE_SEED).shuffle(found)
    return [
        Goal(f"{kind}-{index}", product, text, instruction.attributes, instruction.options, upper)
        for index, (product, instruction, text, upper) in enumerate(found)
    ]


def share(goals: Sequence[Goal]) -> Mapping[Split, list[Goal]]:
    """The goals by split.

    Where there are more than the published test and development sets take, these are ``sealed`` and ``gate``, and the rest
    is ``search``. A smaller catalogue is divided in thirds by product: no product is asked for in two splits.
    """
    if len(goals) > TEST + DEV:
        return {
            "search": list(goals[TEST + DEV :]),
            "gate": list(goals[TEST : TEST + DEV]),
            "sealed": list(goals[:TEST]),
        }
    asked = list({goal.product.asin: goal.product for goal in goals}.values())
    order = mixed(asked, lambda product: product.category, lambda product: product.asin)
    thirds = {product.asin: SPLITS[3 * place // len(order)] for place, product in enumerate(order)}
    ranks = {product.asin: place for place, product in enumerate(order)}
    shares: dict[Split, list[Goal]] = {split: [] for split in SPLITS}
    for goal in sorted(goals, key=lambda goal: ranks[goal.product.asin]):
        shares[thirds[goal.product.asin]].append(goal)
    return shares


def _human(product: Product) -> Iterator[Instruction]:
    return (instruction for instruction in product.human if instruction.attributes)


def _synthetic(product: Product) -> Iterator[Instruction]:
    if product.template is None:
        return
    names = sorted(product.options)
    if math.prod(len(product.options[name]) for name in names) > MAX_GOALS:
        raise ConfigError(f"The options of product {product.asin} give more than {MAX_GOALS:,} goals.")
    for values in itertools.product(*(product.options[name] for name in names)):
        wanted = ", and ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
        text = product.template.text + (f" with {wanted}" if wanted else "")
        yield Instruction(text, product.template.attributes, values)


def _priced(product: Product, instruction: Instruction, place: int) -> tuple[Product, Instruction, str, float]:
    """With the highest price that is allowed: the larger of two of the next four tens above the product's own."""
    above = [step for step in PRICE_STEPS if step > price_of(product)][:4]
    text = instruction.text.strip(".")
    if len(above) < 2:
        return product, instruction, text, ANY_PRICE
    upper = max(random.Random(f"upper {product.asin} {place}").sample(above, 2))
    return product, instruction, f"{text}, and price lower than {upper:.2f} dollars", upper
