"""``regulation/finish_guard``: do not finish before the work is done."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from harnesslab.harness.actions import shown
from harnesslab.harness.context import Action, Context, Decision, Proposal
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.regexes import Regex


class FinishGuardParams(Params):
    """Parameters of ``finish_guard``: at least one of ``finish_*`` and one of ``until_*``; each that is set must hold."""

    finish_tool: str | None = Field(default=None, description="calling this tool finishes the episode")
    finish_action: Regex | None = Field(default=None, description="an action that matches finishes the episode")
    until_tool: str | None = Field(default=None, description="allowed once this tool was called by a valid step")
    until_action: Regex | None = Field(default=None, description="allowed once a valid past action matches")
    until_observation: Regex | None = Field(default=None, description="allowed once something observed matches")
    message: str = Field(min_length=1, max_length=2000, description="shown instead of an observation")
    limit: int = Field(
        default=2, ge=1, description="maximum number of times per episode; the last step is never withheld"
    )

    @model_validator(mode="after")
    def _complete(self) -> FinishGuardParams:
        if self.finish_tool is None and self.finish_action is None:
            raise PydanticCustomError("value_error", "set finish_tool or finish_action")
        if self.until_tool is None and self.until_action is None and self.until_observation is None:
            raise PydanticCustomError("value_error", "set until_tool, until_action or until_observation")
        return self


@register
class FinishGuard(Kind[FinishGuardParams]):
    """A finishing action is withheld until the history meets a condition, a bounded number of times."""

    kind = "finish_guard"
    layers = ("regulation",)
    Params = FinishGuardParams
    example = """\
kind: finish_guard
about: answers from memory, without a query
params:
  finish_tool: commit_final_answer
  until_tool: execute_sql
  message: Run a query first and answer from its result.
"""

    def regulate(self, context: Context, proposal: Proposal) -> Decision | None:
        """Withhold a finishing action that comes too early."""
        if proposal.action is None or proposal.withheld or not self._finishes(proposal.action):
            return None
        if context.steps_left <= 1 or context.count_fired(self.name) >= self.params.limit or self._allowed(context):
            return None
        return Decision(note=self.params.message, withhold=True)

    def _finishes(self, action: Action) -> bool:
        tool, pattern = self.params.finish_tool, self.params.finish_action
        if tool is not None and _name(action) == tool:
            return True
        return pattern is not None and pattern.search(shown(action)) is not None

    def _allowed(self, context: Context) -> bool:
        params = self.params
        done = [turn.action for turn in context.history if turn.action is not None and not turn.invalid]
        if params.until_tool is not None and params.until_tool not in map(_name, done):
            return False
        if params.until_action is not None and not any(params.until_action.search(shown(action)) for action in done):
            return False
        seen = params.until_observation
        texts = [context.observation, *(turn.observation for turn in context.history)]
        return seen is None or any(seen.search(text) for text in texts)


def _name(action: Any) -> str | None:
    return action.get("name") if isinstance(action, dict) else None
