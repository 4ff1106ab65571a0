"""Scrapy's item processor, which tells of items that somebody's pipeline has replaced."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from scrapy.pipelines import ItemPipelineManager

from moviecrawler.signals import item_replaced

taken_items: ContextVar[list[Any]] = ContextVar("taken_items")
"""What stores have taken of the item that is being processed."""


class FollowingItemProcessor(ItemPipelineManager):
    """Send `item_replaced` when a pipeline after the stores returns something else.

    The stores report the outcome of what they have taken, and Scrapy of what comes out at the end.
    """

    async def process_item_async(self, item: Any) -> Any:
        """Return what the last pipeline returns."""
        taken: list[Any] = []
        token = taken_items.set(taken)
        try:
            result = await super().process_item_async(item)
        finally:
            taken_items.reset(token)
        if taken and taken[-1] is not result:
            assert self.crawler is not None  # noqa: S101 - Scrapy has set it
            self.crawler.signals.send_catch_log(item_replaced, item=taken[-1], by=result)
        return result
