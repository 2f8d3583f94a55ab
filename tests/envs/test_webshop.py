"""webshop: search, pages, visits, and the environment on our own catalogue."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("bm25s")
pytest.importorskip("Stemmer")
pytest.importorskip("rapidfuzz")

from harnesslab.errors import ConfigError, EnvironmentFault, OrderError
from harnesslab.harness.load import load_folder
from harnesslab.rollout.env import SPLITS
from harnesslab.testing import check_env
from harnesslab.testing.play import play
from harnesslab_envs.webshop import pages, sample
from harnesslab_envs.webshop.env import ShopEnv, ShopTasks, environment
from harnesslab_envs.webshop.goals import price_of
from harnesslab_envs.webshop.markup import plain
from harnesslab_envs.webshop.oracle import plan
from harnesslab_envs.webshop.records import Product
from harnesslab_envs.webshop.sample.build import build
from harnesslab_envs.webshop.scoring import attribute_matches, score
from harnesslab_envs.webshop.search import Index
from harnesslab_envs.webshop.visit import Shop, Visit, read_action
from tests.envs.webshop_items import GOAL, SHOE, TEA


@pytest.fixture(scope="module")
def shop() -> ShopTasks:
    return environment("sample")


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
