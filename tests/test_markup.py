"""Whatever a model, an environment or a repository says, a page shows it as text."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab import markup
from harnesslab.analysis.show import verdict_html
from harnesslab.analysis.table import Table
from harnesslab.llm import Meter
from harnesslab.llm.types import Completion
from harnesslab.plaintext import clip, one_line, shown, visible
from harnesslab.rollout.progress import Bar
from harnesslab.trainer.proposal import Evidence, Prediction, Proposal, Proposals

OURS = {
    "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "b", "i", "ul", "li", "pre", "span", "div", "details",
    "summary", "progress",
}  # fmt: skip
HOSTILE = (
    "<script>alert(1)</script>",
    "</td></table><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    '"><svg/onload=alert(1)>',
    "<style>*{display:none}</style>",
    "<!-- gone",
    "&lt;b&gt; &amp; &#60;b&#62;",
    "{} {0} {0.__class__} %s",
    "admin\u202etxt.exe\u2066",
    "\x1b[2J\x07red\r\nline",
)


class Read(HTMLParser):
    """The elements, the attributes and the text of a page."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(str(page))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def check(page: str, said: str, limit: int = 100) -> None:
    """The page holds nothing but our elements, all closed, and shows the start of what was said."""
    read = Read(page)
    assert read.names <= OURS and not read.open
    assert read.attributes <= {"scope", "style", "class", "open", "role", "max", "value", "aria-label"}
    assert one_line(said)[:limit] in one_line(read.text)
    assert visible(page) == page


def pages(evil: str) -> dict[str, str]:
    proposal = Proposal(
        {"action/x.yaml": evil}, layer=evil, kind=evil, name=evil, about=evil,
        evidence=(Evidence(evil, 0, evil, evil),), prediction=Prediction((evil,), evil), estimator=evil,
    )  # fmt: skip
    line, meter = one_line(evil), Meter()
    meter.count(Completion("", cached=True), evil)
    verdict = {
        "decision": evil, "why": evil, "criterion": evil, "value": 0.5, "tasks": 1,
        "solved": {"baseline": [], "candidate": [evil]}, "metrics": {evil: [1.0, 2.0]}, "statistics": {evil: evil},
        "flips": [{"task": evil, "from": False, "to": True, "incidental": True}], "cost": {"episodes": 1},
    }  # fmt: skip
    return {
        "table": markup.table((evil,), [(evil,), (None,)], caption=evil, now=0, below=[evil]),
        "section": markup.section(evil, markup.block(evil)),
        "fold": markup.fold(evil, markup.diff(f"+{line}\n-{line}")),
        "diff": markup.diff(f"--- a\n+++ b\n+{line}\n {line}"),
        "error": markup.error(f"x {evil}"),
        "items": markup.items([evil]),
        "fill": markup.fill("<p>{}</p>", evil),
        "parts": markup.page(markup.join(["</p>", evil]), markup.paragraph(evil, mark=True)).replace(markup.STYLE, ""),
        "Table": Table([{evil: evil}], title=evil)._repr_html_(),
        "Meter": meter._repr_html_(),
        "Bar": Bar(evil, 3)._repr_html_(),
        "verdict": verdict_html(verdict, title=evil),
        "Proposal": proposal._repr_html_(),
        "Proposals": Proposals([proposal], [(evil, evil)])._repr_html_(),
    }


@pytest.mark.parametrize("evil", HOSTILE)
def test_hostile_text_stays_text(evil: str) -> None:
    for page in pages(evil).values():
        check(page, evil, 20)


@given(st.text(min_size=1, max_size=60))
def test_any_text_stays_text(evil: str) -> None:
    for page in pages(evil).values():
        check(page, evil, 20)


@given(st.text(max_size=300), st.integers(1, 200))
def test_a_clipped_text_is_one_short_line_that_moves_no_cursor(text: str, width: int) -> None:
    line = clip(text, width)
    assert len(line) <= width and line.isprintable() | ("\n" not in line and visible(line) == line)
    assert line == one_line(text) or line.endswith("…")


def test_markup_stays_markup_and_numbers_are_read_on_the_right() -> None:
    page = markup.table(("name", "n"), [(markup.fill("<b>{}</b>", "<i>"), 12345.6), (True, 3)])
    assert "<b>&lt;i&gt;</b>" in page and "<td>12,346</td>" in page and "<td>3</td>" in page
    assert "<td style='text-align:left'>True</td>" in page


def test_a_table_without_titles_or_rows() -> None:
    assert "thead" not in markup.table((), [("a",)]) and "<tbody></tbody>" in markup.table(("a",), [])


def test_a_long_text_is_cut_and_says_so() -> None:
    assert "9000 characters are not shown" in markup.block("x" * 10_000, limit=1000)
    assert "and 100 more lines" in markup.diff("\n".join("+x" for _ in range(500)))
    assert markup.items([]) == markup.error("") == markup.paragraph("") == ""


def test_a_cell_of_a_table() -> None:
    assert [shown(value) for value in (None, 0.12345, 1234.5, float("inf"), 7, "a\nb", True)] == [
        "", "0.123", "1,234", "inf", "7", "a b", "True",
    ]  # fmt: skip
