"""The probe: how much a measurement moves by itself, before anything is spent on candidates.

A/A plays the harness twice, the second time with new seeds: with the same ones, two runs agree by construction. Greedy decoding hides noise
that any change of words brings out, so a *placebo* is played beside it, the same harness with a change that means nothing. And one request is asked
again and again: alone, after another one that shares its beginning (which a prefix cache answers differently), and at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harnesslab.errors import BackboneError, ConfigError
from harnesslab.harness.load import Harness
from harnesslab.harness.pipeline import Pipeline
from harnesslab.llm.aside import ask
from harnesslab.llm.types import Completion, MinimalBackbone, Request
from harnesslab.plaintext import counted
from harnesslab.rollout.identity import is_greedy
from harnesslab.rollout.progress import Bar
from harnesslab.rollout.records import Run
from harnesslab.trainer.measure import Measurer
from harnesslab.trainer.pairs import changed_tasks, pair_up
from harnesslab.trainer.panel import Panel

ASKED = 5
"""How often one request is asked in each way."""
LARGEST = 2_000
"""Tasks of the largest panel that is recommended."""
WANTED = 0.1
"""The gain, as a share of the tasks, that the recommended panel can show."""


def _thanks(text: str) -> str:
    return f"{text}\n\nThank you for your work." if text else "Thank you for your work."


def _spaced(text: str) -> str:
    return "\n\n".join(line for line in text.splitlines() if line.strip()) + "\n"


def _reordered(text: str) -> str:
    lines = text.split("\n\n") if "\n\n" in text else text.split("\n")
    return ("\n\n" if "\n\n" in text else "\n").join(reversed(lines))


def _reworded(text: str) -> str:
    return f"Here is what you need to know.\n\n{text}"


PLACEBOS: Mapping[str, Callable[[str], str]] = {
    "text": _thanks, "layout": _spaced, "order": _reordered, "words": _reworded,
}  # fmt: skip
"""Changes of the base prompt that mean nothing: harmless text after it, blank lines, its parts the other way round, a phrase before it."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The same harness, played again on the gate.

    ``flips`` of ``tasks`` tasks changed by themselves with new seeds, repeats counted by :data:`harnesslab.rollout.tasks.RULE`;
    ``placebo`` counts the flips under each change that means nothing. ``minimum`` is the least net gain in tasks that the exact paired test
    at the 5% level finds with 80% power under the larger noise of the two (``None``: none at all on a panel of this size). ``tokens`` and ``seconds`` are
    the cost of one run of the panel, of ``episodes`` episodes. ``replayed``: the second run came from a recording, so it shows the noise of the environment
    only, not that of the backbone. ``replies``: different replies to one request asked :data:`ASKED` times, ``alone``, ``after another`` one and ``at once``;
    empty where a recording had no more replies. ``panel``: the tasks that show a gain of 10 points under this noise; None for more than 2,000.
    ``criterion`` is what to use.
    """

    tasks: int
    flips: int
    minimum: int | None
    tokens: int
    seconds: float
    replayed: bool
    episodes: int = 0
    placebo: Mapping[str, int] = field(default_factory=dict)
    replies: Mapping[str, int] = field(default_factory=dict)
    panel: int | None = None
    criterion: str = "AnytimeTest()"

    @property
    def noise(self) -> float:
        """Share of tasks that flipped in A/A."""
        return self.flips / self.tasks if self.tasks else 0.0

    @property
    def floor(self) -> float:
        """The larger share of tasks that flipped, in A/A or under a placebo: the noise to reckon with."""
        return max([self.flips, *self.placebo.values()]) / self.tasks if self.tasks else 0.0

    def __repr__(self) -> str:
        effect = "no gain at all" if self.minimum is None else f"a net gain of {counted(self.minimum, 'task')} or more"
        repeats = f" ({counted(self.episodes, 'episode')})" if self.episodes > self.tasks else ""
        lines = [
            f"A/A on {counted(self.tasks, 'task')}{repeats}: {self.flips} flipped without a change ({100 * self.noise:.1f}%)",
            *(
                f"placebo ({name}): {flips} flipped under a change that means nothing ({100 * flips / max(1, self.tasks):.1f}%)"
                for name, flips in self.placebo.items()
            ),
        ]
        if self.replies:
            said = ", ".join(f"{count} {way}" for way, count in self.replies.items())
            lines.append(f"different replies to one request asked {ASKED} times: {said}")
        lines += [
            f"this panel can show {effect} (5% level, 80% power)",
            f"one run costs {self.tokens} tokens and {self.seconds:.1f} s",
            f"recommended: {self._recommended()}",
        ]
        if self.replayed:
            lines.append(
                "the replies were replayed from a recording: this number does not include the backbone's own noise"
            )
        return "\n".join(lines)

    def _recommended(self) -> str:
        if self.panel is None:
            return f"{self.criterion}, and repeats: no panel of up to {LARGEST} tasks shows a gain of 10 points under this noise"
        return f"{self.criterion} on {counted(self.panel, 'task')} or more, which show a gain of 10 points"


async def probe(measurer: Measurer, panel: Panel, commit: str, bar: Bar, placebos: Sequence[str] = ("text",)) -> Probe:
    """Measure the harness at ``commit`` twice on the panel, and once under each placebo, all afresh; ``bar`` counts each run.

    Raises ConfigError for an unknown placebo.
    """
    from harnesslab.analysis.statistics import minimum_gain

    for name in placebos:
        if name not in PLACEBOS:
            raise ConfigError(f"there is no placebo {name!r:.60}; there are {', '.join(PLACEBOS)}")
    first = await measurer.measure(commit, panel, bar, purpose="probe", fresh=True)
    # A greedy backbone has no seed to draw; a recording then has the same requests.
    draw = panel if is_greedy(measurer.backbone) else replace(panel, first=panel.first + panel.repeats)
    second = await measurer.measure(commit, draw, bar, purpose="probe", fresh=True)
    harness = measurer.harness(commit)
    flips = {}
    for name in placebos:
        changed = _placebo(harness, name)
        pipelines = {task.id: Pipeline(changed) for task in panel.tasks}
        mixed = {"placebo": name, "before": first.id}
        run = await measurer.measure_mixed(commit, panel, bar, pipelines, mixed, purpose="placebo")
        flips[name] = _flipped(first, run)[1]
    tasks, moved = _flipped(first, second)
    floor = max([moved, *flips.values()]) / tasks if tasks else 0.0
    replies = [reply for episode in second for step in episode.steps for reply in step.replies]
    enough = (n for n in range(5, LARGEST + 1, 5) if (minimum_gain(n, floor) or n) <= WANTED * n)
    return Probe(
        tasks=tasks,
        flips=moved,
        minimum=minimum_gain(tasks, floor),
        tokens=sum(episode.prompt_tokens + episode.completion_tokens for episode in second),
        seconds=sum(episode.seconds for episode in second),
        episodes=sum(1 for episode in second.scorable),
        replayed=bool(replies) and all(reply["cached"] for reply in replies),
        placebo=flips,
        replies=await _asked(measurer, first),
        panel=next(enough, None),
    )


def _placebo(harness: Harness, name: str) -> Harness:
    system = PLACEBOS[name](harness.prompt.system)
    return replace(harness, prompt=harness.prompt.model_copy(update={"system": system}))


def _flipped(first: Run, second: Run) -> tuple[int, int]:
    """(tasks scorable in both, tasks whose outcome differs); repeats are paired in their order."""
    shift = min((e.repeat for e in second), default=0) - min((e.repeat for e in first), default=0)
    moved = [replace(episode, repeat=episode.repeat - shift) for episode in second]
    pairs = [pair for pair in pair_up(first, moved) if pair.scorable]
    return len({pair.task for pair in pairs}), sum(map(len, changed_tasks(pairs)))


async def _asked(measurer: Measurer, run: Run) -> dict[str, int]:
    """How many different replies the first request of the run gets, asked again in three ways; empty where nothing more can be asked."""
    body: Mapping[str, Any] = next((step.request for episode in run for step in episode.steps), {})
    messages = body.get("messages")
    if not messages or getattr(measurer.backbone, "control", False):
        return {}
    request = Request(tuple(messages), tools=tuple(body.get("tools") or ()) or None, seed=1)
    # It shares the beginning of the other one, so that a prefix cache holds something else when that one comes again.
    last = {**messages[-1], "content": f"{messages[-1].get('content') or ''}\n\nTake your time."}
    other = replace(request, messages=(*messages[:-1], last))
    backbone = measurer.backbone
    try:
        alone = [await _reply(measurer, backbone, request, n) for n in range(ASKED)]
        between = []
        for n in range(ASKED):
            await _reply(measurer, backbone, other, n)
            between.append(await _reply(measurer, backbone, request, ASKED + n))
        asked = (_reply(measurer, backbone, request, 2 * ASKED + n) for n in range(ASKED))
        together = list(await asyncio.gather(*asked))
    except BackboneError:
        return {}
    return {"alone": len(set(alone)), "after another": len(set(between)), "at once": len(set(together))}


async def _reply(measurer: Measurer, backbone: MinimalBackbone, request: Request, repeat: int) -> str:
    limits = measurer.limits
    if limits is not None:
        limits.allow(1)
    try:
        reply: Completion = await ask(backbone, request, repeat)
    finally:
        if limits is not None:
            limits.release(1)
    if measurer.spend is not None:
        measurer.spend(reply)
    return f"{reply.text}{reply.tool_calls!r}"
