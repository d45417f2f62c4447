"""Numbers for Prometheus, in a registry of this application and not of the process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """What the surfaces count."""

    def __init__(self, numbers: Callable[[], Mapping[str, float]]) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=False)
        self.requests = Counter(
            "mira_http_requests", "HTTP requests.", ("route", "method", "status"), registry=registry
        )
        self.seconds = Histogram(
            "mira_http_request_seconds",
            "Time to the end of the response.",
            ("route",),
            buckets=_BUCKETS,
            registry=registry,
        )
        registry.register(_Engine(numbers))

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)


class _Engine(Collector):
    """Numbers that others count, read when asked for."""

    def __init__(self, numbers: Callable[[], Mapping[str, float]]) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, value in self._numbers().items():
            yield GaugeMetricFamily(
                "mira_" + re.sub(r"[^a-zA-Z0-9_]", "_", name), name, value=value
            )
