"""Rotten Tomatoes' rows of lists: tiles of the first page, JSON of what follows."""

from __future__ import annotations

import html
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moviecrawler.replica.facts import Release, ReplicaMovie, RottenTomatoesFacts


def tile(site_id: str, movie: ReplicaMovie, facts: RottenTomatoesFacts) -> str:
    """Return the tile of a title in a list's first page."""
    title = html.escape(movie.basics.title)
    scores = "".join(
        f'<rt-text context="label" size="1" slot="{slot}"> {"" if score is None else f"{score}%"} </rt-text>'
        for slot, score in (("criticsScore", facts.tomatometer), ("audienceScore", facts.popcornmeter))
    )
    return (
        f'<div class="js-tile-link" data-qa="discovery-media-list-item"><tile-dynamic>'
        f'<a data-qa="discovery-media-list-item-caption" href="/{site_id}" slot="caption"><score-pairs-deprecated>'
        f'{scores}</score-pairs-deprecated><span class="p--small" data-qa="discovery-media-list-item-title"> {title} '
        f'</span><span class="smaller" data-qa="discovery-media-list-item-start-date"> {_opening(facts)} </span></a>'
        "</tile-dynamic></div>"
    )


def browse_row(site_id: str, movie: ReplicaMovie, facts: RottenTomatoesFacts) -> dict[str, Any]:
    """Return the row of a title in what follows the first page."""

    def percent(score: int | None) -> dict[str, str]:
        return {} if score is None else {"scorePercent": f"{score}%", "score": str(score)}

    return {
        "title": movie.basics.title,
        "mediaUrl": f"/{site_id}",
        "type": "Movie" if site_id.startswith("m/") else "TvSeries",
        "releaseDateText": _opening(facts),
        "criticsScore": percent(facts.tomatometer),
        "audienceScore": percent(facts.popcornmeter),
    }


def _opening(facts: RottenTomatoesFacts) -> str:
    return f"{'Streaming' if facts.streaming_only else 'Opened'} {worded(facts.release)}"


def worded(release: Release) -> str:
    """Return a day as the site writes it: "Nov 01, 2026"."""
    return f"{date(release.year, release.month, release.day or 1):%b %d, %Y}"
