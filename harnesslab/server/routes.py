"""Every endpoint that answers in JSON without changing anything: its name, its question and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harnesslab.server import answers, queries
from harnesslab.server.core import actions, exports, overview, refs, trajectories
from harnesslab.server.core.labs import Labs


@dataclass(frozen=True)
class Route:
    """`GET /name`. `ask` answers it from the labs and the checked parameters, in a thread."""

    name: str
    operation: str
    summary: str
    query: type[queries.Parameters]
    answer: type[answers.Answer]
    ask: Callable[[Labs, Any], answers.Answer]


READS = (
    Route(
        "labs", "listLabs", "Labs found under the Jupyter root", queries.LabsQuery, answers.Labs,
        lambda labs, q: overview.labs(labs, q.roots.splitlines(), q.depth),
    ),
    Route(
        "lab", "getLab", "The baseline, the counts, what is running, and what can be undone", queries.LabQuery,
        answers.Overview, lambda labs, q: overview.overview(labs.get(q.lab)),
    ),
    Route(
        "live", "getLive", "A change token and the run in progress; cheap enough to poll", queries.LabQuery,
        answers.Live, lambda labs, q: overview.live(labs.get(q.lab)),
    ),
    Route(
        "history", "getHistory", "The commits of the baseline, newest first", queries.Paged, answers.History,
        lambda labs, q: overview.history(labs.get(q.lab), q.offset, q.limit),
    ),
    Route(
        "refs", "listRefs", "One page of candidates in one state", queries.RefsQuery, answers.Refs,
        lambda labs, q: refs.page(labs.get(q.lab), q),
    ),
    Route(
        "ref", "getRef", "One candidate with its evidence, prediction and verdict", queries.RefQuery, answers.RefDetail,
        lambda labs, q: refs.detail(labs.get(q.lab), q.ref),
    ),
    Route(
        "diff", "getDiff", "The files that differ between any two refs or commits, both texts of each, bounded",
        queries.DiffQuery, answers.Diff, lambda labs, q: refs.diff(labs.get(q.lab), q.base, q.head),
    ),
    Route(
        "trajectories", "getTrajectories", "One task, baseline beside candidate, with the first step where they part",
        queries.TrajectoriesQuery, answers.Trajectories,
        lambda labs, q: trajectories.pair(labs.get(q.lab), q.ref, q.task),
    ),
    Route(
        "step", "getStep", "One step in full, with the exact request body and the raw replies", queries.StepQuery,
        answers.FullStep, lambda labs, q: trajectories.full_step(labs.get(q.lab), q.episode, q.index),
    ),
    Route(
        "plan", "getPlan", "What git would do for an action, before anybody confirms it", queries.PlanQuery, answers.Plan,
        lambda labs, q: actions.plan(labs.get(q.lab), q.action, q.ref),
    ),
    Route(
        "cell", "getCell", "A candidate as the source of a notebook cell", queries.CellQuery, answers.Cell,
        lambda labs, q: exports.cell(labs.get(q.lab), q.ref, q.notebook),
    ),
)  # fmt: skip
