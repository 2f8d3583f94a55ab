"""``action/rerank``: draw several replies and execute the best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from harnesslab.harness.actions import is_admissible, key, shown, tried_here, words
from harnesslab.harness.context import MAX_SAMPLES, Context, Draft, Proposal
from harnesslab.harness.kind import Kind, Params, register


class RerankParams(Params):
    """Parameters of ``rerank``."""

    samples: int = Field(default=3, ge=2, le=MAX_SAMPLES, description="replies to sample in each step where it fires")
    temperature: float = Field(default=0.8, gt=0, le=2, description="sampling temperature of these replies")
    validity: float = Field(default=1.0, ge=0, description="weight of: an action was read and is admissible")
    novelty: float = Field(default=0.5, ge=0, description="weight of: 1 / (1 + times it was given in this situation)")
    agreement: float = Field(default=0.5, ge=0, description="weight of: share of the replies that give the same action")
    overlap: float = Field(
        default=0.0, ge=0, description="weight of: share of the action's words that the instruction has"
    )


@register
class Rerank(Kind[RerankParams]):
    """Several samples, scored by validity, novelty, agreement and, if asked, by the words shared with the task.

    Agreement is self-consistency (Wang et al. 2023) over actions in place of answers. Costs ``samples`` calls a step.
    """

    kind = "rerank"
    layers = ("action",)
    Params = RerankParams
    example = """\
kind: rerank
about: one sample is a coin flip; three and a vote are not
params: {samples: 3, temperature: 0.8, overlap: 1.0}
"""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Ask for the samples; the pipeline draws one where a single choice is left."""
        samples = max(draft.samples, self.params.samples)
        return replace(draft, samples=samples, temperature=self.params.temperature)

    def rank(self, context: Context, proposals: Sequence[Proposal]) -> Sequence[float] | None:
        """Score each proposal; None where all are the same, so that nothing is said to have fired."""
        keys = [key(p.action) if p.action is not None and not p.withheld else "" for p in proposals]
        if len(set(keys)) == 1:
            return None
        counts = Counter(keys)
        past = tried_here(context)
        task = set(words(context.instruction)) if self.params.overlap else set()
        return [
            self._score(context, p, counts[k] / len(keys), past[k], task) if k else 0.0
            for k, p in zip(keys, proposals, strict=True)
        ]

    def _score(self, context: Context, proposal: Proposal, share: float, times: int, task: set[str]) -> float:
        weights, action = self.params, proposal.action
        assert action is not None
        score = weights.agreement * share + weights.novelty / (1 + times)
        if is_admissible(context, action):
            score += weights.validity
        if task:
            own = words(shown(action))
            score += weights.overlap * sum(word in task for word in own) / max(1, len(own))
        return score
