"""Signals that this project sends through Scrapy's signal manager, beside Scrapy's own."""

from __future__ import annotations

from typing import Literal

Outcome = Literal["durable", "rejected", "spooled"]
"""`durable`: the store has it, and it survives a crash. `rejected`: the store will never take it; it stands in
`rejected.jsonl`. `spooled`: the run ended before the store took it; it stands in a spool file, and the next run of
the same store tells whether it became durable or was rejected."""

item_settled = object()
"""Sent once an item and store, when it is certain what became of the item.

Keyword arguments: `item` (Movie, Miss or RawPage), `store` (str), `outcome` (Outcome), `reason` (str for `rejected`,
else None).
Handlers run in the event loop's thread and must not block.
"""

store_opened = object()
"""Sent once a store of movies, before its first item. Keyword argument: `store` (str)."""
