"""`lane=due` fetches no more than the budget of the day allows, and ends when that is spent."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.crawling import crawl
from tests.due_crawls import Due


@pytest.mark.promise(
    "What is due is queued once for all workers, within the budget, and no killed worker loses it."
)
@pytest.mark.parametrize("workers", [1, 3])
def test_crawls_fetch_what_the_budget_allows_and_leave_the_rest_in_the_queue(
    due: Due, redis_url: str, workers: int
) -> None:
    given = {
        **due.where,
        "FRONTIER_PATIENCE": "3",
        "SITE_BUDGETS": '{"127.0.0.1": {"per_day": 17}}',
        "REDIS_URL": redis_url if workers > 1 else "",
    }
    with ThreadPoolExecutor(workers) as pool:
        ended = list(pool.map(lambda _: crawl("imdb", "lane=due", **given), range(workers)))
    for finished in ended:
        assert finished.code == 3, finished.log[-3000:]
        assert "(budget_spent)" in finished.log
        assert "the same command continues with them" in finished.summary.next
    assert due.states()["ok"] == 17
    # The same day again: nothing is asked for.
    assert crawl("imdb", "lane=due", **given).code == 3
    assert sum(due.pages().values()) == 17
