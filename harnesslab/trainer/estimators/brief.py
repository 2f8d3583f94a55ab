"""What an estimator is given and told. This is the one file to read before writing your own estimator.

An estimator is an object with one method, and two more if it wants them::

    def propose(self, failures, harness, history=(), brief=None) -> Proposals    # required
    def diagnose(self, brief) -> str                                             # what is wrong, in words
    def remember(self, brief) -> str                                             # the memo's new text

``brief`` is optional: leave the parameter out and :meth:`propose` gets the first three. A call of
``trainer.propose()`` asks, in this order, :meth:`diagnose`, :meth:`propose`, :meth:`remember`; the epochs call
:meth:`remember` once more after each verdict. Everything in a :class:`Brief` comes from the search split: the tasks, texts
and outcomes of the gate and of the sealed split are not in it, nor is anything private to an environment. Of earlier
candidates it holds how many gate tasks they won and lost, never which.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harnesslab.errors import BudgetExceeded, EstimatorFault, HarnesslabError
from harnesslab.trainer.estimators.base import PastVerdict

if TYPE_CHECKING:
    from harnesslab.harness import Harness
    from harnesslab.llm.meter import Meter
    from harnesslab.llm.types import Backbone, MinimalBackbone
    from harnesslab.trainer.failures import Failures

MEMO_LINES = 150
"""Lines that the memo may have; what is longer is cut."""
MEMO_CHARS = 30_000
PROPOSER = "proposer"
"""The role under which the meter counts what estimators spend."""


class Allowance:
    """The lab's meter, as far as a proposer needs it: it counts, and it stops. Knows nothing of the lab."""

    def __init__(self, meter: Meter):
        def wrap(llm: MinimalBackbone) -> Backbone:
            return meter.wrap(llm, PROPOSER)

        self._wrap = wrap
        self._charge: Callable[..., None] = lambda **used: meter.charge(PROPOSER, **used)
        self._check: Callable[[], None] = lambda: meter.check()
        self._used: Callable[[], Mapping[str, Any]] = lambda: meter.used(PROPOSER)

    def wrap(self, llm: MinimalBackbone) -> Backbone:
        """The model, counted under ``proposer`` and stopped by the lab's budget. Calls raise BudgetExceeded."""
        return self._wrap(llm)

    def charge(
        self,
        *,
        calls: int = 1,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        seconds: float = 0.0,
        model: str = "",
        money: float | None = None,
    ) -> None:
        """Count what was spent past :meth:`wrap`, such as a program's own calls of its model.

        ``money`` as reported; without it the price of ``model`` counts. Never raises; call :meth:`check` before spending more.
        """
        self._charge(
            calls=calls, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, seconds=seconds, model=model,
            money=money,
        )  # fmt: skip

    def check(self) -> None:
        """Raise BudgetExceeded where a limit of the lab is reached."""
        self._check()

    @property
    def used(self) -> Mapping[str, Any]:
        """What proposers have used in this lab: calls, prompt_tokens, completion_tokens, seconds, money."""
        return self._used()


@dataclass(frozen=True, slots=True)
class Comment:
    """A person sent a proposal back: what it was, and what they said about it."""

    name: str
    changes: Mapping[str, str | None]
    comment: str
    who: str = ""
    content: str = ""


@dataclass(frozen=True)
class Brief:
    """Everything that an estimator may know, in one object.

    ``failures``: the diagnosed search run; ``failures.clusters`` have the causes, ``failures.run`` every episode with all
    of its steps: the exact requests and replies, what was executed, what came back, and what fired.
    ``harness``: the present one; ``harness.files`` are its files. ``history``: earlier candidates, oldest first, see
    :class:`PastVerdict`. ``memo``: what :meth:`remember` returned last. ``comments``: proposals that a person sent back.
    ``effects``: of the last screening, one mapping a proposal (name, estimate, low, high, helps, ...).
    ``rules``: the text of the lab's ``program.md``, empty where there is none. ``deadline``: when the answer is due, on the clock
    of ``time.monotonic``. ``tell``: takes one line of progress. ``stop``: set when a person stops the proposer. ``trust``: whether the
    lab may run Python in this process. ``diagnosis``: what :meth:`diagnose` returned.
    """

    failures: Failures
    harness: Harness
    history: Sequence[PastVerdict]
    meter: Allowance
    deadline: float
    memo: str = ""
    comments: tuple[Comment, ...] = ()
    effects: tuple[Mapping[str, Any], ...] = ()
    rules: str = ""
    trust: bool = False
    diagnosis: str = ""
    tell: Callable[[str], None] = lambda _line: None
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def left(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.deadline - time.monotonic()

    @property
    def kinds(self) -> list[dict[str, Any]]:
        """The kinds of intervention and the JSON schema of each one's parameters: what a YAML file may say."""
        from harnesslab.harness.kind import known_kinds

        return [
            {
                "kind": name,
                "layers": list(kind.layers),
                "about": (kind.__doc__ or "").strip().split("\n\n")[0],
                "params": kind.Params.model_json_schema(),
                "example": kind.example,
            }
            for name, kind in sorted(known_kinds().items())
        ]

    def with_diagnosis(self, diagnosis: str) -> Brief:
        """The same, with a diagnosis in words."""
        return replace(self, diagnosis=diagnosis)


def asked(estimator: Any, name: str, brief: Brief) -> str:
    """What an optional method of an estimator, ``diagnose`` or ``remember``, returns; empty where it has none.

    Raises EstimatorFault when it raises or returns anything but text.
    """
    method = getattr(estimator, name, None)
    if method is None:
        return ""
    called = f"{type(estimator).__name__}.{name}"
    try:
        said: Any = method(brief)
    except (HarnesslabError, BudgetExceeded):
        raise
    except Exception as error:
        raise EstimatorFault(f"{called} raised {type(error).__name__}: {error}") from error
    if said is None:
        return ""
    if not isinstance(said, str):
        raise EstimatorFault(f"{called} must return text, not {type(said).__name__}")
    return said


def cut_memo(text: str) -> str:
    """The memo as it is kept: at most :data:`MEMO_LINES` lines."""
    lines = text[:MEMO_CHARS].encode("utf-8", "replace").decode().replace("\r\n", "\n").split("\n")
    return "\n".join(lines[:MEMO_LINES]).strip("\n")
