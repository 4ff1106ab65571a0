from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.items import Page

READERS: dict[str, Callable[[bytes, str | None], Page]] = {}


def kind_of(body: bytes, url: str | None) -> str | None:
    return None
