"""What would an intervention have done? Its hooks are asked at each recorded step.

The record holds all that an intervention may see, so the Context of each step can be made again. The model is not
asked, and the environment is not stepped: a hit says where an intervention would have fired and what it would have
changed there, not what would have come of it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from harnesslab.errors import InterventionFault
from harnesslab.harness.base import LAYERS, Intervention
from harnesslab.harness.context import Action, Context, Draft, Protocol, Turn
from harnesslab.harness.load import Harness, bind, load_yaml
from harnesslab.harness.pipeline import Pipeline
from harnesslab.plaintext import clip
from harnesslab.rollout.records import Episode, Step
from harnesslab.rollout.taxonomy import action_text


@dataclass(frozen=True, slots=True)
class Reply:
    """A recorded reply in the form that the pipeline reads."""

    text: str
    tool_calls: tuple[dict[str, Any], ...] = ()
    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True)
class Hit:
    """A step in which the intervention would have fired. ``changes`` is true where the executed action would differ."""

    episode: Episode
    step: Step
    what: str
    changes: bool


def contexts(episode: Episode, protocol: Protocol, tools: tuple[dict[str, Any], ...] | None) -> Iterator[Context]:
    """The Context of each recorded step."""
    turns: tuple[Turn, ...] = ()
    for step in episode.steps:
        yield Context(
            instruction=episode.instruction,
            observation=step.observation,
            history=turns,
            admissible=step.admissible,
            tools=tools,
            step=step.index,
            budget=episode.budget,
            protocol=protocol,
        )
        turns = (*turns, Turn(step.observation, step.raw, step.action, step.result, step.invalid, step.fired))


def replies(step: Step) -> list[Reply]:
    """The recorded replies of a step; the chosen text alone where none were kept."""
    found = [
        Reply(str(r.get("text") or ""), tuple(r.get("tool_calls") or ()), str(r.get("finish_reason") or "stop"))
        for r in step.replies
        if "again" not in r
    ]
    return found or [Reply(step.raw)]


class Replay:
    """Asks interventions about the recorded episodes."""

    def __init__(self, harness: Harness, episodes: Iterable[Episode], tools: tuple[dict[str, Any], ...] | None):
        self._harness = harness
        self._seen = [
            (episode, step, context)
            for episode in episodes
            for step, context in zip(episode.steps, contexts(episode, harness.protocol, tools), strict=True)
        ]

    def hits(self, path: str, text: str) -> list[Hit]:
        """Where the intervention in the file ``path`` would have fired. Raises HarnessFileError for a bad file.

        An intervention that fails on the record has no hits: it would fail in an episode too.
        """
        intervention = load_yaml(path, text)
        pipeline = Pipeline(with_intervention(self._harness, intervention))
        found: list[Hit] = []
        try:
            for _, places in groupby(self._seen, key=lambda place: id(place[0])):
                own = pipeline.episode()
                try:
                    found += [hit for place in places if (hit := _ask(intervention, own, *place)) is not None]
                finally:
                    own.close()
        except (InterventionFault, ValueError, TypeError, TimeoutError, LookupError):
            return []
        return found


def with_intervention(harness: Harness, intervention: Intervention) -> Harness:
    """The harness with one intervention more, or in place of that of the same name. The given harness stays as it is."""
    others = [copy.copy(other) for other in harness.interventions if other.name != intervention.name]
    everyone = sorted([*others, intervention], key=lambda i: (LAYERS.index(i.layer), i.name))
    bind([other for other in everyone if type(other) is type(intervention)])
    return replace(harness, interventions=tuple(everyone))


def _ask(intervention: Intervention, pipeline: Pipeline, episode: Episode, step: Step, context: Context) -> Hit | None:
    if intervention.when is not None and not intervention.when.holds(context):
        return None
    chosen = pipeline.choose(context, replies(step)) if _acts(intervention) else None
    if chosen is not None and intervention.name in chosen.fired:
        action: Action | None = chosen.proposal.action
        decision = chosen.decision
        if decision is not None and decision.action is not None:
            action = decision.action
        held = chosen.proposal.withheld or (decision is not None and (decision.withhold or decision.stop))
        after = "nothing (withheld)" if held else action_text(action) or "nothing"
        before = action_text(step.action) if step.action is not None else step.raw
        changed = held or action != step.action
        if not changed and (decision is None or not decision.note):
            return None
        what = f"{clip(before, 60)} would become {clip(after, 60)}" if changed else f"a note beside {clip(after, 60)}"
        return Hit(episode, step, what, changed)
    if (seen := intervention.observe(context, context.observation)) is not None:
        return Hit(episode, step, f"{clip(context.observation, 60)} would become {clip(seen, 60)}", False)
    draft = Draft(choices=context.admissible if step.choices else None)
    if intervention.shape(context, draft) is None:
        return None
    return Hit(episode, step, f"the request before {clip(action_text(step.action) or step.raw, 60)} changes", False)


def _acts(intervention: Intervention) -> bool:
    """Whether it has a hook on replies or actions; one that only shapes requests need not be shown any."""
    return not {"realize", "regulate"}.isdisjoint(intervention.hooks)
