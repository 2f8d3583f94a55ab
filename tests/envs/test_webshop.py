"""webshop: the published files, goals and splits, search, pages, the reward, and the environment on our own catalogue."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("bm25s")
pytest.importorskip("Stemmer")
pytest.importorskip("rapidfuzz")

from harnesslab.errors import ConfigError, EnvironmentFault, EnvironmentUnavailable, OrderError
from harnesslab.harness.load import load_folder
from harnesslab.rollout.env import SPLITS
from harnesslab.testing import check_env
from harnesslab.testing.play import play
from harnesslab_envs.webshop import pages, records, sample
from harnesslab_envs.webshop.cut import cut, items
from harnesslab_envs.webshop.env import ShopEnv, ShopTasks, environment
from harnesslab_envs.webshop.goals import Goal, make_goals, price_of, share
from harnesslab_envs.webshop.markup import plain
from harnesslab_envs.webshop.oracle import plan
from harnesslab_envs.webshop.records import Instruction, Product, Review, find_files, read_products
from harnesslab_envs.webshop.sample.build import build
from harnesslab_envs.webshop.scoring import attribute_matches, option_matches, score, title_score, type_score
from harnesslab_envs.webshop.search import Index
from harnesslab_envs.webshop.visit import Shop, Visit, read_action

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


@pytest.fixture(scope="module")
def shop() -> ShopTasks:
    return environment("sample")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The smallest catalogue: one product, one instruction."""
    product = {
        "asin": "B000000001",
        "name": "Red Tin Mug",
        "full_description": None,
        "small_description": "Holds a pint",
        "pricing": "$9.50 - $1,012.00",
        "category": "garden",
        "query": " Tin Mug ",
        "product_category": "Home › Kitchen › Mugs",
        "customization_options": {"Size": [{"value": " 1/2  Pint ", "image": None}], "None": None},
        "images": ["x"],
    }
    said = {"instruction": "buy a mug.", "instruction_attributes": ["red tin"], "instruction_options": ["1 | 2 pint"]}
    files: dict[str, Any] = {
        "items_shuffle.json": [product],
        "items_ins_v2.json": {"B000000001": {"attributes": ["red tin"]}},
        "items_human_ins.json": {"B000000001": [said]},
    }
    for name, value in files.items():
        (tmp_path / name).write_text(json.dumps(value), "utf-8")
    return tmp_path


def edit(path: Path, change: Any) -> None:
    """Change the value in a JSON file."""
    value = json.loads(path.read_text("utf-8"))
    change(value)
    path.write_text(json.dumps(value), "utf-8")


# --- files


def test_a_product_is_read_as_published(folder: Path) -> None:
    (product,) = read_products(find_files(folder)).values()
    assert (product.query, product.description, product.features) == ("tin mug", "", ("Holds a pint",))
    assert product.pricing == (9.5, 1012.0) and product.price_tag == "$9.5 to $1012.0"
    assert product.options == {"size": ("1 | 2 pint",)}
    assert product.human == (Instruction("buy a mug.", ("red tin",), ("1 | 2 pint",)),)
    assert (product.rating, product.reviews) == ("N.A.", ())


def test_no_price_is_a_hundred_and_odd_or_doubled_numbers_are_left_out(folder: Path) -> None:
    def more(products: list[dict[str, Any]]) -> None:
        products[0]["pricing"] = ""
        products += [{**products[0], "asin": "nan"}, {**products[0], "asin": "B0000000001"}, {**products[0]}]

    edit(folder / "items_shuffle.json", more)
    (product,) = read_products(find_files(folder)).values()
    assert product.pricing == (100.0,)


def test_reviews_are_read_where_they_are(folder: Path) -> None:
    rows = [
        {"asin": "B000000001", "average_rating": 4.5, "reviews": [{"title": "Fine", "stars": 4, "review": "Good."}]}
    ]
    (folder / "reviews.json").write_text(json.dumps(rows), "utf-8")
    (product,) = read_products(find_files(folder)).values()
    assert (product.rating, product.reviews) == ("4.5", (Review("Fine", "4", "Good."),))
    assert pages.render(pages.sub_page(product, "Reviews")).endswith('"Fine"\n4\nGood.')


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("items_shuffle.json", lambda v: v[0].pop("name"), r"items_shuffle.json, product 0, key 'name': is missing"),
        ("items_shuffle.json", lambda v: v[0].update(name=["x"]), "key 'name': must be a text, not a list"),
        ("items_shuffle.json", lambda v: v[0].update(pricing="cheap"), "key 'pricing': must be a price"),
        ("items_shuffle.json", lambda v: v[0].update(pricing="$1.2.3"), "key 'pricing': must be a price"),
        ("items_shuffle.json", lambda v: v[0].update(pricing="$" + "9" * 399), "key 'pricing': must be a price"),
        ("items_shuffle.json", lambda v: v[0].update(customization_options=[1]), "must be an object, not a list"),
        ("items_shuffle.json", lambda v: v[0].update(customization_options={"a": ["b"]}), "a list of objects"),
        ("items_shuffle.json", lambda v: v[0].update(customization_options={"a": [{}]}), "key 'value': is missing"),
        ("items_shuffle.json", lambda v: v.insert(0, 3), "product 0: must be an object, not a number"),
        ("items_shuffle.json", lambda v: v.clear(), "holds no products"),
        ("items_ins_v2.json", lambda v: v.update(B000000001=[]), "entry 'B000000001': must be an object"),
        ("items_ins_v2.json", lambda v: v["B000000001"].update(attributes=[{}]), "key 'attributes': must be a text"),
        ("items_human_ins.json", lambda v: v.update(B000000001={}), "must be a list of instructions"),
        ("items_human_ins.json", lambda v: v["B000000001"][0].pop("instruction"), "instruction 0, key 'instruction'"),
    ],
)
def test_a_wrong_value_is_named(folder: Path, file: str, change: Any, message: str) -> None:
    edit(folder / file, change)
    with pytest.raises(ConfigError, match=message):
        environment(str(folder)).tasks("search")


def test_missing_broken_and_large_files_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="has 1 human goals, too few"):
        environment(str(folder)).tasks("search")
    (folder / "items_shuffle.json").write_text("[" * 100_000, "utf-8")
    with pytest.raises(ConfigError, match="cannot be read as JSON"):
        environment(str(folder)).tasks("search")
    monkeypatch.setattr(records, "MAX_MB", 0)
    with pytest.raises(ConfigError, match=r"files of up to 0 MB are read\. Use the 1,000 products"):
        environment(str(folder)).tasks("search")
    (folder / "items_human_ins.json").unlink()
    with pytest.raises(EnvironmentUnavailable, match=r"must hold items_human_ins\.json, and items_shuffle_1000\.json"):
        _ = environment(str(folder)).version


def test_the_thousand_come_before_all(folder: Path) -> None:
    for name in ("items_shuffle", "items_ins_v2"):
        (folder / f"{name}_1000.json").write_bytes((folder / f"{name}.json").read_bytes())
    assert find_files(folder).products.name == "items_shuffle_1000.json"


def test_data_is_found_by_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESSLAB_DATA", str(folder))
    assert environment().version.startswith("1+sample.")
    folder.rename(folder.with_name("moved"))
    folder.mkdir()
    folder.with_name("moved").rename(folder / "webshop")
    with pytest.raises(ConfigError, match="too few"):
        environment().tasks("search")
    assert environment("sample").version.startswith("1+sample.")


def test_huge_and_odd_texts_are_bounded(folder: Path) -> None:
    def change(products: list[dict[str, Any]]) -> None:
        options = {f"o{i}": [{"value": f"{i}-{j} {'x' * 900}"} for j in range(90)] for i in range(9)}
        long = {"name": "\ud800<b>T" * 9_000, "full_description": "<p>" * 90_000, "customization_options": options}
        products[0].update(long, small_description=["y " * 90_000] * 9)

    edit(folder / "items_shuffle.json", change)
    (product,) = read_products(find_files(folder)).values()
    assert sum(map(len, product.options.values())) == records.MANY
    visit = Visit(Shop([product], attributes=True))
    for action in ("search[pint t y]", "click[b000000001]", *(f"click[{name}]" for name in pages.SUB_PAGES)):
        assert visit.act(action) == ""
        text = pages.render(visit.parts)
        assert len(text) <= 20_000 and text.encode()
        if action.startswith("click[b"):
            assert "more, not shown]" in text and text.endswith("[button] Buy Now [button_]")
            assert len(pages.clickable(visit.parts)) > records.MANY
        if visit.parts[-1].text != "Buy Now" and "click" in action:
            visit.act("click[< prev]")


# --- goals and splits


def test_price_limits_are_among_the_next_four_tens() -> None:
    products = [replace(TEA, asin=f"B{i}", pricing=(13.0,), human=(Instruction("x.", ("a",)),)) for i in range(60)]
    goals = make_goals(products, "human")
    assert Counter(goal.price_upper for goal in goals).keys() == {30.0, 40.0, 50.0}
    assert all(goal.text == f"x, and price lower than {goal.price_upper:.2f} dollars" for goal in goals)
    (dear,) = make_goals([replace(products[0], pricing=(985.0,))], "human")
    assert (dear.text, dear.price_upper) == ("x", 1_000_000.0)


def test_goals_come_in_the_published_order() -> None:
    """As shuffled by a generator that starts at 233; instructions without attributes are left out before that."""
    said = (Instruction("one", ("a",)), Instruction("none", ()), Instruction("two", ("a",)))
    products = [replace(TEA, asin=f"B{i}", human=said) for i in range(20)]
    expected = [(f"B{i}", text) for i in range(20) for text in ("one", "two")]
    random.Random(233).shuffle(expected)
    goals = make_goals(products, "human")
    assert [(goal.product.asin, goal.text.split(",")[0]) for goal in goals] == expected
    assert [goal.id for goal in goals][:2] == ["human-0", "human-1"]


def test_templates_give_a_goal_for_each_combination_of_options() -> None:
    product = replace(TEA, template=Instruction("Find me tea", ("organic",)))
    goals = make_goals([product, SHOE], "synthetic")
    assert len(goals) == 4 and {goal.options for goal in goals} == {
        (colour, size) for colour in ("light green", "dark red") for size in ("20 count", "100 count")
    }
    assert any(
        goal.text.startswith("Find me tea with color: dark red, and size: 20 count, and price") for goal in goals
    )
    huge = replace(product, options={str(i): tuple("abcdefghij") for i in range(9)})
    with pytest.raises(ConfigError, match="more than 100,000 goals"):
        make_goals([huge], "synthetic")


def test_the_published_splits_where_there_are_enough_goals() -> None:
    goals = [replace(GOAL, id=f"human-{i}") for i in range(1_600)]
    shares = share(goals)
    assert [goal.id for goal in shares["sealed"]] == [f"human-{i}" for i in range(500)]
    assert [goal.id for goal in shares["gate"]] == [f"human-{i}" for i in range(500, 1_500)]
    assert [goal.id for goal in shares["search"]] == [f"human-{i}" for i in range(1_500, 1_600)]


def test_a_small_catalogue_is_divided_by_product() -> None:
    products = [replace(TEA, asin=f"B{i}", category=str(i % 3)) for i in range(90)]
    goals = [replace(GOAL, id=f"human-{i}", product=products[i % 90]) for i in range(270)]
    shares = share(goals)
    owners = [{goal.product.asin for goal in shares[split]} for split in SPLITS]
    assert [len(owner) for owner in owners] == [30, 30, 30] and len(set.union(*owners)) == 90
    assert all(
        Counter(goal.product.category for goal in shares[split]) == {"0": 30, "1": 30, "2": 30} for split in SPLITS
    )


def test_a_price_range_has_one_fixed_price() -> None:
    product = replace(TEA, pricing=(10.0, 20.0))
    assert 10 <= price_of(product) <= 20 and price_of(product) == price_of(product)
    assert price_of(product) != price_of(replace(product, asin="B1"))


# --- the reward


def test_the_right_purchase_is_worth_one() -> None:
    won = score(GOAL, TEA, {"size": "100 count", "color": "light green"})
    assert (won.total, won.type, won.attributes, won.options, won.price) == (1.0, 1.0, 1.0, 1.0, True)


def test_each_part_counts_the_same() -> None:
    """(attributes 1 + options 2 + price 1) is 4: what is missing costs a quarter each."""
    assert score(GOAL, TEA, {"size": "100 count"}).total == 0.75
    assert score(GOAL, TEA, {}).total == 0.5
    assert score(GOAL, replace(TEA, pricing=(20.01,)), {}).total == 0.25
    assert score(GOAL, replace(TEA, pricing=(20.0,), attributes=()), {}).total == 0.25
    bare = replace(GOAL, options=())
    assert score(bare, TEA, {"size": "20 count"}).total == 1.0 and score(bare, TEA, {}).options is None


@pytest.mark.parametrize(
    ("wanted", "known", "matches"),
    [
        (
            ["tea tree", "essential oils", "natural ingredients"],
            ["tea tree", "essential oil", "natural ingredients"],
            3,
        ),
        (["tea tree", "essential oils"], ["essential oil"], 1),
        (["english tea"], ["earl grey"], 0),
        (["caffeine"], [], 1),  # stands in a feature
        (["jasmine green"], [], 1),  # stands in the title
        (["<b>two"], [], 1),  # stands in the description as it was published
    ],
)
def test_attributes(wanted: list[str], known: list[str], matches: int) -> None:
    assert attribute_matches(wanted, replace(TEA, attributes=tuple(known))) == matches


@pytest.mark.parametrize(
    ("wanted", "chosen", "matches"),
    [
        (["grey", "XL", "pack of 12"], ["pack of 12", "grey", "xl"], 3),
        (["grey", "xl", "pack of 12"], ["pack of 12", "blue", "xl"], 2),
        (["cool powder snow"], ["powder snow"], 1),
        (["navy blue"], ["sky blue"], 1),  # both are blue
        (["red"], ["tailored"], 1),  # as published, a colour is found inside of a word, too
        (["size: 5.5"], ["5.5"], 1),
        (["5.5"], ["6.5"], 1),  # as published: the tokens of 5.5 are 5, and that is one of 6.5
        (["small"], ["large"], 0),
        (["a"], [], 0),
        ([], ["a"], 0),
        (["é"], ["é"], 0),  # as published, only ASCII is compared
    ],
)
def test_options(wanted: list[str], chosen: list[str], matches: int) -> None:
    assert option_matches(wanted, chosen) == matches


def test_the_type_of_a_product() -> None:
    other = replace(TEA, query="black tea", path="a › b › c")
    assert type_score(TEA, SHOE) == 0.0  # no word in common
    assert title_score("green tea of the hill", "Green Tree") == pytest.approx(1 / 3)
    assert type_score(TEA, other) == 1.0  # the same title
    shared = replace(other, title="Hill House")  # 1 of 5 words: not above 0.2
    assert type_score(TEA, shared) == 0.5
    assert type_score(TEA, replace(shared, query="green tea")) == 1.0
    assert type_score(TEA, replace(shared, path="Tea › x › Food")) == 1.0
    assert type_score(TEA, replace(shared, path="Tea › x › Tea")) == 0.5  # one shelf, named twice
    many = replace(TEA, title=" ".join(f"word{chr(97 + i)}" for i in range(11)))
    assert type_score(many, replace(TEA, title="worda")) == 0.1
    assert type_score(replace(TEA, title="the 12 of"), SHOE) == 0.5  # a title without words


# --- search


def test_search_ranks_stems_without_common_words() -> None:
    products = [replace(TEA, asin=str(i), title=title, description="", options={}, features=()) for i, title in enumerate(
        ["Running shoe", "Shoes", "Tea for shoes and shoes", "Lamp", "The lamp's 1.7 fl oz", "Lamp"]
    )]  # fmt: skip
    index = Index(products)
    assert index.find("SHOES")[0] == 2 and set(index.find("shoe")) == {0, 1, 2}
    assert index.find("lamp") == [3, 5, 4], "equal ones stay in the catalogue's order, longer ones come later"
    assert index.find("run") == [0] and index.find("1.7") == [4]
    assert index.find("the and of") == index.find("zebra") == index.find("\ud800") == []
    assert index.find("lamp", 1) == [3]
    assert Index([]).find("lamp") == []


def test_search_reads_the_published_parts_of_a_product() -> None:
    index = Index([TEA, SHOE])
    assert all(index.find(words) == [0] for words in ("jasmine", "steep", "enjoy", "wrapped", "100 count", "size"))
    assert index.find("caffeine") == [], "only the first feature is searched"


# --- pages and visits


def visit_of(*more: Product) -> Visit:
    return Visit(Shop([TEA, *more]))


def test_a_visit_in_the_published_form() -> None:
    visit = visit_of(SHOE)
    assert pages.render(visit.parts) == "WebShop\n[button] Search [button_]"
    assert visit.act("search[jasmine tea]") == ""
    assert pages.render(visit.parts) == (
        "[button] Back to Search [button_]\nPage 1 (Total results: 1)\n\n[button] B00TEA0001 [button_]\n"
        "Hill Jasmine Green Tea Bags\n$7.9"
    )
    assert visit.act("Click[B00TEA0001]") == "" and visit.act("click[100 count]") == ""
    assert pages.render(visit.parts) == (
        "You have clicked 100 count.\n[button] Back to Search [button_]\n[button] < Prev [button_]\n"
        "size\n  [button] 20 count [button_]\n  [clicked button] 100 count [clicked button_]\n"
        "color\n  [button] light green [button_]\n  [button] dark red [button_]\n"
        "Hill Jasmine Green Tea Bags\nPrice: $7.9\nRating: N.A.\n[button] Description [button_]\n"
        "[button] Features [button_]\n[button] Reviews [button_]\n[button] Buy Now [button_]"
    )
    assert visit.act("click[description]") == ""
    assert pages.render(visit.parts).endswith("[button] < Prev [button_]\nSteep for two minutes & enjoy.")
    assert visit.act("click[< prev]") == "" and visit.chosen == {"size": "100 count"}
    assert visit.act("click[attributes]").startswith("There is no 'attributes'")
    assert visit.act("click[reviews]") == "" and pages.render(visit.parts).endswith("No Reviews")
    visit.act("click[< prev]")
    visit.act("click[< prev]")
    assert "[clicked button] B00TEA0001 [clicked button_]" in pages.render(visit.parts) and visit.chosen == {}
    assert visit.act("search[tea]").startswith("There is no search bar on this page")
    assert visit.act("click[back to search]") == "" and visit.act("search[zebra]") == ""
    assert "Page 1 (Total results: 0)" in pages.render(visit.parts)


def test_ten_products_a_page_and_fifty_in_all() -> None:
    visit = Visit(Shop([replace(TEA, asin=f"B{i:03}") for i in range(64)]))
    visit.act("search[jasmine]")
    seen: list[str] = []
    for page in range(1, 6):
        things = pages.clickable(visit.parts)
        seen += [part.text for part in things.values() if part.kind == "product"]
        assert f"Page {page} (Total results: 50)" in pages.render(visit.parts)
        assert ("< prev" in things, "next >" in things) == (page > 1, page < 5)
        assert visit.act("click[next >]") == ("" if page < 5 else "There is no 'next >' to click on this page.")
    assert seen == [f"B{i:03}" for i in range(50)]
    visit.act("click[b045]")
    visit.act("click[< prev]")
    assert "Page 5" in pages.render(visit.parts)
    assert visit.act("click[< prev]") == "" and "Page 4" in pages.render(visit.parts)


def test_a_button_goes_before_an_option_of_the_same_text_and_the_last_group_wins() -> None:
    odd = replace(TEA, options={"a": ("one size", "buy now"), "b": ("one size", "search", "a [b] c")})
    visit = Visit(Shop([odd]))
    visit.act("search[jasmine]")
    visit.act("click[b00tea0001]")
    assert visit.act("click[one size]") == "" and visit.act("click[a [b] c]") == ""
    assert visit.chosen == {"b": "a [b] c"}
    assert visit.act("click[search]").startswith("There is no 'search'")
    visit.act("click[buy now]")
    assert visit.bought is odd


def test_the_page_of_attributes_is_an_option() -> None:
    visit = Visit(Shop([TEA], attributes=True))
    visit.act("search[jasmine]")
    visit.act("click[b00tea0001]")
    assert visit.act("click[attributes]") == ""
    assert pages.render(visit.parts).endswith(
        "caffeine free\ncertified organic\ngrocery\ngreen tea\nFood › Beverages › Tea › Green"
    )


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a<br>b &lt; <i>c</i>\n d", "a b < c d"),
        ("<script>alert(1)</script>x<style>y</style>z", "x z"),
        ("5 < 6 and 7 > 2", "5 < 6 and 7 > 2"),
        ("cut <b", "cut"),
    ],
)
def test_tags_are_left_out(text: str, seen: str) -> None:
    assert plain(text).startswith(seen)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=300))
def test_any_text_can_be_read_shown_and_said(text: str) -> None:
    assert "\n" not in plain(text)
    read = read_action(text)
    assert read is None or read[0] in ("search", "click")
    product = replace(TEA, title=text, description=text, features=(text,), options={text: (text,)}, attributes=(text,))
    for part in (
        pages.item_page(product, {text: text}, attributes=True),
        *(pages.sub_page(product, n) for n in pages.SUB_PAGES),
    ):
        assert len(pages.render(part)) <= 20_000


SAMPLE_SHOP = environment("sample")


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(st.text(max_size=80), st.text(max_size=30).map(lambda t: f"search[{t}]"), st.integers(0, 40)),
        max_size=12,
    )
)
def test_no_action_breaks_an_episode(actions: list[str | int]) -> None:
    env = SAMPLE_SHOP.make()
    _, info = env.reset(options=SAMPLE_SHOP.tasks("search")[0].options)
    for action in actions:
        listed = info["public"].get("admissible") or ["search[tea]"]
        said = action if isinstance(action, str) else listed[action % len(listed)]
        observation, _, over, _, info = env.step(said)
        assert observation.encode() and (isinstance(action, str) or not info["public"]["invalid"])
        if over:
            break


# --- the environment


def test_the_sample_keeps_the_contract() -> None:
    check_env("webshop", limit=5, data="sample").raise_for_failures()


def test_the_oracle_solves_every_task_of_the_sample(shop: ShopTasks) -> None:
    for split in SPLITS:
        tasks = shop.tasks(split)
        assert Counter(task.family for task in tasks) == dict.fromkeys(
            ("beauty", "electronics", "fashion", "garden", "grocery"), 6
        )
        for task in tasks:
            env = shop.make()
            played = play(env, task, shop.oracle(task), shop.max_steps)
            assert played.solved and played.moments[-1].reward == 1.0, task.id


def test_a_task_needs_its_options_and_its_price(shop: ShopTasks) -> None:
    """Buying the right product without options, or a dear one with the same attributes, is not enough."""
    content = shop._content
    asked = [goal for goals in content.shares.values() for goal in goals]
    assert all(goal.options and score(goal, goal.product, {}).total < 1 for goal in asked)
    dear = [
        goal
        for goal in asked
        for other in content.shop.products
        if attribute_matches(goal.attributes, other) == len(goal.attributes) and price_of(other) > goal.price_upper
    ]
    assert len(dear) >= 30


def test_nothing_private_is_shown(shop: ShopTasks) -> None:
    for task in [task for split in SPLITS for task in shop.tasks(split)]:
        goal = shop._content.goals[task.id]
        observation, info = shop.make().reset(options=task.options)
        shown = json.dumps([observation, info["public"]]).lower()
        assert goal.product.asin.lower() not in shown and goal.product.title.lower() not in shown
        assert task.id not in shown and set(info["public"]) == {"instruction", "invalid"}
        assert info["private"] == {"solved": False, "progress": 0.0}


def test_an_episode(shop: ShopTasks) -> None:
    goal = replace(GOAL, options=("100 count",))
    env = ShopEnv(Shop([TEA, SHOE]), {"g": goal})
    with pytest.raises(OrderError):
        env.step("click[search]")
    with pytest.raises(EnvironmentFault, match="takes a Task's options"):
        env.reset(seed=0)
    _, info = env.reset(options={"goal": "g"})
    assert "admissible" not in info["public"]
    observation, *_, info = env.step({"name": "click", "arguments": {}})
    assert info["public"]["invalid"] and observation.startswith("An action is search[words] or click[thing].\nWebShop")
    *_, info = env.step("search[hill]")
    assert info["public"]["admissible"] == ["click[back to search]", "click[b00tea0001]"]
    env.step("click[b00tea0001]")
    observation, reward, over, truncated, info = env.step("click[buy now]")
    assert (observation, over, truncated) == ("Thank you for shopping with us!", True, False)
    assert reward == pytest.approx(2 / 3) and info["private"] == {
        "solved": False, "progress": pytest.approx(2 / 3), "r_type": 1.0, "r_att": 1.0, "r_option": 0.0, "r_price": 1.0
    }  # fmt: skip
    with pytest.raises(OrderError):
        env.step("search[hill]")
    env.close()
    env.close()
    with pytest.raises(EnvironmentFault, match="has no split 'train'"):
        shop.tasks("train")  # type: ignore[arg-type]


def test_the_oracle_turns_pages_and_takes_each_option_once() -> None:
    twins = [replace(TEA, asin=f"B{i:03}") for i in range(30)]
    goal = replace(GOAL, product=twins[25], options=("dark red", "100 Count"))
    steps = plan(Shop(twins), goal)
    assert steps[1:] == [
        "click[next >]",
        "click[next >]",
        "click[b025]",
        "click[dark red]",
        "click[100 count]",
        "click[buy now]",
    ]
    with pytest.raises(EnvironmentFault, match="No search finds"):
        plan(Shop([replace(TEA, asin=f"B{i:03}") for i in range(99)]), replace(GOAL, product=replace(TEA, asin="B098")))


def test_wrong_options_are_told() -> None:
    with pytest.raises(ConfigError, match="goals must be one of human, synthetic"):
        environment(goals="all")
    with pytest.raises(ConfigError, match="max_steps must be 1 or more"):
        environment(max_steps=0)


def test_the_version_tells_data_and_options(shop: ShopTasks) -> None:
    assert shop.version.startswith("1+sample.") and ".bm25s" in shop.version
    made = environment("sample", goals="synthetic", attributes=True)
    assert ".synthetic.attributes.bm25s" in made.version
    assert len(made.tasks("sealed")) > 30


def test_the_committed_sample_is_what_its_source_gives() -> None:
    files = build((sample.FOLDER / "source.yaml").read_text("utf-8"))
    assert {name: (sample.FOLDER / name).read_text("utf-8") for name in files} == files
    assert sum(len(text.encode()) for text in files.values()) < 200_000
    assert all(product["notice"].startswith("made up") for product in json.loads(files["items_shuffle.json"]))


def test_the_starter_loads(shop: ShopTasks) -> None:
    assert load_folder(shop.starter()).name == "webshop"


# --- cutting the whole catalogue


@settings(deadline=None, max_examples=60)
@given(
    st.one_of(
        st.lists(
            st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5)
        ),
        st.dictionaries(st.text(), st.floats(allow_nan=False) | st.booleans()),
    ),
    st.integers(1, 50),
    st.sampled_from([None, 1]),
)
def test_any_list_or_object_is_streamed(value: Any, chunk: int, indent: int | None) -> None:
    found = list(items(io.StringIO(json.dumps(value, indent=indent) + "\n"), "x", chunk))
    assert found == (list(value.items()) if isinstance(value, dict) else [("", item) for item in value])


@pytest.mark.parametrize("text", ["", "3", "[1", "[1 2]", '{"a" 1}', '{"a": 1', "[x]", "[1,"])
def test_a_broken_file_is_told(text: str) -> None:
    with pytest.raises(ConfigError, match=r"big\.json"):
        list(items(io.StringIO(text), "big.json", 3))


def test_a_cut_catalogue_has_the_same_goals_and_fewer_others(tmp_path: Path) -> None:
    assert cut(sample.FOLDER, tmp_path / "small", 5) == 95
    whole, small = (read_products(find_files(folder)) for folder in (sample.FOLDER, tmp_path / "small"))
    assert list(small) == [asin for asin in whole if asin in small]
    assert make_goals(small.values(), "human") == make_goals(whole.values(), "human")
    with pytest.raises(ConfigError, match="a folder of its own"):
        cut(tmp_path / "small", tmp_path / "small", 5)
    with pytest.raises(ConfigError, match="cannot be cut"):
        cut(tmp_path / "none", tmp_path / "other", 5)
