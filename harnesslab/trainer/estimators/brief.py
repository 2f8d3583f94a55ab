"""What an estimator is given and told. This is the one file to read before writing your own estimator.

An estimator is an object with one method, and up to three more members if it wants them::

    def propose(self, failures, harness, history=(), brief=None) -> Proposals    # required
    def diagnose(self, brief) -> str             # what is wrong, in words: see Diagnoses
    def remember(self, brief) -> str             # the memo's new text: see Remembers
    at_most: Mapping[str, float | None]          # what one asking costs: see Costs

``brief`` is optional: leave the parameter out and :meth:`propose` gets the first three. A call of
``trainer.propose()`` asks, in this order, :meth:`diagnose`, :meth:`propose`, :meth:`remember`; the epochs call
:meth:`remember` once more after each verdict. Everything in a :class:`Brief` comes from the search split: the tasks, texts
and outcomes of the gate and of the sealed split are not in it, nor is anything private to an environment. Of earlier
candidates it holds how many gate tasks they won and lost, never which.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from harnesslab.errors import BackboneError, BudgetExceeded, EstimatorFault, HarnesslabError, OrderError, ProposerSkip
from harnesslab.llm.types import Completion, Request
from harnesslab.rollout.loop import run_sync
from harnesslab.trainer.estimators.base import PastVerdict

if TYPE_CHECKING:
    from harnesslab.harness import Harness
    from harnesslab.llm.meter import Meter
    from harnesslab.llm.types import Backbone, MinimalBackbone
    from harnesslab.trainer.failures import Failures

MEMO_LINES = 150
"""Lines that the memo may have; what is longer is cut."""
MEMO_CHARS = 30_000
POLL_S = 0.2
"""How often a waiting proposer looks whether it was stopped."""
PROPOSER = "proposer"
"""The role under which the meter counts what estimators spend."""


class Allowance:
    """The lab's meter, as far as a proposer needs it: it counts, and it stops.

    It holds the meter weakly: the meter's book leads to the lab, and with it to the gate's tasks.
    """

    def __init__(self, meter: Meter):
        self._weak = weakref.ref(meter)

    @property
    def _meter(self) -> Meter:
        meter = self._weak()
        if meter is None:
            raise OrderError("this brief is over: the trainer that it came from no longer exists")
        return meter

    def wrap(self, llm: MinimalBackbone) -> Backbone:
        """The model, counted under ``proposer`` and stopped by the lab's budget. Calls raise BudgetExceeded."""
        return self._meter.wrap(llm, PROPOSER)

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
        self._meter.charge(
            PROPOSER, calls=calls, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, seconds=seconds, model=model,
            money=money,
        )  # fmt: skip

    def check(self) -> None:
        """Raise BudgetExceeded where a limit of the lab is reached."""
        self._meter.check()

    @property
    def used(self) -> Mapping[str, Any]:
        """What proposers have used in this lab: calls, prompt_tokens, completion_tokens, seconds, money."""
        return self._meter.used(PROPOSER)


@dataclass(frozen=True, slots=True)
class Comment:
    """A person sent a proposal back: what it was, and what they said about it."""

    name: str
    changes: Mapping[str, str | None]
    comment: str
    who: str = ""
    content: str = ""


@runtime_checkable
class Diagnoses(Protocol):
    """An estimator that says what is wrong before it proposes."""

    def diagnose(self, brief: Brief) -> str:
        """What is wrong, in words; shown with the proposals."""
        ...


@runtime_checkable
class Remembers(Protocol):
    """An estimator that keeps a memo between epochs, kernels and trainings of a lab."""

    def remember(self, brief: Brief) -> str:
        """The memo's new text, at most :data:`MEMO_LINES` lines. Called after :meth:`propose` and after each verdict."""
        ...


@runtime_checkable
class Costs(Protocol):
    """An estimator whose proposals cost something; ``trainer.plan()`` and ``trainer.preview()`` count it."""

    @property
    def at_most(self) -> Mapping[str, float | None]:
        """``calls``, ``tokens``, ``money`` and ``seconds`` of one asking; what it cannot say is None or absent."""
        ...


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

    def ask(
        self, llm: MinimalBackbone, said: str | Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None = None
    ) -> str:
        """A model's reply to a prompt or to chat messages, on the meter and within the deadline.

        ``schema``: a JSON schema for the reply. An endpoint that refuses it is asked again without; so check what comes back.
        Raises BackboneError, BudgetExceeded, and ProposerSkip after the deadline or when a person stops the proposer.
        """
        messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
        request = Request(messages=tuple(messages), schema=schema)
        model = self.meter.wrap(llm)
        try:
            return run_sync(self._awaited(model, request)).text
        except BackboneError as error:
            if schema is None or error.cause not in ("setup", "refused"):
                raise
        return run_sync(self._awaited(model, replace(request, schema=None))).text

    async def _awaited(self, model: Backbone, request: Request) -> Completion:
        asked = asyncio.ensure_future(model.complete(request))
        try:
            while not asked.done():
                self.check()
                await asyncio.wait([asked], timeout=min(POLL_S, max(self.left, 0)))
            return asked.result()
        finally:
            asked.cancel()

    def check(self) -> None:
        """Raise ProposerSkip where the deadline has passed or a person has stopped the proposer."""
        if self.stop.is_set():
            raise ProposerSkip("the proposer was stopped", cause="stopped")
        if self.left <= 0:
            raise ProposerSkip(
                "the proposer's deadline has passed; settings={'proposer_deadline': ...} extends it", cause="hang"
            )

    def with_diagnosis(self, diagnosis: str) -> Brief:
        """The same, with a diagnosis in words."""
        return replace(self, diagnosis=diagnosis)


def asked(estimator: Any, name: str, brief: Brief) -> str:
    """What an optional method of an estimator, ``diagnose`` or ``remember``, returns; empty where it has none.

    Raises EstimatorFault when it raises or returns anything but text.
    """
    if not isinstance(estimator, {"diagnose": Diagnoses, "remember": Remembers}[name]):
        return ""
    method = getattr(estimator, name)
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
