"""One visit to the shop: where the shopper is, what was chosen, and what an action does."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harnesslab_envs.webshop import pages
from harnesslab_envs.webshop.pages import Part
from harnesslab_envs.webshop.records import Product, clean
from harnesslab_envs.webshop.search import Index

MAX_ACTION = 2_000
"""Characters of an action."""
_ACTION = re.compile(r"\s*(search|click)\s*\[(.+)\]", re.IGNORECASE)


class Shop:
    """The catalogue and its index; ``attributes`` offers the page that tells a product's attributes."""

    def __init__(self, products: Sequence[Product], *, attributes: bool = False):
        self.products, self.attributes = products, attributes
        self.by_asin = {product.asin.lower(): product for product in products}
        self.index = Index(products)

    def find(self, words: str) -> list[Product]:
        """The best products for some words."""
        return [self.products[place] for place in self.index.find(words)]


class Visit:
    """The state of one shopper. ``parts`` is the page at present; ``bought`` is set by the purchase."""

    def __init__(self, shop: Shop):
        self._shop = shop
        self.bought: Product | None = None
        self._start()

    def _start(self) -> None:
        self._found: list[Product] | None = None
        self._page = 1
        self._item: Product | None = None
        self._sub = ""
        self._visited: set[str] = set()
        self.chosen: dict[str, str] = {}
        self.parts = pages.search_page()

    def act(self, action: str) -> str:
        """Do ``search[words]`` or ``click[thing]``; what is wrong with the action in words, empty where nothing is."""
        read = read_action(action)
        if read is None:
            return "An action is search[words] or click[thing]."
        name, argument = read
        if name == "search":
            if self._found is not None:
                return f"There is no search bar on this page; click[{pages.BACK.lower()}] leads to it."
            self._found = self._shop.find(argument)
        else:
            part = pages.clickable(self.parts).get(argument.lower())
            if part is None:
                return f"There is no {argument[:80]!a} to click on this page."
            self._click(part)
        self.parts = self._now()
        return ""

    def _click(self, part: Part) -> None:
        if part.kind == "option":
            self.chosen[part.group] = part.text
        elif part.kind == "product":
            self._item = self._shop.by_asin[part.text.lower()]
            self._visited.add(self._item.asin)
        elif part.text == pages.BUY:
            self.bought = self._item
        elif part.text == pages.BACK:
            self._start()
        elif part.text == pages.NEXT:
            self._page += 1
        elif part.text == pages.PREVIOUS:
            self._go_back()
        else:
            self._sub = part.text

    def _go_back(self) -> None:
        if self._sub:
            self._sub = ""
        elif self._item is not None:
            self._item, self.chosen = None, {}
        else:
            self._page -= 1

    def _now(self) -> list[Part]:
        if self.bought is not None:
            return pages.done_page()
        if self._sub and self._item is not None:
            return pages.sub_page(self._item, self._sub)
        if self._item is not None:
            return pages.item_page(self._item, self.chosen, attributes=self._shop.attributes)
        if self._found is not None:
            return pages.results_page(self._found, self._page, self._visited)
        return pages.search_page()


def read_action(action: str) -> tuple[str, str] | None:
    """("search" or "click", what is in the brackets), or None for anything else. Capitals of the verb do not matter."""
    match = _ACTION.match(clean(action, MAX_ACTION)) if len(action) <= MAX_ACTION else None
    return (match[1].lower(), match[2].strip()) if match and match[2].strip() else None
