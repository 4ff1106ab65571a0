"""What a spider is asked for: by its arguments, by the catalogue, or by whoever pushes seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from moviecrawler.errors import ConfigurationError
from moviecrawler.texts import without_credentials

if TYPE_CHECKING:
    from typing import Self

    from moviecrawler.catalogue.claims import Claim

MAX_REASON_CHARS = 500
"""A failure's reason has no more characters in stats and misses."""

Due = dict[str, Any]
"""What a request carries of a claim: `title_id`, `boosted`, `ids` (others that may be the title's), `evidence`, and `wanted` (a
`TitleFacts` as plain data)."""

Found = dict[str, Any]
"""What the list that led to a title says of it: `list_name`, `list_rank`, and `entry` (an `Entry` as plain data, so that
it can travel with the request through any queue)."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a spider's arguments ask for."""

    titles: list[str]
    """Ids, in the order given."""
    list_name: str | None
    limit: int | None
    """The most titles to ask for."""
    lane: str | None = None
    """`due`: titles come from the catalogue."""


class Seed(msgspec.Struct):
    """What is read of what scrapy-redis' users push: an id, a URL, or JSON."""

    url: str
    priority: int = 0
    proxy_pool: str | None = None
    """The one pool that this title is asked for through; None for PROXY_ORDER."""
    max_retries: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    """None for what the settings say."""

    @classmethod
    def parse(cls, seed: bytes) -> tuple[Self, frozenset[str]]:
        """Return a seed, and the names of fields that are not read. Raises ConfigurationError when it is none."""
        try:
            text = seed.decode()
            if not text.lstrip().startswith("{"):
                return cls(url=text), frozenset()
            names = msgspec.json.decode(seed, type=dict[str, msgspec.Raw]).keys()
            given = msgspec.json.decode(seed, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            shown = without_credentials(repr(seed))[:MAX_REASON_CHARS]
            raise ConfigurationError(f"{shown} is no seed: {error}") from None
        return given, frozenset(names - set(cls.__struct_fields__))


def due_of(claim: Claim) -> dict[str, Any]:
    """Return what a request carries of a claim, as plain data."""
    return {
        "title_id": claim.title_id,
        "boosted": claim.boosted,
        "ids": claim.ids[1:],
        "evidence": claim.evidence,
        "wanted": msgspec.to_builtins(claim.wanted),
    }
