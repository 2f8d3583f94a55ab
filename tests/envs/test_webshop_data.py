"""webshop: the published files, goals and splits, the reward, cutting the whole catalogue."""

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

from harnesslab.errors import ConfigError, EnvironmentUnavailable
from harnesslab.rollout.env import SPLITS
from harnesslab_envs.webshop import pages, records, sample
from harnesslab_envs.webshop.cut import cut, items
from harnesslab_envs.webshop.env import environment
from harnesslab_envs.webshop.goals import make_goals, price_of, share
from harnesslab_envs.webshop.records import Instruction, Review, find_files, read_products
from harnesslab_envs.webshop.scoring import attribute_matches, option_matches, score, title_score, type_score
from harnesslab_envs.webshop.visit import Shop, Visit
from tests.envs.webshop_items import GOAL, SHOE, TEA


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
    with pytest.raises(ConfigError, match="not valid JSON: nested too deeply"):
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
