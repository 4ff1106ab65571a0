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
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.core import CounterMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from moviecrawler.basics.files import read_package_file

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from prometheus_client.metrics_core import Metric

DESCRIPTOR = "MOVIECRAWLER_FIGURES"
"""The environment variable by which a node gives its spiders the number of the descriptor."""


class Series(NamedTuple):
    """A time series."""

    metric: str
    """The name of a counter."""
    labels: tuple[str, ...]
    """The values of its labels: the site, and those of the metric's own labels in their order."""


Samples = defaultdict[Series, float]


class Figure(NamedTuple):
    """A metric family, a counter, and the stats whose sum it is: a table of metrics.toml."""

    name: str
    text: str
    pattern: re.Pattern[str]
    """Matches a stat's name; its named groups are labels."""
    known: Sequence[Sequence[str]]
    """For each label, the values that are known in advance; empty when they are not."""

    @property
    def labels(self) -> Sequence[str]:
        """The names of its labels."""
        return ["site", *self.pattern.groupindex]


def _figure(name: str, text: str, stats: str, known: Sequence[Sequence[str]] = ()) -> Figure:
    return Figure(f"moviecrawler_{name}", text, re.compile(stats), known)


_TABLES = tomllib.loads(read_package_file(__package__, "metrics.toml"))
FIGURES = [_figure(name, **table) for name, table in _TABLES.items()]
_BY_NAME = {figure.name: figure for figure in FIGURES}


def selected(stats: Mapping[str, object]) -> dict[str, float]:
    """Return those of a crawl's stats that figures are made of.

    A text, such as why a site stopped, counts as 1.
    """
    return {
        name: float(value) if isinstance(value, int | float) else 1.0
        for name, value in stats.items()
        if any(figure.pattern.fullmatch(name) for figure in FIGURES)
    }


def samples_of(site: str, stats: Mapping[str, object]) -> Samples:
    """Return the figures of a crawl's stats.

    A series whose labels are known in advance is 0 from the start, because Prometheus sees no
    increase when a series first appears.
    """
    samples: Samples = defaultdict(float)
    for figure in FIGURES:
        if len(figure.known) == figure.pattern.groups:
            for labels in product(*figure.known):
                samples[Series(figure.name, (site, *labels))] = 0.0
        for stat, value in selected(stats).items():
            if match := figure.pattern.fullmatch(stat):
                samples[Series(figure.name, (site, *match.groups()))] += value
    return samples


def difference(samples: Samples, earlier: Samples) -> Samples:
    """Return by how much figures have grown."""
    return defaultdict(
        float, {series: value - earlier.get(series, 0.0) for series, value in samples.items()}
    )


class Totals:
    """The figures of many crawls, by site. They only grow, as Prometheus expects of counters.

    All threads may read them.
    """

    def __init__(self, sites: Iterable[str] = ()) -> None:
        """Begin at 0 for each of the sites."""
        self._ended: Samples = defaultdict(float)
        for site in sites:
            self._ended |= samples_of(site, {})
        self._running: dict[Hashable, Samples] = {}
        self._lock = Lock()

    def update(self, crawl: Hashable, site: str, stats: Mapping[str, object]) -> None:
        """Replace the figures of a running crawl; its `site` is the spider's name."""
        samples = samples_of(site, stats)
        with self._lock:
            self._running[crawl] = samples

    def end(self, crawl: Hashable) -> None:
        """Keep the last figures of a crawl that has ended."""
        with self._lock:
            _add(self._ended, self._running.pop(crawl, {}))

    def add(self, samples: Mapping[Series, float]) -> None:
        """Add figures."""
        with self._lock:
            _add(self._ended, samples)

    def read(self, text: str) -> None:
        """Add the figures that `collect` once yielded, in Prometheus' text format.

        Reading ends at the first damaged line; the counters before it are added.
        """
        with suppress(ValueError):
            for family in text_string_to_metric_families(text):
                if (figure := _BY_NAME.get(family.name)) is not None:
                    for sample in family.samples:
                        values = tuple(sample.labels.get(name, "") for name in figure.labels)
                        self.add({Series(figure.name, values): sample.value})

    def sums(self) -> Samples:
        """Return the sums of all crawls."""
        sums: Samples = defaultdict(float)
        with self._lock:
            for samples in (self._ended, *self._running.values()):
                _add(sums, samples)
        return sums

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families. It is the method of a Prometheus collector."""
        families = {
            figure.name: CounterMetricFamily(figure.name, figure.text, labels=figure.labels)
            for figure in FIGURES
        }
        for series, value in self.sums().items():
            families[series.metric].add_metric(series.labels, value)
        yield from families.values()


def _add(total: Samples, samples: Mapping[Series, float]) -> None:
    for series, value in samples.items():
        total[series] += value
