"""Hand-made trajectories for the tests of the trainer."""

from __future__ import annotations

from harnesslab.harness.protocol import render
from harnesslab.rollout.records import Episode, Run, Step

Move = tuple  # (action, result) or (action, result, fields of the step)


def episode(task: str, *moves: Move, instruction: str = "Put the mug on the shelf.", **fields: object) -> Episode:
    """An episode of moves, each observing the last result; an action of ``None`` was never read."""
    values: dict = {"family": "f", "budget": 20, "instruction": instruction, "progress": 0.0} | fields
    made = Episode(task_id=task, **values)
    observation = fields_first(moves)
    for index, (action, result, *more) in enumerate(moves):
        step: dict = {
            "observation": observation,
            "request": {},
            "replies": [],
            "raw": "" if action is None else render(action, "text"),
            "executed": action is not None,
            "problem": "",
            "invalid": action is None,
            "reward": 0.0,
        }
        made.steps.append(Step(index=index, action=action, result=result, **(step | (more[0] if more else {}))))
        observation = result
    made.length = len(made.steps)
    made.invalid = sum(step.invalid for step in made.steps)
    if made.solved:
        made.progress = 1.0
    return made


def fields_first(moves: tuple[Move, ...]) -> str:
    """What the first step observes: its own field, else "start"."""
    return moves[0][2].get("observation", "start") if moves and len(moves[0]) > 2 else "start"


def run(*episodes: Episode) -> Run:
    """A run of these episodes; their numbers in the store are 1, 2, ..."""
    for number, item in enumerate(episodes, 1):
        item.id = number
    return Run(id=1, commit="0" * 40, split="search", identity={}, episodes=list(episodes))
