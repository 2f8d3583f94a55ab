"""``regulation/retry_error``: an error is shown together with what caused it."""

from __future__ import annotations

from pydantic import Field

from harnesslab.harness.actions import shown
from harnesslab.harness.context import Context, Draft
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.prompt import clip
from harnesslab.harness.protocol import expected_form
from harnesslab.harness.regexes import Regex

_SHOWN = 600
"""Characters of the action and of the error that are repeated."""


class RetryErrorParams(Params):
    """Parameters of ``retry_error``."""

    pattern: Regex = Field(
        default=Regex(
            r"(?i)\berror\b|\bexception\b|\binvalid\b|\bno such\b|\bnot (?:found|understood|recognized|possible)\b"
        ),
        description="the last result matches this",
    )
    invalid: bool = Field(default=True, description="also after any invalid step, whatever its result says")
    advice: str = Field(
        default="Correct the action; do not send it again unchanged.",
        max_length=2000,
        description="text below the error",
    )
    form: bool = Field(default=True, description="repeat how a reply must look")
    limit: int = Field(default=20, ge=1, description="maximum number of times per episode")


@register
class RetryError(Kind[RetryErrorParams]):
    """After an error: the failed action, the error and the expected form, at the end of the request."""

    kind = "retry_error"
    layers = ("regulation",)
    Params = RetryErrorParams
    example = """\
kind: retry_error
about: SQL errors are ignored and the statement is sent again
params:
  pattern: '(?i)no such (column|table)|syntax error'
  advice: Compare every name in the statement with the headers of the table, then send a corrected one.
"""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Append the action, the error and the advice to the last user message."""
        if not context.history or context.count_fired(self.name) >= self.params.limit:
            return None
        last = context.history[-1]
        if not (self.params.invalid and last.invalid) and not self.params.pattern.search(last.result):
            return None
        given = shown(last.action) if last.action is not None else last.raw
        lines = [
            f"Your last action failed: {clip(given.strip(), _SHOWN)}",
            f"The error: {clip(last.result.strip(), _SHOWN)}",
            self.params.advice,
            expected_form(context.protocol, context.tools) if self.params.form else "",
        ]
        return draft.add(after="\n".join(line for line in lines if line))
