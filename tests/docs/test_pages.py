"""The pages name what exists."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["CONTRIBUTING.md", "SECURITY.md", "RELEASING.md", "docs/architecture.md"]


@pytest.mark.parametrize("page", PAGES)
def test_every_path_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    inner = r"(?:harnesslab|envs|extension|tests|docs|config|binder|notebooks|benchmarks)/[\w./-]*"
    paths = re.findall(rf"`({inner})[`:]", text)
    made = {"docs/_build/html"}
    missing = [path for path in paths if path not in made and not (ROOT / path).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_exists(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:`|^)make ([a-z]+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_figures_are_drawn_as_the_script_says() -> None:
    folder = ROOT / "docs" / "figures"
    drawn = runpy.run_path(str(folder / "draw.py"))["FIGURES"]
    assert {path.stem for path in folder.glob("*.svg")} == set(drawn)
    for name, draw in drawn.items():
        assert (folder / f"{name}.svg").read_text(encoding="utf-8") == draw().svg(), "run: python docs/figures/draw.py"


def test_every_page_is_in_the_table_of_contents_and_cites_nothing_from_outside() -> None:
    listed = "\n".join(
        (ROOT / "docs" / name).read_text(encoding="utf-8")
        for name in ("index.md", "concepts/index.md", "howto/index.md")
    )
    for page in (ROOT / "docs").rglob("*.md"):
        if not {"_build", "tutorials", "reference", "examples"} & set(page.relative_to(ROOT).parts):
            assert page.stem in listed or page.stem == "index" or page.stem[0] in "ao", page
            assert "DESIGN.md" not in page.read_text(encoding="utf-8"), page
