"""Some tasks of a sort were solved, others of it were not: tell how."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harnesslab.rollout.taxonomy import clip
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.plans import Plan, fill, shared_plans
from harnesslab.trainer.estimators.mining.view import View

MOST = 4
"""Procedures that are offered in one call."""


def mine(view: View) -> Iterator[Idea]:
    """A procedure for each plan that at least two tasks share, with the failed tasks that it is about as evidence.

    First as a worked example, its slots filled with the words of several tasks mixed, so that it is nobody's
    solution; then as abstract steps.
    """
    taken: set[str] = set()
    for plan in shared_plans(view.solved, view.episodes):
        pattern = condition(plan)
        clues = tuple(
            Clue(episode, 0, f"{clip(episode.instruction, 60)} is solved as {clip('; '.join(plan.steps), 80)}")
            for episode in view.failed
            if re.search(pattern, episode.instruction)
        )
        stem = _stem(plan)
        if not clues or stem in taken or len(taken) == MOST:
            continue
        taken.add(stem)
        yield Idea(
            kind="procedure",
            layer="skill",
            stem=stem,
            about=f"How {len({e.task_id for e in plan.episodes})} tasks were solved: {clip('; '.join(plan.steps), 120)}.",
            variants=tuple(_variants(plan, pattern)),
            strength=0.4,
            clues=clues,
            single=False,
        )


def condition(plan: Plan) -> str:
    """A pattern for the instructions that the plan is for: the words that only its instructions have."""
    if not plan.words:
        return r"(?s).*"
    ahead = "".join(rf"(?=.*\b{re.escape(word)}\b)" for word in plan.words[:3])
    return rf"(?is)^{ahead}"


def _variants(plan: Plan, pattern: str) -> Iterator[Variant]:
    where: dict[str, Any] = {"retrieve": "match", "match": pattern} if plan.words else {"retrieve": "always"}
    filling = plan.recombined()
    if filling is not None and plan.says:
        shots = []
        seen = ""
        for step, result in zip(plan.steps, plan.sees, strict=True):
            shots.append(
                {"observation": seen, "action": fill(step, filling)} if seen else {"action": fill(step, filling)}
            )
            seen = fill(result, filling)
        task = fill(" ".join(plan.says), filling)
        yield Variant({**where, "task": f"Task: {task}", "demonstration": shots})
        bare = [{"action": shot["action"]} for shot in shots]
        if bare != shots:
            yield Variant({**where, "task": f"Task: {task}", "demonstration": bare})
    lines = [f'For a task such as "{" ".join(plan.says)}":' if plan.says else "Steps that solve such a task:"]
    lines += [f"{number}. {step}" for number, step in enumerate(plan.steps, 1)]
    yield Variant({**where, "text": "\n".join(lines)})


def _stem(plan: Plan) -> str:
    """A file name from the verbs of the plan."""
    verbs = dict.fromkeys(re.sub(r"[^a-z0-9]+", "", step.split()[0].casefold()) for step in plan.steps)
    return "_".join(verb for verb in verbs if verb)[:40].strip("_") or "procedure"
