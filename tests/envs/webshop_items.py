"""Two products and a goal for the tests of webshop."""

from __future__ import annotations

from dataclasses import replace

from harnesslab_envs.webshop.goals import Goal
from harnesslab_envs.webshop.records import Product

TEA = Product(
    asin="B00TEA0001",
    title="Hill Jasmine Green Tea Bags",
    description="Steep for <b>two</b> minutes &amp; enjoy.",
    features=("Individually wrapped", "No caffeine"),
    pricing=(7.9,),
    options={"size": ("20 count", "100 count"), "color": ("light green", "dark red")},
    category="grocery",
    query="green tea",
    path="Food › Beverages › Tea › Green",
    attributes=("caffeine free", "certified organic"),
    template=None,
    human=(),
)
SHOE = replace(
    TEA,
    asin="B00SHOE001",
    title="Trail Running Shoe",
    description="",
    features=(),
    pricing=(60.0,),
    options={},
    category="fashion",
    query="running shoes",
    path="Clothing › Shoes › Athletic",
    attributes=(),
)
GOAL = Goal("human-7", TEA, "i need caffeine free tea", ("caffeine free",), ("100 count", "green"), 20.0)
