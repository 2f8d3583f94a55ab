"""A report: one self-contained HTML file that anybody can open, with the rows behind it; and the report of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harnesslab.errors import ConfigError
from harnesslab.extras import comes_with
from harnesslab.markup import Markup, block, fill, page, paragraph, section, table
from harnesslab.plaintext import counted, shown
from harnesslab.rollout.tasks import RULE, by_task, wilson_interval

if TYPE_CHECKING:
    import pandas as pd

EPISODES = 2_000
"""Episodes that the report of a run lists; ``to_frame()`` has all of them."""
_DOCUMENT = (
    "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
    "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
    "<title>{}</title><style>body{{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}}"
    "table{{border-collapse:collapse;margin:.5rem 0}}td,th{{border-bottom:1px solid #ccc;padding:.2rem .6rem;text-align:right}}"
    "caption{{text-align:left;font-weight:bold}}img{{max-width:100%}}</style></head><body><h1>{}</h1>{}</body></html>\n"
)


class Recorded(Protocol):
    """A :class:`~harnesslab.Run`, as far as reports read it; its episodes are those of :mod:`harnesslab.rollout.records`."""

    @property
    def id(self) -> str: ...

    @property
    def commit(self) -> str: ...

    @property
    def split(self) -> str: ...

    @property
    def backbone(self) -> str: ...

    @property
    def identity(self) -> Mapping[str, Any]: ...

    @property
    def episodes(self) -> Sequence[Any]: ...

    @property
    def scorable(self) -> Sequence[Any]: ...

    @property
    def tasks(self) -> int: ...

    @property
    def solved(self) -> int: ...

    @property
    def rate(self) -> float: ...

    def unscored(self) -> str: ...


class Report:
    """What was measured, to keep and to send: :meth:`save` writes one HTML file without links to anything else."""

    def __init__(self, title: str, body: Markup, rows: Sequence[Mapping[str, Any]]):
        """``body`` is escaped already; ``rows`` are the figures, for :meth:`to_frame`."""
        self.title, self._body, self.rows = title, body, [dict(row) for row in rows]

    @property
    def html(self) -> str:
        """The whole document. It loads nothing and runs nothing."""
        return str(fill(_DOCUMENT, self.title, self.title, self._body))

    def save(self, path: str | Path) -> Path:
        """Write the document; returns its path. Raises ConfigError where it cannot be written."""
        target = Path(path).expanduser()
        try:
            target.write_text(self.html, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"the report cannot be written to {target}: {error.strerror}") from None
        return target

    def to_frame(self) -> pd.DataFrame:
        """The figures as a DataFrame (extra ``lab``)."""
        with comes_with("lab"):
            import pandas as pd

        return pd.DataFrame(self.rows)

    def __repr__(self) -> str:
        lines = [f"{self.title}; .save('report.html') writes it"]
        return "\n".join(
            [*lines, *("  " + ", ".join(f"{k} {shown(v)}" for k, v in row.items()) for row in self.rows[:20])]
        )

    def _repr_html_(self) -> str:
        return str(page(paragraph(self.title), self._body))


def run_report(run: Recorded) -> Report:
    """The report of a run: solve rate with its interval, by family, every episode, cost and identity."""
    rows = [_family("all", run.episodes)]
    families = dict.fromkeys(episode.family for episode in run.episodes)
    rows += (
        [_family(name, [e for e in run.episodes if e.family == name]) for name in families] if len(families) > 1 else []
    )
    head = list(rows[0])
    tokens = sum(e.prompt_tokens + e.completion_tokens for e in run.episodes)
    seconds = sum(e.seconds for e in run.episodes)
    cost = f"{counted(len(run.episodes), 'episode')}, {tokens} tokens, {seconds:.1f} s of episodes."
    listed = [
        (e.task_id, e.repeat, e.outcome, f"{e.progress:.0%}", e.length, e.invalid, e.prompt_tokens + e.completion_tokens,
         ", ".join(f"{name} {times}" for name, times in e.fired.items()), e.ended)
        for e in run.episodes[:EPISODES]
    ]  # fmt: skip
    more = [f"and {len(run.episodes) - EPISODES} more"] if len(run.episodes) > EPISODES else []
    columns = ("task", "repeat", "outcome", "progress", "steps", "invalid", "tokens", "fired", "how it ended")
    body = page(
        paragraph(f"{run.split} split, harness {run.commit[:10]}, {run.backbone or 'no backbone named'}. {RULE}"),
        table(head, [list(row.values()) for row in rows], caption="Solved, with 95% intervals in percent"),
        paragraph(run.unscored() + "." if len(run.episodes) > len(run.scorable) else ""),
        paragraph(f"Cost: {cost}"),
        section("Episodes", table(columns, listed, below=more), open_=False),
        section("Identity of the measurement", block(json.dumps(run.identity, indent=1, default=str)), open_=False),
    )
    return Report(f"Run {run.id}: {run.solved} of {counted(run.tasks, 'task')} solved", body, rows)


def _family(name: str, episodes: Sequence[Any]) -> dict[str, Any]:
    tasks = by_task((e.task_id, e.solved) for e in episodes if e.status == "finished")
    shares = [sum(won) / len(won) for won in tasks.values()]
    rate, low, high = wilson_interval(sum(shares), len(shares)) if shares else (0.0, 0.0, 1.0)
    solved = sum(2 * sum(won) > len(won) for won in tasks.values())
    numbers = {"rate": rate, "low": low, "high": high}
    return {"family": name, "solved": solved, "of": len(tasks)} | {k: round(100 * v, 1) for k, v in numbers.items()}
