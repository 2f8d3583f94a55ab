"""How the product that a goal was written for is found and bought."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harnesslab.errors import EnvironmentFault
from harnesslab_envs.webshop import pages
from harnesslab_envs.webshop.goals import Goal
from harnesslab_envs.webshop.records import Product
from harnesslab_envs.webshop.scoring import similar
from harnesslab_envs.webshop.visit import Shop

MAX_QUERY = 1_000


def plan(shop: Shop, goal: Goal) -> list[str]:
    """Search, turn pages, open, choose, buy. Raises EnvironmentFault where no search finds the product."""
    product = goal.product
    for words in _queries(product):
        asins = [found.asin for found in shop.find(words)]
        if product.asin in asins:
            turns = asins.index(product.asin) // pages.A_PAGE
            clicks = [pages.NEXT] * turns + [product.asin, *_options(shop, goal), pages.BUY]
            return [f"search[{words}]", *(f"click[{click.lower()}]" for click in clicks)]
    raise EnvironmentFault(f"No search finds the product of the goal {goal.id}.")


def _queries(product: Product) -> Iterator[str]:
    """More and more words that only this product may have."""
    options = " ".join(value for values in product.options.values() for value in values)
    words = ""
    for more in (product.title, *product.features[:1], product.description, options):
        words = " ".join(f"{words} {more}".split())[:MAX_QUERY]
        yield words


def _options(shop: Shop, goal: Goal) -> Sequence[str]:
    """An option of its own for each that is wanted, the same one before one that is alike."""
    page = pages.clickable(pages.item_page(goal.product, {}, attributes=shop.attributes))
    offered = [part for part in page.values() if part.kind == "option"]
    chosen: dict[str, str] = {}
    for wanted in goal.options:
        fitting = sorted(
            (part.text != wanted.lower(), place) for place, part in enumerate(offered) if _fits(part, wanted)
        )
        for _, place in fitting:
            if offered[place].group not in chosen:
                chosen[offered[place].group] = offered[place].text
                break
    return list(chosen.values())


def _fits(part: pages.Part, wanted: str) -> bool:
    return part.text == wanted.lower() or similar(part.text, wanted)
