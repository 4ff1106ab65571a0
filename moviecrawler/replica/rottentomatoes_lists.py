"""Rotten Tomatoes' browse lists: markup for the first page, JSON for what follows."""

from __future__ import annotations

import base64
import html
from typing import TYPE_CHECKING, Any

from moviecrawler.replica.bodies import Body
from moviecrawler.replica.markup import encode, json_script
from moviecrawler.replica.rottentomatoes import IN_THEATERS, id_of, kind_of, percent, template, worded
from moviecrawler.replica.titles import known

if TYPE_CHECKING:
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.titles import RottenTomatoesFacts, Title

BROWSE_ROWS = 28
_OF_SERIES = "tv_"
"""What the names of lists of series begin with."""


class Lists:
    """Browse lists of a catalogue's titles; `light` pages have the same data without the bulk around it."""

    def __init__(self, catalogue: Catalogue, *, light: bool = False) -> None:
        self._catalogue = catalogue
        self._light = light

    def first_page(self, name: str) -> Body:
        """Return the first page of a browse list: movies_in_theaters, tv_series_browse, or all movies by popularity."""
        titles, info = self._browsed(name, 0)
        tiles = "".join(map(_tile, titles))
        script = json_script('id="pageInfo" type="application/json"', info)
        if not titles:
            script += json_script('id="noResults" type="application/json"', data=True)
        return template("browse", light=self._light).fill(
            f'<title>{name}</title><link rel="canonical" href="https://www.rottentomatoes.com/browse/{name}">'.encode(),
            f'<div data-qa="discovery-media-list">{tiles}</div>'.encode(),
            script,
        )

    def following(self, name: str, after: str) -> Body:
        """Return what follows a cursor in a browse list. Raises ValueError for a cursor that is none."""
        titles, info = self._browsed(name, int(base64.b64decode(after, validate=True)) + 1)
        return Body(encode({"grid": {"id": name, "list": [_browse_row(title) for title in titles]}, "pageInfo": info}))

    def _browsed(self, name: str, first: int) -> tuple[list[Title], dict[str, Any]]:
        """Return the titles that a page of a list shows, and its pageInfo."""
        titles = self._catalogue.series if name.startswith(_OF_SERIES) else self._catalogue
        listed = titles.listed["rottentomatoes"]
        total = min(len(listed), IN_THEATERS) if name.startswith("movies_in_theaters") else len(listed)
        indexes = listed.part(first, min(first + BROWSE_ROWS, total))
        last = first + len(indexes) - 1 if indexes else max(total - 1, 0)
        info = {
            "startCursor": base64.b64encode(str(first).encode()).decode(),
            "endCursor": base64.b64encode(str(last).encode()).decode(),
            "hasNextPage": last + 1 < total,
            "hasPreviousPage": first > 0,
        }
        return [titles.title(index) for index in indexes], info


def _tile(title: Title) -> str:
    """Return the tile of a title in a list's first page."""
    facts, name = known(title.rottentomatoes), html.escape(title.basics.title)
    scores = "".join(
        f'<rt-text context="label" size="1" slot="{slot}"> {percent(score)} </rt-text>'
        for slot, score in (("criticsScore", facts.tomatometer), ("audienceScore", facts.popcornmeter))
    )
    return (
        f'<div class="js-tile-link" data-qa="discovery-media-list-item"><tile-dynamic>'
        f'<a data-qa="discovery-media-list-item-caption" href="/{id_of(title)}" slot="caption"><score-pairs-deprecated>'
        f'{scores}</score-pairs-deprecated><span class="p--small" data-qa="discovery-media-list-item-title"> {name} '
        f'</span><span class="smaller" data-qa="discovery-media-list-item-start-date"> {_opening(facts)} </span></a>'
        "</tile-dynamic></div>"
    )


def _browse_row(title: Title) -> dict[str, Any]:
    """Return the row of a title in what follows the first page."""
    facts = known(title.rottentomatoes)
    critics, audience = (
        {} if score is None else {"scorePercent": percent(score), "score": str(score)}
        for score in (facts.tomatometer, facts.popcornmeter)
    )
    return {
        "title": title.basics.title,
        "mediaUrl": f"/{id_of(title)}",
        "type": kind_of(title).type,
        "releaseDateText": _opening(facts),
        "criticsScore": critics,
        "audienceScore": audience,
    }


def _opening(facts: RottenTomatoesFacts) -> str:
    return f"{'Streaming' if facts.streaming_only else 'Opened'} {worded(facts.release)}"
