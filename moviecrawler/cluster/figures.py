"""The metrics of crawls, which metrics.toml lists, and their sums by site.

A crawl counts in Scrapy's stats. A node passes the number of a pipe's descriptor to its spiders in
the environment variable MOVIECRAWLER_FIGURES. Every 15 seconds the crawl writes a line of JSON to
it: `{"stats": {…}, "unreachable": {…}}`, with the stats of `selected`; its last line also has
`"summary": ["…", …]`, the lines of its summary. The node that reads them keeps `Totals`. A crawl
without a node adds the same figures to a file in METRICS_FOLDER, if that is set.
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

SeriesKey = tuple[str, tuple[str, ...]]
"""The name of a counter, and the values of its labels in their order, without `site`."""
Samples = defaultdict[SeriesKey, float]


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
_FROM_THE_BEGINNING: list[SeriesKey] = [
    (figure.name, labels)
    for figure in FIGURES
    if len(figure.known) == figure.pattern.groups
    for labels in product(*figure.known)
]
"""The series whose labels are known in advance. They are exported as 0 from the start, because
Prometheus sees no increase when a series first appears."""
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


def difference(samples: Samples, earlier: Mapping[SeriesKey, float]) -> Samples:
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

    def add(self, site: str, samples: Mapping[SeriesKey, float]) -> None:
        """Add the figures of a site."""
        with self._lock:
            _add(self._ended[site], samples)

    def read(self, text: str) -> None:
        """Add the figures that `collect` once yielded, in Prometheus' text format.

        Reading ends at the first damaged line; the counters before it are added.
        """
        with suppress(ValueError):
            for family in text_string_to_metric_families(text):
                if (figure := _BY_NAME.get(family.name)) is None:
                    continue
                for sample in family.samples:
                    labels = sample.labels
                    values = tuple(labels.get(name, "") for name in figure.pattern.groupindex)
                    self.add(labels.get("site", ""), {(family.name, values): sample.value})

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


def _add(total: Samples, samples: Mapping[SeriesKey, float]) -> None:
    for sample, value in samples.items():
        total[sample] += value
