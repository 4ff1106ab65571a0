"""Which figures of a crawl are an alarm: just below, at, and just above."""

from __future__ import annotations

import pytest

from moviecrawler.monitors.checks import Checks, Figures, Verdict
from moviecrawler.options import AlarmOptions


def checks(freshness: float = 0.9) -> Checks:
    return Checks("imdb", AlarmOptions(stalled=60.0, freshness=freshness))


def look(
    checks: Checks,
    now: float = 0,
    *,
    is_due: bool = True,
    dead_letters: int | None = None,
    overdue: tuple[int, int] | None = None,
    **stats: object,
) -> dict[str, Verdict]:
    """Return the verdicts by kind; `__` in the name of a stat stands for a slash."""
    given = {name.replace("__", "/"): value for name, value in stats.items()}
    figures = Figures(now=now, stats=given, is_due=is_due, dead_letters=dead_letters, overdue=overdue)
    return {verdict.kind: verdict for verdict in checks.look(figures)}


@pytest.mark.parametrize(
    ("errors", "pages", "stands"),
    [(10, 9, None), (1, 99, False), (8, 92, False), (14, 86, True), (20, 0, True), (0, 20, False)],
)
def test_unreadable_pages_are_an_alarm_when_too_many_to_be_chance(errors: int, pages: int, stands: bool | None) -> None:
    found = look(checks(), extraction__errors__scores=errors, coverage__pages=pages).get("extraction_errors")
    assert (None if found is None else found.stands) == stands


def test_unreadable_pages_recover_with_the_latest_ones() -> None:
    one = checks()
    bad = look(one, extraction__errors__scores=100, coverage__pages=100)["extraction_errors"]
    assert bad.text == "100 of the latest 200 pages can't be read: scores"
    assert look(one, extraction__errors__scores=100, coverage__pages=150)["extraction_errors"].stands
    assert not look(one, extraction__errors__scores=100, coverage__pages=300)["extraction_errors"].stands


def test_site_that_was_stopped_is_an_alarm_with_its_reason() -> None:
    found = look(checks(), blocks__imdb__stopped="imdb refused us (403)", blocks__imdb__forbidden=1)["blocks"]
    assert found.text == "imdb refused us (403)"


def test_refusals_are_an_alarm_when_too_many() -> None:
    assert not look(checks(), blocks__imdb__throttle=2, downloader__response_count=100)["blocks"].stands
    assert look(checks(), blocks__imdb__throttle=20, downloader__response_count=100)["blocks"].stands
    assert "blocks" not in look(checks(), blocks__imdb__throttle=5, downloader__response_count=19)
    found = look(
        *(checks(), 0), proxy__imdb__a__challenge=15, proxy__imdb__b__refusal=5, downloader__response_count=100
    )
    assert found["blocks"].stands


def test_silence_is_an_alarm_while_something_is_due() -> None:
    one = checks()
    assert "stalled" not in look(one, 0, downloader__response_count=5)
    assert "stalled" not in look(one, 59.9, downloader__response_count=5)
    assert look(one, 60, downloader__response_count=5)["stalled"].stands
    assert not look(one, 61, downloader__response_count=6)["stalled"].stands
    assert "stalled" not in look(one, 200, is_due=False, downloader__response_count=6)
    assert "stalled" not in look(one, 259, downloader__response_count=6)
    assert look(one, 260, downloader__response_count=6)["stalled"].stands


def test_store_is_an_alarm_when_it_fails_again_and_again() -> None:
    one = checks()
    assert not look(one, store__csv__batches=1, store__csv__retries=1)["store"].stands
    assert "store" not in look(one, store__csv__batches=1, store__csv__retries=3)
    found = look(one, store__csv__batches=1, store__csv__retries=4)["store"]
    assert found.name == "store/imdb/csv"
    assert found.text == "csv has failed 3 times in a row, and takes nothing"
    assert not look(one, store__csv__batches=2, store__csv__retries=4)["store"].stands


def test_store_that_left_items_behind_is_an_alarm() -> None:
    assert look(checks(), store__mongo__spooled=3)["store"].text.startswith("mongo did not take 3 items in time")
    assert look(checks(), store__mongo__spooled=3, store__mongo__lost=2)["store"].text.startswith(
        "2 items for mongo are"
    )


def test_dead_letters_are_an_alarm_while_they_grow() -> None:
    one = checks()
    assert "dead_letters" not in look(one, 0, dead_letters=7)
    assert not look(one, 1, dead_letters=7, coverage__pages=20)["dead_letters"].stands
    assert look(one, 2, dead_letters=8, coverage__pages=20)["dead_letters"].stands
    assert look(one, 601, dead_letters=8, coverage__pages=20)["dead_letters"].stands
    assert not look(one, 602, dead_letters=8, coverage__pages=20)["dead_letters"].stands


def test_rejected_items_are_dead_letters_counted_once() -> None:
    found = look(checks(), items__rejected=2, items__rejected__year=2, store__csv__rejected=1)["dead_letters"]
    assert found.text == "3 items were rejected, and 0 requests are set aside"


@pytest.mark.parametrize(("overdue", "stands"), [((2, 19), None), ((2, 20), False), ((3, 20), True), ((0, 20), False)])
def test_too_many_overdue_titles_are_an_alarm(overdue: tuple[int, int], stands: bool | None) -> None:
    found = look(checks(), overdue=overdue).get("freshness")
    assert (None if found is None else found.stands) == stands


def test_freshness_can_be_left_out() -> None:
    assert "freshness" not in look(checks(freshness=0), overdue=(20, 20))
