"""What saved pages say beside a title's facts, and of series, seasons and episodes, read again by other means than the readers':
patterns and plain JSON.

A fact is one value: one of a score's, one offer, one keyword, one related title, an episode with its numbers.
"""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tests.extract.saved_pages import CORE, TRUTH
from tests.shared import PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.items import Page

Fact = tuple[str, Any]

FILES = sorted({*CORE, *(file for file in TRUTH if "/episodes/" in file)})
IN_SERIES = (
    *("series_id", "series_title", "season", "episode"),
    *("season_count", "episode_count", "critic_review_count"),
)
_RELATED_2024 = re.compile(
    r'<a href="/((?:m|tv)/[^"]+)"(?:(?!</a>).)*?class="(?:p--small|[^"]*poster-title)"[^>]*>([^<]+)<', re.DOTALL
)


def facts(file: str) -> set[Fact]:
    """Return what a saved page says."""
    text = (PAGES / file).read_text("utf-8", errors="replace")
    site = file.partition("/")[0]
    return set({"imdb": _imdb, "metacritic": _metacritic, "rottentomatoes": _rottentomatoes}[site](text))


def read(page: Page) -> set[Fact]:
    """Return what was read from a page, in the same form."""
    entries = page.listing.entries if page.listing else []
    found: set[Fact] = {("entry", (entry.site_id, entry.season, entry.episode)) for entry in entries}
    movie = page.movie
    if movie is None:
        return found
    found |= {("poster", (movie.poster_width, movie.poster_height)), ("consensus", movie.consensus)}
    found |= {(name, value) for name in IN_SERIES if (value := getattr(movie, name)) is not None}
    for score in movie.scores:
        names = ("average", "reviews", "liked", "neutral", "disliked", "certified", "sentiment")
        found |= {(f"{score.kind}.{name}", value) for name in names if (value := getattr(score, name)) is not None}
        found |= {(f"{score.kind}.count", score.count), (f"{score.kind}.histogram", tuple(score.histogram))}
    found |= {("offer", (offer.provider, offer.kind, offer.price, offer.quality)) for offer in movie.offers}
    found |= {("offer.host", (offer.provider, urlsplit(offer.url or "").hostname)) for offer in movie.offers}
    for name in ("keywords", "interests", "taglines"):
        found |= {(name, text) for text in getattr(movie, name)}
    found |= {("awards", (award.event, award.wins, award.nominations)) for award in movie.awards}
    found |= {(title.relation, (title.site_id, title.title, title.connection)) for title in movie.related}
    return found | {("external_id", pair) for pair in movie.external_ids.items()}


def _at(data: Any, *path: str) -> Any:
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data


def _script(text: str, name: str) -> Any:
    found = re.search(rf'<script[^>]*\bid="{name}"[^>]*>(.*?)</script', text, re.DOTALL)
    return json.loads(found[1]) if found else None


# --- IMDb -------------------------------------------------------------------------------------------------------------


def _imdb(text: str) -> Iterator[Fact]:
    data = json.loads(text) if text.lstrip().startswith("{") else _script(text, "__NEXT_DATA__")
    if data is None:
        yield from _imdb_series_of_markup(text)
        for site_id, title in re.findall(
            r'class="rec_item"[^>]*data-tconst="(tt\d+)".*?<img[^>]*?\btitle="([^"]*)"', text, re.DOTALL
        ):
            yield "similar", (site_id, html.unescape(title), None)
        for keyword in re.findall(r'href="/(?:search/)?keyword[/?][^>]*>\s*<span class="itemprop"[^>]*>([^<]*)<', text):
            yield "keywords", html.unescape(keyword)
    props = _at(data or {}, "props", "pageProps") or _at(data or {}, "pageProps") or {}
    above, main = props.get("aboveTheFoldData") or {}, props.get("mainColumnData") or {}
    yield from _imdb_series(props)
    for field, key in (("keywords", "keywords"), ("keywords", "storylineKeywords"), ("taglines", "taglines")):
        source = above if key in above else main
        if field == "keywords" and key == "storylineKeywords" and "keywords" in above:
            continue
        for edge in _at(source, key, "edges") or []:
            yield field, edge["node"]["text"]
    for edge in _at(above, "interests", "edges") or _at(main, "interests", "edges") or []:
        yield "interests", edge["node"]["primaryText"]["text"]
    for edge in _at(main, "moreLikeThisTitles", "edges") or []:
        yield "similar", (edge["node"]["id"], edge["node"]["titleText"]["text"], None)
    for edge in _at(main, "connections", "edges") or []:
        other = edge["node"]["associatedTitle"]
        yield "connection", (other["id"], other["titleText"]["text"], edge["node"]["category"]["text"])
    nominations = _at(main, "nominationsExcludeWins", "total")
    nominations = _at(main, "nominations", "total") if nominations is None else nominations
    if "wins" in main and main["wins"]["total"] + nominations:
        yield "awards", (None, main["wins"]["total"], nominations)
    if summary := main.get("prestigiousAwardSummary"):
        yield "awards", (summary["award"]["text"], summary["wins"], summary["nominations"])
    if _at(above, "ratingsSummary", "aggregateRating"):
        bars = _at(main, "aggregateRatingsBreakdown", "histogram", "histogramValues") or []
        if bars:
            yield "imdb.histogram", tuple(bar["voteCount"] for bar in sorted(bars, key=lambda bar: bar["rating"]))
        total = _at(above, "reviews", "total")
        if total is None:
            total = _at(main, "reviews", "total")
        if total is not None:
            yield "imdb.reviews", total
    image = above.get("primaryImage") or {}
    if image.get("width"):
        yield "poster", (image["width"], image["height"])


def _imdb_series(props: dict[str, Any]) -> Iterator[Fact]:
    above, main = props.get("aboveTheFoldData") or {}, props.get("mainColumnData") or {}
    if total := _at(above, "criticReviewsTotal", "total") or _at(main, "criticReviewsTotal", "total"):
        yield "critic_review_count", total
    if episode := above.get("series"):
        yield "series_id", episode["series"]["id"]
        yield "series_title", episode["series"]["titleText"]["text"]
        yield "season", episode["episodeNumber"]["seasonNumber"]
        yield "episode", episode["episodeNumber"]["episodeNumber"]
    if of_series := main.get("episodes"):
        total = _at(of_series, "totalEpisodes", "total") or _at(of_series, "episodes", "total")
        if total:
            yield "episode_count", total
        stated = [season["number"] for season in of_series.get("seasons") or []]
        stated += [int(edge["node"]["season"]) for edge in _at(of_series, "displayableSeasons", "edges") or []]
        yield "season_count", len(stated)
    section = _at(props, "contentData", "section") or {}
    if "seasons" in section:
        yield "season_count", sum(season["value"].isdigit() for season in section["seasons"])
        for row in section["episodes"]["items"]:
            yield "entry", (row["id"], int(row["season"]), int(row["episode"]))


def _imdb_series_of_markup(text: str) -> Iterator[Fact]:
    # Of links with numbers in them, "66 critic" and "218 Critic reviews".
    for link in re.findall(r"<a\b[^>]*externalreviews[^>]*>(.*?)</a>", text, re.DOTALL):
        if counted := re.fullmatch(r"([\d,.]+)\s+[Cc]ritic\b.*", " ".join(re.sub("<.*?>", "", link).split())):
            yield "critic_review_count", int(re.sub(r"\D", "", counted[1]))
    seasons = set(re.findall(r'episodes\?season=(\d+)&(?:amp;)?ref_=tt_eps_sn_\d|season_number="(\d+)"', text))
    chosen = re.search(r'<select id="bySeason".*?</select>', text, re.DOTALL)
    seasons |= set(re.findall(r'value="(\d+)()"', chosen[0])) if chosen else set()
    if seasons:
        yield "season_count", len(seasons)
    if counted := re.search(r"Episode Guide</div>\s*<span[^>]*>(\d+) episodes<", text):
        yield "episode_count", int(counted[1])
    if parent := re.search(r'class="titleParent">\s*<a href="/title/(tt\d+)[^"]*"[^>]*>([^<]*)<', text):
        yield "series_id", parent[1]
        yield "series_title", html.unescape(parent[2])
    for site_id, season, episode in re.findall(
        r'class="list_item.*?/title/(tt\d+)/.*?<div>S(\d+), Ep(\d+)<', text, re.DOTALL
    ):
        yield "entry", (site_id, int(season), int(episode))
    shown = re.search(r'season_box active">.*?season_number="(\d+)"', text, re.DOTALL)
    for site_id, episode in re.findall(
        r'/title/(tt\d+)[^"]*"[^>]*btn-full[^>]*>\s*<span[^>]*episode-list__title[^>]*>\s*(\d+)\.', text
    ):
        yield "entry", (site_id, int(shown[1]) if shown else None, int(episode))


# --- Metacritic -------------------------------------------------------------------------------------------------------


def _metacritic(text: str) -> Iterator[Fact]:
    if text.lstrip().startswith("{"):
        components = json.loads(text).get("components", [])
    elif "loadPage:" in text:
        values = json.loads(text) if text.lstrip().startswith("[") else _script(text, "__NUXT_DATA__")
        components = _components(values)
    else:
        if season := re.search(
            r'product_title">\s*<a href="/(tv/[^/"]+)/season-(\d+)[/"][^>]*>\s*(?:<[^>]*>\s*)*([^<:]+)', text
        ):
            yield "series_id", season[1]
            yield "season", int(season[2])
            yield "series_title", season[3].strip()
        return
    named = {_at(part, "meta", "componentName"): part.get("data") or {} for part in components}
    product = _at(named.get("product"), "item") or {}
    for tag in product.get("tags") or []:
        yield "keywords", tag
    if product.get("tagline"):
        yield "taglines", product["tagline"]
    for award in product.get("awards") or []:
        yield "awards", (award["awardEvent"], award["wins"], award["nominations"])
    if product.get("id"):
        yield "external_id", ("metacritic", str(product["id"]))
    own = product.get("criticScoreSummary") or {}
    if own.get("score") and own.get("normalizedScore") is not None:
        yield "metascore.average", own["normalizedScore"]
    for kind, name in (("metascore", "critic-score-summary"), ("metacritic_user", "user-score-summary")):
        summary = _at(named.get(name), "item") or {}
        if summary.get("score"):
            keys = {"liked": "positiveCount", "neutral": "neutralCount", "disliked": "negativeCount"}
            for fact, key in {**keys, "sentiment": "sentiment", "count": "reviewCount"}.items():
                yield f"{kind}.{fact}", summary[key]
    path = {"movie": "movie", "show": "tv", "game-title": "game"}
    for item in _at(named.get("related-carousel"), "items") or []:
        if item["slug"] != product.get("slug"):
            yield "similar", (f"{path[item['type']]}/{item['slug']}", item["title"], None)
    watch = _at(named.get("where-to-watch"), "item") or {}
    for name, kind in (
        ("free", "free"),
        ("ads", "ads"),
        ("flatrate", "subscription"),
        ("rent", "rent"),
        ("buy", "buy"),
    ):
        for offer in watch.get(name) or []:
            target = parse_qs(urlsplit(offer["link"]).query).get("r", [offer["link"]])[0]
            if len(target) < 2000:
                yield "offer.host", (offer["providerName"], urlsplit(target).hostname)
            for option in offer["options"]:
                yield "offer", (offer["providerName"], kind, option.get("optionPrice"), option["qualityType"])
    if _at(watch, "meta", "fullPath"):
        yield "external_id", ("justwatch", watch["meta"]["fullPath"])


def _components(values: list[Any]) -> list[Any]:
    """Return the components of a payload, whose values name one another by their places in one list."""

    def value(place: int) -> Any:
        found = values[place] if place >= 0 else None
        if isinstance(found, list) and found and isinstance(found[0], str):
            return value(found[1]) if len(found) > 1 else None
        if isinstance(found, list):
            return [value(each) for each in found]
        return {key: value(each) for key, each in found.items()} if isinstance(found, dict) else found

    pages = next(each for each in values if isinstance(each, dict) and any(key.startswith("loadPage:") for key in each))
    shown = (place for key, place in pages.items() if key.startswith("loadPage:") and "skeleton" not in key)
    return next(page["components"] for page in map(value, shown) if page and page.get("components"))


# --- Rotten Tomatoes --------------------------------------------------------------------------------------------------

_SIDES = {
    "tomatometer": ("criticsAll", "tomatometerScoreAll"),
    "tomatometer_top": ("criticsTop", "tomatometerScoreTop"),
    "popcornmeter_all": ("audienceAll", "audienceScoreAll"),
    "popcornmeter_verified": ("audienceVerified", "audienceScoreVerified"),
}


def _rottentomatoes(text: str) -> Iterator[Fact]:
    card = _script(text, "media-scorecard-json")
    old = _script(text, "score-details-json") or _script(text, "scoreDetails")
    sides = _at(card, "overlay") if card else _at(old, "modal")
    for kind, keys in _SIDES.items():
        side: Any = next((found for key in keys if (found := _at(sides, key))), {})
        if side.get("score") or side.get("value"):
            yield from _of_side(kind, side)
    if card and card["audienceScore"].get("score"):
        yield from _of_side("popcornmeter", card["audienceScore"])
    if card:
        yield "external_id", ("ems", card["criticReviewHref"].rpartition("/")[2])
    for affiliate, licence in re.findall(
        r'<where-to-watch-meta.*?\baffiliate="([^"]+)".*?slot="license">([^<]*)<', text, re.DOTALL
    ) or re.findall(r'data-affiliate="([^"]+)".*?no-price">([^<]*)<', text, re.DOTALL):
        for kind in licence.strip().lower().split("/"):
            yield "offer", (affiliate, kind, None, None)
    for site_id, title in _RELATED_2024.findall(text) if old else ():
        yield "similar", (site_id, html.unescape(title.strip()), None)
    said = re.search(r'data-qa="critics-consensus"[^>]*>(.*?)</span', text, re.DOTALL) or re.search(
        r'class="(?:critic_consensus|mop-ratings-wrap__text mop-ratings-wrap__text--conc)[^>]*>(.*?)</p',
        text,
        re.DOTALL,
    )
    if said:
        words = " ".join(html.unescape(re.sub("<.*?>", "", said[1])).split())
        yield "consensus", words.removeprefix("Critics Consensus: ")


def _of_side(kind: str, side: dict[str, Any]) -> Iterator[Fact]:
    if side.get("averageRating"):
        yield f"{kind}.average", float(side["averageRating"])
    yield f"{kind}.liked", side["likedCount"]
    yield f"{kind}.disliked", side["notLikedCount"]
    if "certified" in side:
        yield f"{kind}.certified", side["certified"]
    if side.get("sentiment") or side.get("scoreSentiment"):
        yield f"{kind}.sentiment", side.get("sentiment") or side["scoreSentiment"]
    of_audience = kind.startswith("popcornmeter")
    if of_audience:
        yield f"{kind}.reviews", side["reviewCount"]
    yield f"{kind}.count", side.get("ratingCount") or side["likedCount"] + side["notLikedCount"]
