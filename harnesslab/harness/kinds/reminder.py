"""``contract/reminder``: say once more how a reply must look."""

from __future__ import annotations

from pydantic import Field

from harnesslab.harness.context import Context, Draft
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.protocol import expected_form


class ReminderParams(Params):
    """Parameters of ``reminder``."""

    text: str = Field(
        default="", max_length=5000, description="the reminder; empty: the form that the protocol expects"
    )


@register
class Reminder(Kind[ReminderParams]):
    """The output format as the last thing that the model reads. Limit it to slips with `when: {last_invalid: true}`."""

    kind = "reminder"
    layers = ("contract",)
    Params = ReminderParams
    example = """\
kind: reminder
about: after a slip, say how a reply must look
when: {last_invalid: true}
"""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Append the reminder to the last user message."""
        return draft.add(after=self.params.text or expected_form(context.protocol, context.tools))
