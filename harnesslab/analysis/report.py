"""The report of a lab: what was gained, how sure that is, what it cost, and what did not work."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harnesslab.analysis.plots import learning_curve, png
from harnesslab.analysis.standing import standing
from harnesslab.analysis.statistics import clustered
from harnesslab.analysis.table import Table
from harnesslab.analysis.tables import candidate_table, curve_table, prediction_table
from harnesslab.ledger import read_verdict
from harnesslab.markup import Markup, block, page, paragraph, section, table
from harnesslab.plaintext import counted
from harnesslab.rollout.report import Report
from harnesslab.rollout.tasks import by_task, won_tasks
from harnesslab.store import LabRepo, RunStore

RUNS = 2_000
"""Latest runs that are read."""
CANDIDATES = 200
"""Rejected and open candidates that are listed."""
COLUMNS = ["split", "harness", "backbone", "solved", "of", "rate", "low", "high", "episodes", "tokens", "seconds"]
GAINS = ["split", "backbone", "tasks", "points", "low", "high", "relative %", "gained", "lost"]

Rows = Sequence[Mapping[str, Any]]


class _HasRepo:
    def __init__(self, repo: LabRepo):
        self.repo = repo


def lab_report(repo: LabRepo, runs: RunStore | None, name: str, openings: Table, looks: Table) -> Report:
    """The report of the lab ``name``: results of the first and the present harness with controls, gains, effects, costs, negative results."""
    results, episodes = _results(repo, runs)
    gains = _gains(results, episodes)
    shown = Table(results, title="Solved, with 95% intervals in percent", columns=COLUMNS)
    gained = Table(gains, title="Gain of the present harness over the first one, same tasks", columns=GAINS)
    gained.notes.append(
        "points: change of the solve rate with its 95% interval, clustered by task; relative %: of the first harness's rate."
    )
    curve = curve_table(repo)
    rejected = repo.candidates(state=("rejected", "undecided"), limit=CANDIDATES)
    spent = _spent(runs)
    identity: Mapping[str, Any] = next((row["identity"] for row in _all(runs)), {})
    picture = Markup()
    if len(curve):
        data = base64.b64encode(png(learning_curve(_HasRepo(repo)))).decode("ascii")
        picture = Markup("<img alt='Learning curve' src='data:image/png;base64,{}'>").format(data)
    body = page(
        paragraph(_summary(gains, results)),
        _table(gained),
        _table(shown),
        section("Learning curve", picture + _table(curve)),
        section("Flips of promoted candidates", _flips(repo)),
        section("Effects of the interventions", _table(standing(repo, runs))),
        section(
            "Negative results: rejected and undecided",
            _table(candidate_table(rejected.rows, f"{rejected.total} in all")),
        ),
        section("Predictions", _table(prediction_table(repo))),
        section("Cost", _table(spent)),
        section("Looks at the gate, and openings of the sealed split", _table(looks) + _table(openings)),
        section("Identity of the latest measurement", block(json.dumps(identity, indent=1, default=str))),
    )
    rows = [{"row": "result", **row} for row in results] + [{"row": "gain", **row} for row in gains]
    return Report(f"Report of the lab {name}", body, rows)


def _table(found: Table) -> Markup:
    return Markup(found._repr_html_())


def _all(runs: RunStore | None) -> list[dict[str, Any]]:
    return runs.runs(limit=RUNS) if runs is not None else []


def _results(repo: LabRepo, runs: RunStore | None) -> tuple[list[dict[str, Any]], dict[tuple[str, str, str], Rows]]:
    """One row a split, harness and backbone, the latest run of each that is complete; and their episodes."""
    first, present = repo.root(), repo.baseline()
    names = {first: "start"} | ({present: "trained"} if present != first else {})
    rows, kept = [], dict[tuple[str, str, str], Rows]()
    for row in _all(runs):
        plain = "mixed" not in row["identity"] and not row["identity"].get("first")
        key = (row["split"], names.get(row["commit"], ""), row["backbone"])
        if not key[1] or not plain or row["status"] != "done" or key in kept or runs is None:
            continue
        episodes = [episode for episode in runs.episodes(row["id"]) if episode["status"] == "finished"]
        kept[key] = episodes
        shares = list(_shares(episodes).values())
        low, high = clustered(shares, len(episodes))
        rate = sum(shares) / len(shares) if shares else 0.0
        rows.append(
            dict(zip(("split", "harness", "backbone"), key, strict=True))
            | {
                "solved": len(won_tasks((e["task_id"], bool(e["solved"])) for e in episodes)),
                "of": len(shares),
                "rate": round(100 * rate, 1),
                "low": round(100 * low, 1),
                "high": round(100 * high, 1),
                "episodes": len(episodes),
                "tokens": sum(e["prompt_tokens"] + e["completion_tokens"] for e in episodes),
                "seconds": round(sum(e["seconds"] or 0.0 for e in episodes), 1),
            }
        )
    order = {"sealed": 0, "gate": 1, "search": 2}
    return sorted(rows, key=lambda r: (order.get(r["split"], 3), r["backbone"], r["harness"])), kept


def _shares(episodes: Rows) -> dict[str, float]:
    return {
        task: sum(won) / len(won) for task, won in by_task((e["task_id"], bool(e["solved"])) for e in episodes).items()
    }


def _gains(results: Rows, episodes: Mapping[tuple[str, str, str], Rows]) -> list[dict[str, Any]]:
    found = []
    for row in results:
        split, backbone = row["split"], row["backbone"]
        if row["harness"] != "trained" or (split, "start", backbone) not in episodes:
            continue
        before, after = (_shares(episodes[split, name, backbone]) for name in ("start", "trained"))
        tasks = [task for task in before if task in after]
        if not tasks:
            continue
        changes = [after[task] - before[task] for task in tasks]
        mean, start = sum(changes) / len(tasks), sum(before[task] for task in tasks) / len(tasks)
        # Between tasks, with one flip at least, so that a panel without flips is not sure of itself.
        spread = sum((change - mean) ** 2 for change in changes) / max(1, len(tasks) - 1)
        half = 1.96 * math.sqrt(max(spread, 1 / len(tasks)) / len(tasks))
        found.append(
            {
                "split": split,
                "backbone": backbone,
                "tasks": len(tasks),
                "points": round(100 * mean, 1),
                "low": round(100 * max(-1.0, mean - half), 1),
                "high": round(100 * min(1.0, mean + half), 1),
                "relative %": round(100 * mean / start, 1) if start else None,
                "gained": sum(change > 0 for change in changes),
                "lost": sum(change < 0 for change in changes),
            }
        )
    return found


def _summary(gains: Rows, results: Rows) -> str:
    if not gains:
        return "Nothing was gained yet: the harness is the first one." if results else "Nothing was measured yet."
    gain = gains[0]
    sure = "the interval excludes 0" if gain["low"] > 0 or gain["high"] < 0 else "the interval includes 0"
    tasks = counted(gain["tasks"], f"{gain['split']} task")
    return f"{gain['backbone']}: {gain['points']:+.1f} points on {tasks} ({gain['low']:+.1f} to {gain['high']:+.1f}; {sure})."


def _flips(repo: LabRepo) -> Markup:
    rows = []
    for candidate in repo.candidates(state="promoted", limit=CANDIDATES).rows:
        verdict = read_verdict(candidate.verdict)
        for flip in verdict.flips if verdict is not None else ():
            rows.append(
                (candidate.subject, flip.task, "gained" if flip.after else "lost", "yes" if flip.incidental else "")
            )
    return table(("candidate", "task", "flip", "incidental"), rows) if rows else paragraph("None.")


def _spent(runs: RunStore | None) -> Table:
    costs: dict[str, dict[str, Any]] = {}
    for row in _all(runs):
        cost = costs.setdefault(
            row["purpose"], {"purpose": row["purpose"], "runs": 0, "episodes": 0, "tokens": 0, "seconds": 0.0}
        )
        episodes: Iterable[Mapping[str, Any]] = runs.episodes(row["id"]) if runs is not None else ()
        cost["runs"] += 1
        for episode in episodes:
            cost["episodes"] += 1
            cost["tokens"] += episode["prompt_tokens"] + episode["completion_tokens"]
            cost["seconds"] = round(cost["seconds"] + (episode["seconds"] or 0.0), 1)
    rows = list(costs.values())
    if rows:
        total = {name: sum(row[name] for row in rows) for name in ("runs", "episodes", "tokens", "seconds")}
        rows.append({"purpose": "all", **total, "seconds": round(total["seconds"], 1)})
    return Table(rows, title="episodes by what they were played for")
