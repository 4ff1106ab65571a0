"""The metrics of crawls, which metrics.toml lists, and their sums by site.

A crawl counts in Scrapy's stats. Every 15 seconds it writes a line of JSON to the descriptor whose
number the environment variable `DESCRIPTOR` names: `{"stats": {…}}`, as `selected` returns them.
Its last line has `"summary": [...]`, too: the lines that say how it ended. The node that reads them
keeps `Totals`. A crawl without a node adds the same figures to a file in METRICS_FOLDER.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from contextlib import suppress
from itertools import product
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client.core import CounterMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from moviecrawler.basics.files import read_package_file

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from prometheus_client.metrics_core import Metric

DESCRIPTOR = "MOVIECRAWLER_FIGURES"
"""The environment variable by which a node gives its spiders the number of the descriptor."""

Sample = tuple[str, tuple[str, ...]]
"""A family's name, and the values of its labels but `site`."""
Samples = defaultdict[Sample, float]


class Figure(NamedTuple):
    """A metric family, a counter, and the stats whose sum it is: a table of metrics.toml."""

    name: str
    text: str
    pattern: re.Pattern[str]
    """Matches a stat's name; its named groups are labels."""
    known: Sequence[Sequence[str]]
    """For each label, the values that are known in advance; empty when they are not."""


def _figure(name: str, text: str, stats: str, known: Sequence[Sequence[str]] = ()) -> Figure:
    return Figure(f"moviecrawler_{name}", text, re.compile(stats), known)


_TABLES = tomllib.loads(read_package_file(__package__, "metrics.toml"))
FIGURES = [_figure(name, **table) for name, table in _TABLES.items()]
_FROM_THE_BEGINNING: list[Sample] = [
    (figure.name, labels)
    for figure in FIGURES
    if len(figure.known) == figure.pattern.groups
    for labels in product(*figure.known)
]
"""The series that are there at 0: Prometheus sees no growth to a first value."""
_BY_NAME = {figure.name: figure for figure in FIGURES}


def selected(stats: Mapping[str, Any]) -> dict[str, float]:
    """Return those of a crawl's stats that figures are made of.

    A text, such as why a site stopped, counts as 1.
    """
    return {
        name: float(value) if isinstance(value, int | float) else 1.0
        for name, value in stats.items()
        if any(figure.pattern.fullmatch(name) for figure in FIGURES)
    }


def samples_of(stats: Mapping[str, Any]) -> Samples:
    """Return the figures of a crawl's stats."""
    samples: Samples = defaultdict(float, dict.fromkeys(_FROM_THE_BEGINNING, 0.0))
    for stat, value in selected(stats).items():
        for figure in FIGURES:
            if found := figure.pattern.fullmatch(stat):
                samples[figure.name, found.groups()] += value
    return samples


def difference(samples: Samples, earlier: Mapping[Sample, float]) -> Samples:
    """Return by how much figures have grown."""
    return defaultdict(
        float, {sample: value - earlier.get(sample, 0.0) for sample, value in samples.items()}
    )


class Totals:
    """The figures of many crawls, by site. They only grow, as Prometheus expects of counters.

    Any thread may read them.
    """

    def __init__(self, sites: Iterable[str] = ()) -> None:
        """Begin at 0 for each of the sites."""
        self._ended: defaultdict[str, Samples] = defaultdict(lambda: defaultdict(float))
        self._ended.update({site: samples_of({}) for site in sites})
        self._running: dict[Hashable, tuple[str, Samples]] = {}
        self._lock = Lock()

    def update(self, crawl: Hashable, site: str, stats: Mapping[str, Any]) -> None:
        """Replace the figures of a running crawl; its `site` is the spider's name."""
        samples = samples_of(stats)
        with self._lock:
            self._running[crawl] = (site, samples)

    def end(self, crawl: Hashable) -> None:
        """Keep the last figures of a crawl that has ended."""
        with self._lock:
            if crawl in self._running:
                site, samples = self._running.pop(crawl)
                _add(self._ended[site], samples)

    def add(self, site: str, samples: Mapping[Sample, float]) -> None:
        """Add the figures of a site."""
        with self._lock:
            _add(self._ended[site], samples)

    def read(self, text: str) -> None:
        """Add the figures that `collect` once yielded, in Prometheus' text format.

        A text that is none has none.
        """
        with suppress(ValueError):
            for family in text_string_to_metric_families(text):
                if (figure := _BY_NAME.get(family.name)) is None:
                    continue
                for _, labels, value, *_ in family.samples:
                    of = tuple(labels.get(name, "") for name in figure.pattern.groupindex)
                    self.add(labels.get("site", ""), {(family.name, of): value})

    def by_site(self) -> dict[str, Samples]:
        """Return the sums of all crawls."""
        totals: defaultdict[str, Samples] = defaultdict(lambda: defaultdict(float))
        with self._lock:
            for site, samples in (*self._ended.items(), *self._running.values()):
                _add(totals[site], samples)
        return totals

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families. It is the method of a Prometheus collector."""
        families = {
            figure.name: CounterMetricFamily(
                figure.name, figure.text, labels=["site", *figure.pattern.groupindex]
            )
            for figure in FIGURES
        }
        for site, samples in self.by_site().items():
            for (name, labels), value in samples.items():
                families[name].add_metric([site, *labels], value)
        yield from families.values()


def _add(total: Samples, samples: Mapping[Sample, float]) -> None:
    for sample, value in samples.items():
        total[sample] += value
