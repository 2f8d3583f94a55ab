"""HTML for panels. Every text goes through :func:`text` or :func:`block`: it comes from models and environments.

Colours are translucent or taken from JupyterLab's variables, so that they read on light and dark pages, and none
stands alone: each has a word or a sign beside it.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

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


def page(*parts: str) -> str:
    """Parts of a panel as one piece of HTML with its style."""
    return f"{STYLE}<div class='hl-panel'>{''.join(parts)}</div>"


def text(value: Any, limit: int = LINE_LIMIT) -> str:
    """A value on one escaped line, cut with a mark."""
    line = " ".join(str("" if value is None else value).split())
    return html.escape(line if len(line) <= limit else line[: limit - 1] + "…")


def block(value: Any, limit: int = LIMIT) -> str:
    """A longer text as it is, escaped, cut in the middle with a mark that says how much is gone."""
    whole = "" if value is None else str(value)
    if not whole:
        return "<p><i>(empty)</i></p>"
    if len(whole) > limit:
        head, tail = whole[: limit * 2 // 3], whole[-limit // 3 :]
        whole = f"{head}\n[… {len(whole) - len(head) - len(tail)} characters are not shown …]\n{tail}"
    return f"<pre>{html.escape(whole)}</pre>"


def plain_json(value: Any) -> str:
    """A JSON value in readable form; not escaped yet."""
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def section(title: str, body: str, *, open_: bool = True) -> str:
    """A part that can be folded. ``title`` is escaped here, ``body`` is HTML."""
    return f"<details{' open' if open_ else ''}><summary><b>{text(title)}</b></summary>{body}</details>"


def fold(title: str, body: str) -> str:
    """A closed part whose ``title`` is no heading but the first line of what it holds."""
    return f"<details><summary>{text(title)}</summary>{body}</details>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "", now: int | None = None) -> str:
    """A table from HTML cells; ``now`` marks the chosen row (its first cell should say so, too)."""
    titles = "".join(f"<th scope='col'>{text(title)}</th>" for title in head)
    body = "".join(
        f"<tr{' class=hl-now' if place == now else ''}>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
        for place, row in enumerate(rows)
    )
    above = f"<caption>{text(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def diff(changes: str) -> str:
    """A unified diff, one span a line; the signs stay, colour only helps."""
    lines = changes.splitlines()
    shown = "".join(
        f"<span class='{_line_class(line)}'>{html.escape(line) or ' '}</span>" for line in lines[:DIFF_LINES]
    )
    more = f"<p>… and {len(lines) - DIFF_LINES} more lines</p>" if len(lines) > DIFF_LINES else ""
    return f"<pre class='hl-diff'>{shown}</pre>{more}"


def error(message: str) -> str:
    """A visible error line; empty for no message."""
    return f"<div class='hl-error' role='alert'>{text(message, LIMIT)}</div>" if message else ""


def _line_class(line: str) -> str:
    if line.startswith("+") and not line.startswith("+++"):
        return "hl-add"
    return "hl-del" if line.startswith("-") and not line.startswith("---") else ""
