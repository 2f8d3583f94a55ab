"""All HTML that the library makes: tables, folded parts, diffs, errors. Texts come from models and environments.

Everything here returns ``Markup`` and escapes what is not, so that a page is safe however its parts are put together.
Colours are translucent or taken from JupyterLab's variables, so that they read on light and dark pages, and none
stands alone: each has a word or a sign beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

from harnesslab.plaintext import shown, visible

__all__ = [
    "Markup", "block", "diff", "error", "fill", "fold", "items", "join", "page", "paragraph", "plain_json", "section",
    "table", "text",
]  # fmt: skip

LIMIT = 6_000
"""Characters of one text that are shown."""
LINE_LIMIT = 160
"""Characters of a text that has to fit a line of a table."""
DIFF_LINES = 400

STYLE = """<style>
.hl-panel table{border-collapse:collapse;margin:4px 0;font-size:13px;line-height:1.35}
.hl-panel th,.hl-panel td{text-align:left!important;vertical-align:top;padding:3px 8px!important;white-space:normal}
.hl-panel th{border-bottom:1px solid rgba(128,128,128,.6)}
.hl-panel td{border-bottom:1px solid rgba(128,128,128,.25)}
.hl-panel caption{text-align:left;font-weight:600;padding:2px 0}
.hl-panel pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:2px 0;padding:4px 8px;font-size:12px;line-height:1.4;
background:rgba(128,128,128,.10);border-left:3px solid rgba(128,128,128,.5);max-height:28em;overflow:auto}
.hl-panel pre.hl-diff{padding:4px 0;border-left:0}
.hl-panel pre.hl-diff span{display:block;padding:0 8px}
.hl-panel .hl-add{background:rgba(0,114,178,.20)}
.hl-panel .hl-del{background:rgba(213,94,0,.22)}
.hl-panel .hl-mark{font-weight:600;border-left:4px solid #d55e00;padding-left:8px}
.hl-panel .hl-error{border-left:4px solid #d55e00;background:rgba(213,94,0,.15);padding:4px 8px;margin:2px 0}
.hl-panel .hl-tag{border:1px solid rgba(128,128,128,.6);border-radius:3px;padding:0 5px;font-size:12px}
.hl-panel .hl-now td{background:rgba(128,128,128,.15);font-weight:600}
.hl-panel{line-height:1.4}
.hl-panel p{margin:4px 0}
.hl-panel details{margin:2px 0}
.hl-panel summary{cursor:pointer}
</style>"""


def page(*parts: Markup) -> Markup:
    """Parts of a panel as one piece with its style."""
    return Markup("{}<div class='hl-panel'>{}</div>").format(Markup(STYLE), join(parts))


def join(parts: Iterable[Any]) -> Markup:
    """The parts in a row."""
    return Markup().join(text(part, LIMIT) for part in parts)


def fill(template: str, *values: Any, limit: int = LINE_LIMIT) -> Markup:
    """Our own ``template`` with each value, escaped and on one line, in the place of a ``{}``."""
    return Markup(template).format(*(text(value, limit) for value in values))


def text(value: Any, limit: int = LINE_LIMIT) -> Markup:
    """A value on one escaped line, cut with a mark. ``Markup`` stays as it is."""
    return value if isinstance(value, Markup) else escape(shown(value, limit))


def block(value: Any, limit: int = LIMIT) -> Markup:
    """A longer text with its lines, escaped, cut in the middle with a mark that says how much is gone."""
    whole = "" if value is None else visible(str(value))
    if not whole:
        return Markup("<p><i>(empty)</i></p>")
    if len(whole) > limit:
        head, tail = whole[: limit * 2 // 3], whole[-limit // 3 :]
        whole = f"{head}\n[… {len(whole) - len(head) - len(tail)} characters are not shown …]\n{tail}"
    return Markup("<pre>{}</pre>").format(whole)


def plain_json(value: Any) -> str:
    """A JSON value in readable form; not escaped yet."""
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def paragraph(value: Any, limit: int = LIMIT, *, mark: bool = False) -> Markup:
    """One line as a paragraph, which ``mark`` makes stand out in a panel; empty for an empty text."""
    line = text(value, limit)
    return fill("<p class='hl-mark'>{}</p>" if mark else "<p>{}</p>", line) if line else line


def items(values: Iterable[Any], limit: int = LINE_LIMIT) -> Markup:
    """A list, one line a value; empty without values."""
    listed = join(fill("<li>{}</li>", value, limit=limit) for value in values)
    return fill("<ul>{}</ul>", listed) if listed else listed


def section(title: str, body: Markup, *, open_: bool = True) -> Markup:
    """A part that can be folded."""
    return fill(f"<details{' open' if open_ else ''}><summary><b>{{}}</b></summary>{{}}</details>", title, body)


def fold(title: str, body: Markup) -> Markup:
    """A closed part whose ``title`` is not a heading but the first line of what it holds."""
    return fill("<details><summary>{}</summary>{}</details>", title, body)


def table(
    head: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str = "",
    now: int | None = None,
    below: Iterable[str] = (),
) -> Markup:
    """A table, with a caption above and sentences ``below``. Numbers are aligned right, everything else left.

    ``now`` marks the chosen row (its first cell should say so, too); without ``head`` there is no line of titles.
    """
    body = join(
        fill(f"<tr{' class=hl-now' if place == now else ''}>{{}}</tr>", join(_cell("td", cell) for cell in row))
        for place, row in enumerate(rows)
    )
    return fill(
        "<table>{}{}<tbody>{}</tbody></table>{}",
        fill("<caption>{}</caption>", caption, limit=LIMIT) if caption else "",
        fill("<thead><tr>{}</tr></thead>", join(_cell("th scope='col'", title) for title in head)) if head else "",
        body,
        join(map(paragraph, below)),
    )


def diff(changes: str) -> Markup:
    """A unified diff, one span a line; the signs stay, colour only helps."""
    lines = visible(changes).split("\n")
    if lines[-1] == "":
        lines.pop()
    spans = (Markup("<span class='{}'>{}</span>").format(_line_class(line), line or " ") for line in lines[:DIFF_LINES])
    more = paragraph(f"… and {len(lines) - DIFF_LINES} more lines") if len(lines) > DIFF_LINES else ""
    return fill("<pre class='hl-diff'>{}</pre>{}", join(spans), more)


def error(message: str) -> Markup:
    """A visible error line; empty for no message."""
    return fill("<div class='hl-error' role='alert'>{}</div>", message, limit=LIMIT) if message else Markup()


def _cell(tag: str, value: Any) -> Markup:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    left = "" if number else " style='text-align:left'"
    return fill(f"<{tag}{left}>{{}}</{tag[:2]}>", value)


def _line_class(line: str) -> str:
    if line.startswith("+") and not line.startswith("+++"):
        return "hl-add"
    return "hl-del" if line.startswith("-") and not line.startswith("---") else ""
