"""IMDb pages that carry no usable JSON: the tree of one, and what all pages about a title have in common."""

from __future__ import annotations

import re
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import check_whole, json_ld
from moviecrawler.extract.findings import ABSENT, Findings, ShapeError, attempt, new_score, other_than
from moviecrawler.extract.series import new_title
from moviecrawler.extract.trees import tree_of
from moviecrawler.extract.values import check_year, parse_decimal, parse_integer
from moviecrawler.texts import fold
from moviecrawler.urls import id_in_url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from parsel import Selector, SelectorList

    from moviecrawler.items import Score, TitleKind

_PAGE_OF_TITLE = re.compile(
    r"/title/(tt\d{7,10})/(?:fullcredits|ratings|reviews|releaseinfo|plotsummary|trivia|keywords|technical)\b"
)
"""What a page about a title links to of the same title."""
_PERSON_ID = re.compile(r"/name/(nm\d{7,10})(?:[/?#]|$)")

_HEAD_TITLE = re.compile(r"\((?P<words>[^()]*)\)(?:\s*\((?P<medium>TV|V|VG|mini)\))?\s*(?:[-\u2b50|][^()]*)?$")
_EPISODE_IN_HEAD = re.compile(r'"[^"]+" (?P<title>.+)')
_QUOTED = re.compile(r'"(?P<title>[^"]+)"(?=$| ?\()')
_YEARS = re.compile(r"(?<!\d)(?P<year>\d{4})(?!\d)(?:/[IVXL]+)?(?:\s*(?P<span>[\u2013-])\s*(?:(?P<end>\d{4})|\?{4})?)?")

LABELS: dict[str, tuple[TitleKind, str]] = {
    "tv series": ("series", "tvSeries"),
    "tv mini-series": ("series", "tvMiniSeries"),
    "tv mini series": ("series", "tvMiniSeries"),
    "mini": ("series", "tvMiniSeries"),
    "tv episode": ("episode", "tvEpisode"),
    "tv movie": ("movie", "tvMovie"),
    "tv": ("movie", "tvMovie"),
    "tv special": ("other", "tvSpecial"),
    "tv short": ("short", "tvShort"),
    "tv pilot": ("other", "tvPilot"),
    "short": ("short", "short"),
    "video": ("video", "video"),
    "v": ("video", "video"),
    "video game": ("game", "videoGame"),
    "vg": ("game", "videoGame"),
    "music video": ("music", "musicVideo"),
    "podcast series": ("other", "podcastSeries"),
    "podcast episode": ("other", "podcastEpisode"),
}
"""What IMDb writes, in capitals or not, beside the year of anything but a feature film, and its kind and titleType."""

_SCHEMA_KINDS: dict[str, TitleKind] = {
    "Movie": "movie",
    "TVSeries": "series",
    "TVEpisode": "episode",
    "VideoGame": "game",
    "MusicVideoObject": "music",
    "CreativeWork": "other",
    "PodcastSeries": "other",
    "PodcastEpisode": "other",
}
_OPEN_GRAPH_KINDS: dict[str, TitleKind] = {
    "video.movie": "movie",
    "video.tv_show": "series",
    "tv_show": "series",
    "video.episode": "episode",
}
# Where each generation of pages writes the title, best first.
_HEADINGS = (
    ".subpage_title_block [itemprop=name] a, .subpage_title_block h3 a",  # credits, episodes, reviews… 2013-23
    ".title_wrapper h1",  # 2015-21
    ".titlereference-header h3[itemprop=name]",  # /reference 2017-25
    "#overview-top h1",  # 2011-15
    "#tn15title h1",  # to 2011, subpages to 2013
    "h5[itemprop=name] a",  # m.imdb.com
    "h1[data-testid^=hero]",  # from 2021
)

_YEAR_BESIDE_HEADING = (
    "#tn15title .tv-extra, #overview-top h1 > span:not([class]):not([itemprop]), .titlereference-title-year, #titleYear, h1 .nobr, .subpage_title_block .nobr,"
    " h1[data-testid^=hero] ~ * a[href*=releaseinfo]"
)


class Document:
    """A page's tree and its JSON-LD. Raises ShapeError when the page was cut off."""

    def __init__(self, body: bytes, url: str | None) -> None:
        check_whole(body)
        self.root = tree_of(body)
        self.linked_data = json_ld(body)
        self.url = url

    @cached_property
    def _head(self) -> tuple[str | None, ReleaseWords]:
        """Return what a page's `<title>` says: Lantern Row (TV Series 1999-2003) - Episodes - IMDb.

        Without a year, the words are part of the title itself: Lantern Row (Part One).
        """
        stated = self.root.xpath("//title/text() | //meta[@property='og:title' or @name='title']/@content").getall()
        for text in map(fold, stated):
            if found := _HEAD_TITLE.search(text):
                words = release_words(found["words"])
                words = words._replace(label=found["medium"] or words.label)
                if words.year or words.label.lower() in LABELS:
                    title = text[: found.start()].strip()
                    # "Lantern Row" The First Lamp (TV Episode 1999)
                    episode = _EPISODE_IN_HEAD.fullmatch(title) if words.label == "TV Episode" else None
                    return (episode["title"] if episode else title) or None, words
        return None, ReleaseWords()

    @cached_property
    def _beside_heading(self) -> ReleaseWords:
        return release_words((first_text(self.root, _YEAR_BESIDE_HEADING) or "").strip("()"))

    @cached_property
    def title_data(self) -> dict[str, Any]:
        """The JSON-LD object about the title; empty when there is none."""
        return next((item for item in self.linked_data if _schema_kind(item)), {})

    @property
    def address(self) -> str:
        """The page's address as it states it, or else the one that it was fetched from; empty when neither is known."""
        return next((address for address in self._stated_addresses if address), self.url or "")

    def site_id(self) -> str:
        """Return the id of the title that the page is about, by its own word: where it came from is none."""
        stated = list(self._stated_addresses)
        page_ids = self.root.xpath("//meta[@property='pageId' or @property='imdb:pageConst']/@content").getall()
        stated += [f"/title/{page_id}" for page_id in page_ids]
        stated.append(dig.text(self.title_data, "url") or "")
        named = {title_id for address in stated if (title_id := id_in_url("imdb", address))}
        if not named:
            # A page of an error, fetched from a title's address, links to none of its pages.
            named = set(self.root.xpath("//a/@href").re(_PAGE_OF_TITLE))
            named &= {id_in_url("imdb", self.url)} if self.url else named
        if len(named) != 1:
            raise ShapeError("site_id", f"the page names {' and '.join(sorted(named)) or 'no title'}")
        return named.pop()

    @cached_property
    def _stated_addresses(self) -> list[str]:
        return self.root.xpath("//link[@rel='canonical']/@href | //meta[@property='og:url']/@content").getall()

    def title(self) -> str:
        """Return the title as displayed."""
        title = next((text for css in _HEADINGS for heading in self.root.css(css) if (text := _heading(heading))), None)
        # JSON-LD's name is the original title, until 2021 without the one displayed.
        if title is None and self.linked_name:
            title = dig.text(self.title_data, "alternateName") or self._head[0] or self.linked_name
        # Below the heading of a sub-page since 2023, "Filming & production".
        if title is None and self._head[0] == first_text(self.root, "h2[data-testid=subtitle]"):
            title = self._head[0]
        if title is None:
            raise ShapeError("title", "no heading that is known")
        return title

    @property
    def linked_name(self) -> str | None:
        """The name in JSON-LD, which is the original title."""
        return dig.text(self.title_data, "name")

    def _original_title(self) -> str | None:
        for element in self.root.xpath(f"//*[{of_class('originalTitle')}] | //*[{of_class('title-extra')}][i]"):
            if text := own_text(element):
                return unquoted(text)
        label = self.root.xpath(f"//*[{of_class('titlereference-original-title-label')}]/preceding-sibling::text()[1]")
        if label and (text := fold(label.get(""))):
            return text
        # "Original title: …", the words in the visitor's language.
        labelled = first_text(
            self.root,
            "[data-testid=hero-title-block__original-title], h1[data-testid=hero__pageTitle] + div:not(:has(*))",
        )
        return labelled.partition(": ")[2] or None if labelled else None

    def kind(self) -> tuple[TitleKind, str | None]:
        """Return what the title is, and its titleType where the page tells. Raises ShapeError when nothing tells."""
        head = self._head[1]
        # To 2011, series stood in quotes: "Tin Parliament" (2002). A film may be called "Tin" Parliament.
        oldest = first_text(self.root, "#tn15title a.main") or first_text(self.root, "#tn15title h1") or ""
        episode = "TV Episode" if oldest.startswith('"') and self.root.css("#tn15title h1 em") else ""
        below = first_text(self.root, ".titlereference-header h3 ~ ul li:last-child")
        for label in (head.label, episode, self._beside_heading.label, below or ""):
            if label.lower() in LABELS:
                return LABELS[label.lower()]
        open_graph = self.root.xpath("//meta[@property='og:type']/@content").get("")
        kind = _schema_kind(self.title_data) or _OPEN_GRAPH_KINDS.get(open_graph)
        if kind is None and head.label:
            kind = "other"
        if kind in {None, "movie"} and _QUOTED.match(oldest):
            return "series", "tvSeries"
        if kind is None and not self.root.xpath("//title[text()]"):
            raise ShapeError("kind", "nothing says what kind of title it is")
        return kind or "movie", None

    def findings(self) -> Findings:
        """Return what every page about a title says of it: id, title and kind, for its other fields to be found."""
        site_id = self.site_id()
        kind, title_type = self.kind()
        found = Findings(new_title("imdb", site_id, self.title(), kind))
        found.take("title_type", title_type)
        self.look_for_names(found)
        return found

    def look_for_names(self, found: Findings) -> None:
        """Find the original title and the years."""
        title = found.movie.title
        found.look(
            "original_title",
            lambda: other_than(title, self._original_title()),
            lambda: other_than(title, self.linked_name),
        )
        stated = (self._head[1], self._beside_heading)
        found.take("year", next((words.year for words in stated if words.year), None))
        if found.movie.kind == "series":
            # "2005-" is a series that runs; of one year or none nothing is said.
            ends = (words.end_year or ABSENT for words in stated if words.year and words.is_span)
            found.take("end_year", next(ends, None))


def _schema_kind(data: dict[str, Any]) -> TitleKind | None:
    schema_type = data.get("@type")
    return _SCHEMA_KINDS.get(schema_type) if isinstance(schema_type, str) else None


class ReleaseWords(NamedTuple):
    """What stands in parentheses beside a title."""

    label: str = ""
    year: int | None = None
    end_year: int | None = None
    is_span: bool = False


def release_words(words: str) -> ReleaseWords:
    r"""Return label, first year, last year, and whether years are a span, of words that stand in parentheses.

    >>> [tuple(release_words(words)) for words in ("TV Series 1999\u20132013", "2013 TV Movie", "2005\u2013 ")]
    [('TV Series', 1999, 2013, True), ('TV Movie', 2013, None, False), ('', 2005, None, True)]
    """
    found = _YEARS.search(words)
    if not found:
        return ReleaseWords(fold(words))
    label = fold(f"{words[: found.start()]} {words[found.end() :]}")
    year, end = (attempt(partial(check_year, int(found[part] or 0))) for part in ("year", "end"))
    return ReleaseWords(label, year, end, bool(found["span"]))


def _heading(heading: Selector) -> str | None:
    """Return the title in a heading, without the year and links beside it."""
    name = heading.css("em") or heading.css(
        "a.main, [itemprop=name]:not(.title-extra), span.itemprop, [data-testid=hero__primary-text]"
    )
    own = name[0] if name else heading
    text = own_text(own) or all_text(own)
    return unquoted(text) if text and heading.xpath("self::*[ancestor::*[@id='tn15title']]") else text


def unquoted(text: str) -> str:
    """Return a title without the quotes around it; those inside are its own."""
    found = _QUOTED.fullmatch(text)
    return found["title"] if found else text


def of_class(name: str) -> str:
    """Return the XPath condition that an element has this class, beside others or not."""
    return f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')"


def own_text(element: Selector | SelectorList[Selector]) -> str | None:
    """Return the text that stands directly in an element, not in its children; None when there is none."""
    return fold(" ".join(element.xpath("text()").getall())) or None


def all_text(element: Selector | SelectorList[Selector]) -> str | None:
    """Return the whole visible text of an element; None when there is none."""
    return fold("".join(element.xpath(".//text()[not(ancestor::script or ancestor::style)]").getall())) or None


def attribute(element: Selector | SelectorList[Selector], name: str) -> str:
    """Return an attribute of the (first) element; empty when it has none.

    parsel's `attrib` would fail on any other attribute whose name has control characters.
    """
    return element.xpath(f"@{name}").get("")


def first_text(root: Selector | SelectorList[Selector], css: str) -> str | None:
    """Return the text of the first element that `css` finds and that has any."""
    return next((text for element in root.css(css) if (text := all_text(element))), None)


def first_match(pattern: re.Pattern[str], texts: Iterable[str | None]) -> re.Match[str] | None:
    """Return the match of the first text that begins with a pattern."""
    return next(filter(None, (pattern.match(text or "") for text in texts)), None)


def person_id(href: str) -> str | None:
    """Return the person's id in a link."""
    found = _PERSON_ID.search(href)
    return found[1] if found else None


def imdb_score(value: str, votes: str | None) -> Score:
    """Return IMDb's rating, 1 to 10, with its votes where they are exact: 2.8M is not. Raises ValueError."""
    return new_score("imdb", parse_decimal(value), attempt(partial(parse_integer, votes)) if votes else None)


def linked_score(data: Any) -> Score | None:
    """Return the rating of a title in JSON-LD. Raises ShapeError or ValueError."""
    rating = dig.at(data, "aggregateRating")
    value, votes = dig.at(rating, "ratingValue"), attempt(lambda: dig.size(rating, "ratingCount"))
    return None if value is None else imdb_score(str(value), str(votes or ""))


def metascore(value: str, reviews: str | None = None) -> Score:
    """Return a Metascore, 0 to 100. Raises ShapeError or ValueError."""
    return new_score("metascore", parse_integer(value), parse_integer(reviews) if reviews else None)
