"""What the proxy counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """A registry of its own, so that two proxies in one process do not count together."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        where: dict[str, Any] = {"registry": self._registry, "namespace": "harnesslab"}
        self._requests = Counter("requests", "Requests of agents.", ("path", "status", "mode"), **where)
        self._fired = Counter("fired", "Requests in which an intervention fired.", ("intervention",), **where)
        self._repairs = Counter("repairs", "Replies that were changed.", ("intervention",), **where)
        self._blocks = Counter("blocks", "Replies that were withheld.", ("intervention",), **where)
        self._faults = Counter("faults", "Requests passed through because the harness failed.", **where)
        self._seconds = Histogram("request_seconds", "From request to reply.", ("path",), buckets=_SECONDS, **where)
        self._overhead = Histogram(
            "overhead_seconds", "The same without the upstream.", ("path",), buckets=_SECONDS, **where
        )
        self.sessions = Gauge("sessions", "Sessions that are remembered.", **where)

    def request(self, path: str, status: int, mode: str, *, seconds: float, overhead: float) -> None:
        """One request was answered."""
        self._requests.labels(path, status, mode).inc()
        self._seconds.labels(path).observe(seconds)
        self._overhead.labels(path).observe(overhead)

    def steps(self, fired: Iterable[str], repaired: Iterable[str], blocked: Iterable[str], fault: str) -> None:
        """What the interventions did to it."""
        for counter, names in ((self._fired, fired), (self._repairs, repaired), (self._blocks, blocked)):
            for name in names:
                counter.labels(name).inc()
        if fault:
            self._faults.inc()

    def render(self) -> tuple[bytes, str]:
        """The text for a scraper, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
