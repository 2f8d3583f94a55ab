"""One meter for every call, the agent's and the proposer's: calls, tokens, seconds, money; a hard stop."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from harnesslab.errors import BudgetExceeded
from harnesslab.llm.book import Book
from harnesslab.llm.types import Completion, MinimalBackbone, Request
from harnesslab.llm.wrapper import Wrapper
from harnesslab.markup import table


@dataclass(frozen=True, slots=True)
class Price:
    """Money for a million tokens, in whatever currency the table is kept."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Money for so many tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used. ``calls`` were live; replayed replies count in ``cached`` only and cost nothing.

    ``seconds`` are those of the single calls, added up; calls at the same time count each. ``unpriced`` calls went to
    a model that the price table does not have (a local GGUF costs nothing and needs no price).
    """

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    money: float = 0.0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        # Field by field: this runs once a call, and asdict copies deeply.
        return Usage(
            self.calls + other.calls,
            self.cached + other.cached,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.seconds + other.seconds,
            self.money + other.money,
            self.unpriced + other.unpriced,
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """Hard limits on live calls, for all roles together; None means none."""

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    money: float | None = None


UNLIMITED = Budget()


class Meter:
    """Counts every call of a lab. Safe to use from several threads and loops.

    With a ``book`` the figures and the limits belong to the lab: what was used in earlier sessions and by other
    notebooks counts against the budget, and a limit that is not given here is the one that was set last.

    ``prices`` maps a model's name to its Price; the longest name that the served model's name starts with counts.
    """

    def __init__(
        self,
        prices: Mapping[str, Price] | None = None,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        max_money: float | None = None,
        book: Book | None = None,
    ):
        self.prices = dict(prices or {})
        self._lock = threading.RLock()
        self._used: dict[str, Usage] = {}
        self._others: dict[str, Usage] = {}
        self._in_flight = 0
        self._book, self._name = book, secrets.token_hex(8)
        given = Budget(max_calls, max_tokens, max_seconds, max_money)
        stored = dict(book.budget()) if book is not None else {}
        self._budget = Budget(
            **{**stored, **{name: value for name, value in asdict(given).items() if value is not None}}
        )
        self._unwritten = book is not None and asdict(self._budget) != asdict(Budget(**stored))
        if book is not None:
            self._read()

    @property
    def budget(self) -> Budget:
        """The limits, for all roles together. Set another Budget to raise, lower or lift them."""
        return self._budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        with self._lock:
            self._budget, self._unwritten = budget, self._book is not None
            self.save()

    def reset(self) -> None:
        """Start counting again at zero, for the whole lab. The limits stay."""
        with self._lock:
            self._used, self._others = {}, {}
            if self._book is not None:
                self._book.clear()

    def save(self) -> None:
        """Write what was used to the lab's book, if there is one, and read what others have used."""
        if self._book is None:
            return
        with self._lock:
            if self._unwritten:
                self._book.write_budget(asdict(self._budget))
                self._unwritten = False
            if self._used or self._in_flight:
                self._book.write(self._name, self._row(self._in_flight))
            self._read()

    def _row(self, in_flight: int) -> dict[str, dict[str, Any]]:
        """What the book keeps of this meter: calls in flight count as made, because they may be paid for."""
        return {**self.as_dict(), **({_IN_FLIGHT: asdict(Usage(calls=in_flight))} if in_flight else {})}

    def _read(self) -> None:
        assert self._book is not None
        self._learn(self._book.usage())

    def _learn(self, written: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        others: dict[str, Usage] = {}
        for name, roles in written.items():
            for role, used in roles.items() if name != self._name else ():
                others[role] = others.get(role, Usage()) + Usage(**used)
        self._others = others

    def _total(self) -> Usage:
        return sum([*self._used.values(), *self._others.values()], Usage())

    def usage(self, role: str | None = None) -> Usage:
        """What a role (``agent``, ``proposer``) has used; without ``role`` all of them together."""
        with self._lock:
            if role is not None:
                return self._used.get(role, Usage()) + self._others.get(role, Usage())
            return self._total()

    def begin(self, calls: int = 1) -> None:
        """Take calls out of the budget until :meth:`release`; raises BudgetExceeded where that many are not left.

        Under a limit they are taken out of the lab's budget, so that two kernels cannot both make the last call.
        """
        with self._lock:
            if self._book is None or self._budget == UNLIMITED:
                self._check(calls)
                self._in_flight += calls
                return
            if self._unwritten:
                self.save()

            def allowed(written: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
                self._learn(written)
                self._check(calls)

            self._book.reserve(self._name, self._row(self._in_flight + calls), allowed)
            self._in_flight += calls

    def release(self, calls: int = 1) -> None:
        """The calls that :meth:`begin` let go have ended, with a reply, which is counted apart, or without."""
        with self._lock:
            self._in_flight -= calls
            if self._budget != UNLIMITED:
                self.save()

    def end(self, completion: Completion | None, role: str) -> None:
        """One call that :meth:`begin` let go has ended, with a reply or without."""
        with self._lock:
            if completion is not None:
                self._used[role] = self._used.get(role, Usage()) + self._usage_of(completion)
            self.release()

    def count(self, completion: Completion, role: str = "agent") -> None:
        """Add one reply. Never raises: what was paid for is kept; :meth:`check` stands before the next call."""
        used = self._usage_of(completion)
        with self._lock:
            self._used[role] = self._used.get(role, Usage()) + used
            self._saved_if_limited(used)

    def _saved_if_limited(self, used: Usage) -> None:
        """A limit must hold after a kill in the middle of an episode, so each live call is written under one."""
        if used.calls and self._budget != UNLIMITED:
            self.save()

    def spend(self, completion: Completion, role: str = "agent") -> None:
        """Add one reply that came past :meth:`wrap`; then raise BudgetExceeded where a limit was overstepped by it."""
        self.count(completion, role)
        with self._lock:
            if self._book is not None and self._budget != UNLIMITED:
                self._read()
            self._check(0)

    def charge(
        self,
        role: str,
        *,
        calls: int = 1,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        seconds: float = 0.0,
        model: str = "",
        money: float | None = None,
    ) -> None:
        """Add what a program used by itself, as it reported it. Without ``money`` the price of ``model`` counts. Never raises."""
        price = self.price(model) if money is None else None
        tokens = (max(0, prompt_tokens), max(0, completion_tokens))
        paid = price.of(*tokens) if price else max(0.0, money or 0.0)
        unpriced = int(price is None and money is None and sum(tokens) > 0)
        used = Usage(max(0, calls), 0, *tokens, max(0.0, seconds), paid, unpriced)
        with self._lock:
            self._used[role] = self._used.get(role, Usage()) + used
            self._saved_if_limited(used)

    def used(self, role: str) -> dict[str, Any]:
        """:meth:`usage` of a role as plain JSON."""
        return asdict(self.usage(role))

    def _usage_of(self, completion: Completion) -> Usage:
        if completion.cached:
            return Usage(cached=1)
        price = self.price(completion.model)
        tokens = (completion.prompt_tokens, completion.completion_tokens)
        money = price.of(*tokens) if price else 0.0
        return Usage(1, 0, *tokens, completion.seconds, money, int(price is None and sum(tokens) > 0))

    def check(self) -> None:
        """Raise BudgetExceeded where a limit is reached, calls in flight included."""
        with self._lock:
            if self._book is not None and self._budget != UNLIMITED:
                self._read()  # another notebook may have spent meanwhile
            self._check(1)

    def _check(self, calls: int) -> None:
        """``calls`` are about to be made, beside those in flight; with 0, only what is over counts."""
        if self.budget == UNLIMITED:
            return
        used = self._total() + Usage(calls=self._in_flight if calls else 0)
        if used.unpriced and self.budget.money is not None:
            raise BudgetExceeded(
                f"a limit on money is set, but {used.unpriced} calls went to a model without a price; "
                "no further calls are made. Set meter.prices[model] = Price(prompt, completion)."
            )
        for name in ("calls", "tokens", "seconds", "money"):
            limit, spent = getattr(self.budget, name), getattr(used, name)
            more = max(calls - 1, 0) if name == "calls" else 0
            if limit is not None and (spent + more > limit or (calls and spent + more == limit)):
                raise BudgetExceeded(
                    f"{_NOUN[name]} budget exhausted ({spent:,g} of {limit:,g}). Raise it "
                    f"(settings={{'max_{name}': ...}} or trainer.meter.budget = hl.Budget({name}=...)), or start counting "
                    "again with trainer.meter.reset(); then resume. Finished episodes are kept."
                )

    def wrap(self, backbone: MinimalBackbone, role: str = "agent") -> Metered:
        """``backbone``, metered under ``role`` and stopped by the budget."""
        return Metered(backbone, self, role)

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Usage by role, plain JSON."""
        with self._lock:
            return {role: asdict(used) for role, used in self._used.items()}

    def price(self, model: str) -> Price | None:
        """The price of a model; None where the table has none. A local GGUF costs nothing."""
        if model.endswith(".gguf"):
            return Price(0.0, 0.0)
        names = [name for name in self.prices if model.startswith(name)]
        return self.prices[max(names, key=len)] if names else None

    def _rows(self) -> list[tuple[str, ...]]:
        with self._lock:
            roles = dict.fromkeys([*self._used, *self._others])
            used = [*((role, self.usage(role)) for role in roles), ("all", self._total())]
        return [
            (role, f"{u.calls}", f"{u.cached}", f"{u.prompt_tokens}", f"{u.completion_tokens}", f"{u.seconds:.1f}",
             f"{u.money:.4f}")
            for role, u in used
        ]  # fmt: skip

    def __repr__(self) -> str:
        return "\n".join("  ".join(f"{cell:>10}" for cell in row) for row in (_HEAD, *self._rows()))

    def _repr_html_(self) -> str:
        return str(table(_HEAD, self._rows()))


_IN_FLIGHT = "in flight"
_NOUN = {"calls": "Call", "tokens": "Token", "seconds": "Time", "money": "Money"}
_HEAD = ("role", "calls", "cached", "prompt", "completion", "seconds", "money")


class Metered(Wrapper):
    """A backbone whose every call is counted, and which raises BudgetExceeded instead of going over the budget."""

    def __init__(self, backbone: MinimalBackbone, meter: Meter, role: str):
        super().__init__(backbone)
        self._meter, self._role = meter, role

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """Check the budget, ask, count."""
        self._meter.begin()
        completion = None
        try:
            completion = await super().complete(request, repeat=repeat)
            return completion
        finally:
            self._meter.end(completion, self._role)
