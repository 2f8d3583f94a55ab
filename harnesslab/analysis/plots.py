"""Plots with matplotlib (extra ``lab``). Each returns its Figure and prints nothing.

Colours are those of Okabe and Ito, which people with colour-blindness can tell apart, and each comes with a marker, a hatch or
a word. Figures have a white ground of their own, so that they read in a dark notebook, too.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from harnesslab.analysis.frames import curve_rows, fired
from harnesslab.extras import comes_with
from harnesslab.plaintext import clip
from harnesslab.rollout.records import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator

    from harnesslab.ledger import Verdict
    from harnesslab.store import LabRepo

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
PALE_BLUE, PALE_ORANGE, PALE_GREY = (0.72, 0.85, 0.94), (0.96, 0.80, 0.69), (0.93, 0.93, 0.93)
HATCHES = ("", "//", "..", "xx")
ROWS = 25
"""Rows of a bar plot or a matrix; the rest is counted in the title."""


class HasRepo(Protocol):
    """A :class:`~harnesslab.Lab`, as far as the learning curve reads it."""

    @property
    def repo(self) -> LabRepo: ...


class Cause(Protocol):
    """A :class:`~harnesslab.trainer.failures.Cluster`, as far as the bars read it."""

    @property
    def label(self) -> str: ...

    @property
    def title(self) -> str: ...

    def __len__(self) -> int: ...


class Interval(Protocol):
    """An :class:`~harnesslab.analysis.effects.Effect`, as far as the forest plot reads it."""

    @property
    def name(self) -> str: ...

    @property
    def points(self) -> float: ...

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...

    @property
    def helps(self) -> float: ...


class Diagnosis(Protocol):
    """What :meth:`harnesslab.Trainer.diagnose` found, as far as the bars read it."""

    @property
    def run(self) -> Run: ...

    @property
    def clusters(self) -> Sequence[Cause]: ...

    def __len__(self) -> int: ...


LABEL = 46
"""Characters of a bar's label."""


def learning_curve(lab: HasRepo, *, controls: Sequence[Run] = (), level: float = 0.95) -> Figure:
    """Solved share of the baseline after each verdict, with Wilson intervals at ``level``; turned-down candidates as crosses.

    ``controls`` are runs of the random control; each is drawn where the harness that it ran under was promoted (one on
    the first baseline at 0). The share is of the gate tasks that the candidate's measurement played.
    """
    from harnesslab.analysis.statistics import wilson

    figure, axes = _figure(7, 3.8)
    rows = curve_rows(lab.repo)
    xs, shares, lows, highs = [], [], [], []
    for x, solved, tasks in _baseline(rows):
        low, high = wilson(solved, tasks, level)
        xs.append(x)
        shares.append(solved / tasks)
        lows.append(max(0.0, solved / tasks - low))
        highs.append(max(0.0, high - solved / tasks))
    if xs:
        axes.plot(
            [*xs, max(len(rows), xs[-1])], [*shares, shares[-1]], drawstyle="steps-post", color=BLUE, linewidth=1.6
        )
        axes.errorbar(
            xs, shares, yerr=[lows, highs], fmt="o", color=BLUE, capsize=3, label=f"baseline, {level:.0%} interval"
        )
    for state, colour, marker in (("rejected", ORANGE, "x"), ("undecided", GREY, "D")):
        points = [
            (row["epoch"], row["solved"] / row["tasks"]) for row in rows if row["verdict"] == state and row["tasks"]
        ]
        if points:
            xs, shares = [x for x, _ in points], [share for _, share in points]
            axes.plot(xs, shares, marker, color=colour, label=f"{state} candidate", fillstyle="none")
    _controls(axes, lab, rows, controls)
    axes.set(
        xlabel="epoch (one verdict each)",
        ylabel="solved share of gate tasks",
        ylim=(-0.04, 1.04),
        title="Learning curve",
    )
    axes.xaxis.set_major_locator(_whole_numbers())
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", fontsize=9)
    return figure


def failure_causes(failures: Diagnosis) -> Figure:
    """How many episodes of a diagnosis failed for each cause, largest first; the label of each is its hatch and its colour."""
    from harnesslab.rollout.taxonomy import LABELS

    clusters = failures.clusters[:ROWS]
    figure, axes = _figure(7, 1.2 + 0.36 * max(1, len(clusters)))
    colours = dict(zip(LABELS, (BLUE, ORANGE, GREEN, GREY), strict=True))
    hatches = dict(zip(LABELS, HATCHES, strict=True))
    for label in LABELS:
        places = [place for place, cluster in enumerate(clusters) if cluster.label == label]
        counts = [len(clusters[place]) for place in places]
        if places:
            bars = axes.barh(places, counts, color=colours[label], hatch=hatches[label], edgecolor="white", label=label)
            axes.bar_label(bars, padding=3)
    axes.set_yticks(range(len(clusters)), [clip(cluster.title, LABEL) for cluster in clusters], parse_math=False)
    axes.invert_yaxis()
    title = f"{len(failures)} of {len(failures.run.scorable)} episodes failed"
    axes.set(xlabel="episodes", title=title + _hidden(len(failures.clusters)))
    axes.xaxis.set_major_locator(_whole_numbers())
    if clusters:
        axes.legend(loc="lower right", fontsize=9)
    return figure


def flip_matrix(verdict: Verdict) -> Figure:
    """The tasks by outcome before and after: four counts, with the flips named beside their cell."""
    before, after = set(verdict.solved["baseline"]), set(verdict.solved["candidate"])
    neither = verdict.tasks - len(before | after)
    cells = [[neither, len(after - before)], [len(before - after), len(before & after)]]
    figure, axes = _figure(5.2, 4)
    axes.grid(visible=False)
    axes.imshow([[PALE_GREY, PALE_BLUE], [PALE_ORANGE, PALE_GREY]])
    words = [["failed in both", "gained"], ["lost", "solved in both"]]
    incidental = {flip.task for flip in verdict.flips if flip.incidental}
    chance = [["", _by_chance(after - before, incidental)], [_by_chance(before - after, incidental), ""]]
    for row in range(2):
        for column in range(2):
            text = f"{cells[row][column]}\n{words[row][column]}{chance[row][column]}"
            axes.text(column, row, text, ha="center", va="center", color="black", fontsize=11)
    axes.set_xticks([0, 1], ["failed", "solved"])
    axes.set_yticks([0, 1], ["failed", "solved"])
    axes.set(
        xlabel="with the candidate (tasks)",
        ylabel="baseline (tasks)",
        title=f"{verdict.tasks} tasks: {verdict.decision}",
    )
    return figure


def fired_counts(run: Run) -> Figure:
    """On how many episodes each intervention fired, and how many of them were solved."""
    counts = fired(run)
    shown = counts.head(ROWS)
    figure, axes = _figure(7, 1.2 + 0.36 * max(1, len(shown)))
    places = list(range(len(shown)))
    if places:
        bars = axes.barh(places, shown["episodes"], color="white", edgecolor=BLUE, label="fired")
        axes.barh(
            places,
            shown["solved"],
            color=BLUE,
            hatch="//",
            edgecolor="white",
            label="fired, and the episode was solved",
        )
        axes.bar_label(bars, padding=3)
        axes.legend(loc="lower right", fontsize=9)
    axes.set_yticks(places, [clip(name, LABEL) for name in shown["intervention"]], parse_math=False)
    axes.invert_yaxis()
    axes.set(
        xlabel="episodes",
        xlim=(0, max(1, len(run)) * 1.08),
        title=f"What fired in {len(run)} episodes" + _hidden(len(counts)),
    )
    axes.xaxis.set_major_locator(_whole_numbers())
    return figure


def forest(effects: Sequence[Interval], *, outcome: str, level: float, episodes: int) -> Figure:
    """Each intervention's effect in points with its interval; those that are more likely to help than not are filled.

    ``outcome`` names what changes, ``level`` is that of the intervals, ``episodes`` is how many they come from.
    """
    shown = effects[:ROWS]
    figure, axes = _figure(7, 1.2 + 0.36 * max(1, len(shown)))
    for place, effect in enumerate(shown):
        colour = BLUE if effect.helps > 0.5 else ORANGE
        axes.errorbar(
            effect.points,
            place,
            xerr=[[effect.points - effect.low], [effect.high - effect.points]],
            fmt="o" if effect.helps > 0.5 else "s",
            color=colour,
            fillstyle="full" if effect.helps > 0.5 else "none",
            capsize=3,
        )
        axes.annotate(f"{effect.helps:.2f}", (effect.high, place), (6, 0), textcoords="offset points", va="center")
    axes.axvline(0, color=GREY, linewidth=1)
    axes.set_yticks(range(len(shown)), [clip(effect.name, LABEL) for effect in shown], parse_math=False)
    axes.invert_yaxis()
    axes.set(
        xlabel=f"change of {outcome} in points, {level:.0%} interval, P(helps)",
        title=f"Effects in {episodes} episodes" + _hidden(len(effects)),
    )
    return figure


def png(figure: Figure) -> bytes:
    """The figure as a PNG."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100)
    return out.getvalue()


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    # Not pyplot: a figure that pyplot knows is shown by itself and stays in memory. In return it has to show itself.
    with comes_with("lab"):
        from matplotlib.figure import Figure

    class Plot(Figure):
        """A figure that a notebook shows whether pyplot was imported or not."""

        def _repr_png_(self) -> bytes:
            return png(self)

    figure = Plot(figsize=(width, height), layout="constrained", facecolor="white")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
    return figure, axes


def _whole_numbers() -> Locator:
    with comes_with("lab"):
        from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)


def _baseline(rows: Sequence[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """(epoch, solved, tasks) of the baseline at the start and after each promotion that was measured."""
    measured = [row for row in rows if row["tasks"]]
    points = [(0, measured[0]["baseline"], measured[0]["tasks"])] if measured else []
    points += [(row["epoch"], row["solved"], row["tasks"]) for row in measured if row["verdict"] == "promoted"]
    return points


def _controls(axes: Axes, lab: HasRepo, rows: Sequence[dict[str, Any]], controls: Sequence[Run]) -> None:
    if not controls:
        return
    commits = {row.commit: row.id for row in lab.repo.candidates(state="promoted", limit=10_000).rows}
    epochs = {row["candidate"]: row["epoch"] for row in rows}
    points = sorted((epochs.get(commits.get(run.commit, ""), 0), run.solved / max(1, run.tasks)) for run in controls)
    if len(points) == 1:
        axes.axhline(points[0][1], color=GREY, linestyle="--", linewidth=1.2)
    axes.plot(*zip(*points, strict=True), "s--", color=GREY, label="random control under the same harness")


def _by_chance(tasks: set[str], incidental: set[str]) -> str:
    count = len(tasks & incidental)
    return f"\n({count} incidental)" if count else ""


def _hidden(total: int) -> str:
    return f" (the {ROWS} largest of {total})" if total > ROWS else ""
