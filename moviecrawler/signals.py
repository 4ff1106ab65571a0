"""Signals that this project sends through Scrapy's signal manager, in addition to Scrapy's own."""

from __future__ import annotations

from typing import Literal

Outcome = Literal["durable", "rejected", "spooled", "lost"]
"""`durable`: the store has it, and it survives a crash. `rejected`: the store will never accept it;
it is in `rejected.jsonl`. `spooled`: the run ended before the store had it; it is in a spool file,
and the next run of the same store reports whether it became durable or was rejected. `lost`: the
run ended before the store had it, and no spool file could be written; its title has to be crawled
again."""

item_outcomes = object()
"""Sent when a store's batch ends, with what became of its items; each item is in it once for each
store.

Keyword arguments: `items` (Sequence of Movie, Miss or RawPage), `store` (str), `outcome` (Outcome),
`reason` (str for `rejected` and `lost`, else None), and `earlier` (bool: the items are an earlier
run's, from a spool file, and of no request of this one). Handlers run in the event loop's thread
and must not block.
"""

item_replaced = object()
"""Sent when a pipeline has replaced an item that stores have taken, before Scrapy's `item_scraped`
with what has replaced it. Keyword arguments: `item` and `by`."""

items_passed = object()
"""Sent by `ItemCompletion` once items have passed the pipelines, or a page was handed to the
archive; `items_completed` comes after it.

Keyword arguments: `items` (Sequence of Movie, Miss, RawPage or another program's item) and
`request` (that they came of, or None). Handlers run in the event loop's thread and must not block.
"""

items_completed = object()
"""Sent by `ItemCompletion` once items that have passed the pipelines, or an archived page, have an
outcome in every store that they are for.

Keyword arguments: `items`, `request` (that they came of, or None), and `outcomes` (of each of them:
frozenset[Outcome]; empty where they are for no store). Handlers run in the event loop's thread and
must not block.
"""

page_archived = object()
"""Sent once a page is handed to the archive, which decides on its outcome like a store does.
Keyword arguments: `item` (RawPage) and `response` (that it came of)."""

item_rejected = object()
"""Sent once for each line that was added to `rejected.jsonl`. Keyword arguments: `store` (str;
`validate` for what no store is offered), `reason` (str), and `item` (Movie, Miss or RawPage).
Handlers run in the event loop's thread and must not block.
"""

store_opened = object()
"""Sent once per store, before its first item. Keyword argument: `store` (str)."""

titles_fresh = object()
"""Sent when titles of a request are not fetched, as their records are younger than
`skip_newer_than`. Keyword arguments: `request` and `count` (int, of titles)."""

list_failed = object()
"""Sent when a list page could not be read. Keyword arguments: `url`; `reason` (str); `refused`,
whether the page is to be requested once more when the site responds again."""

title_failed = object()
"""Sent when a title counts as failed although there is no Miss: a store or the checks refused its
item, which is known before `items_completed`; or its request becomes a dead letter.

Keyword arguments: `note` (Fetched, what is known of the title) and `request` (or None). Handlers
must not block.
"""

news_queued = object()
"""Sent once the Postgres store has queued news for the catalogue that is not an item. Keyword
arguments: `item` (Fetched or Listed) and `request` (whose lease waits for it, or None)."""

worker_idle = object()
"""Sent every few seconds while a worker is handed no more requests: what it holds waits for its
stores. Keyword argument: `is_all_fetched` (bool), whether it has no request in progress either."""

titles_listed = object()
"""Sent once a list page or sitemap was read. Keyword arguments: `site` (str), `list_name` (str),
`entries` (Sequence[Entry]) and `ids` (Sequence[str], of a sitemap, which has nothing else)."""

title_read = object()
"""Sent when a title's page was read. Keyword arguments: `movie` (Movie) and `response`."""

title_unread = object()
"""Sent when a title's page could not be read. Keyword arguments: `site_id` (str, as it was
requested), `error` (ExtractionError) and `response`."""

summary_written = object()
"""Sent when a crawl has finished and has summed itself up. Keyword argument: `lines` (list[str]).
Handlers may be coroutines."""
