"""Reading the figures that a crawl writes for Prometheus' node exporter."""

from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families


def read(folder: Path, site: str = "imdb") -> dict[str, Metric]:
    text = (folder / f"moviecrawler_{site}.prom").read_text("utf-8")
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    (sample,) = [
        sample for sample in families[name].samples if labels.items() <= sample.labels.items()
    ]
    return sample.value
