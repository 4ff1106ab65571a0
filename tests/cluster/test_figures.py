from prometheus_client import CollectorRegistry, generate_latest

from moviecrawler.cluster.figures import Totals, selected


def text_of(totals: Totals) -> str:
    registry = CollectorRegistry()
    registry.register(totals)
    return generate_latest(registry).decode()


def test_sums_of_running_and_ended_crawls_never_fall() -> None:
    totals = Totals()
    totals.update("a", "imdb", {"titles/stored": 3, "downloader/response_status_count/200": 4})
    totals.update("b", "imdb", {"titles/stored": 1, "titles/failed": 2})
    before = text_of(totals)
    totals.end("a")
    totals.end("unknown")
    assert text_of(totals) == before
    totals.update("b", "imdb", {"titles/stored": 2, "titles/failed": 2})
    totals.end("b")
    text = text_of(totals)
    assert 'moviecrawler_titles_total{outcome="stored",site="imdb"} 5.0' in text
    assert 'moviecrawler_titles_total{outcome="failed",site="imdb"} 2.0' in text
    assert 'moviecrawler_responses_total{site="imdb",status="200"} 4.0' in text


def test_figures_without_labels_begin_at_zero() -> None:
    totals = Totals()
    totals.update("a", "imdb", {})
    assert 'moviecrawler_dead_letters_total{site="imdb"} 0.0' in text_of(totals)


def test_only_listed_stats_are_told_and_a_reason_counts_as_one() -> None:
    told = {"blocks/imdb/refusal": 2, "titles/requested": 5}
    stats = {"blocks/imdb/stopped": "HTTP status 403", "finish_reason": "finished", **told}
    assert selected(stats) == {"blocks/imdb/stopped": 1.0, **told}
