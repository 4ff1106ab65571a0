"""Decides whether a page is that of the title that was requested. Pure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from moviecrawler.items import Movie, Page, Site
from moviecrawler.sites.ids import id_in_url, is_same_id, part_of_series

ALIAS = "alias"
"""The reason of a redirect that no response made: an alias led from the requested id to another."""
OTHER_TITLE = "other_title"
"""Key in the `meta` of a request: the id of another title, whose page came."""
_PERMANENT = (301, 308, ALIAS)


class Redirect(NamedTuple):
    """One step on the way from the requested address to that of the page."""

    url: str
    """The address that was left."""
    reason: int | str
    """Status of the response, such as 301; or ALIAS."""


def redirects_of(meta: Mapping[str, Any]) -> list[Redirect]:
    """Return the redirects of a request, by the `meta` that Scrapy keeps of them."""
    urls = meta.get("redirect_urls", ())
    reasons = meta.get("redirect_reasons", ())
    return [Redirect(url, reason) for url, reason in zip(urls, reasons, strict=True)]


def meta_of(redirects: Sequence[Redirect]) -> dict[str, object]:
    """Return redirects as Scrapy keeps them in the `meta` of a request."""
    return {
        "redirect_urls": [redirect.url for redirect in redirects],
        "redirect_reasons": [redirect.reason for redirect in redirects],
    }


class Identity(NamedTuple):
    """Whether a page is that of the requested title."""

    title_id: str
    """The title's own id. It is that of a series where the page is that of its only season."""
    is_alias: bool = False
    """Whether the requested id is an alias of the title's own: the site has just led from the one
    to the other for good."""
    refusal: str | None = None
    """Why the page is not that of the requested title; None when it is."""


def identify(
    page: Page, movie: Movie, requested_id: str, url: str, redirects: Sequence[Redirect]
) -> Identity:
    """Return whose page a response is. The id that the page states for itself decides.

    Another id than the requested one is accepted only where the site has redirected to its address
    for good. Of a series and its seasons, one may lead to the other for a while: a series' address
    to its only season, a season's to the series that lists it.

    Args:
        page: What the page says.
        movie: The title that it is about.
        requested_id: Id of the title that was requested.
        url: The address of the page, after redirects.
        redirects: How the requested address led there. All are on the site, as requests to other
            hosts are not sent.
    """
    site = movie.site
    page_id = movie.site_id or ""
    sent_id = _sent_id(site, requested_id, url, redirects)
    is_direct = sent_id == requested_id
    if is_same_id(sent_id, page_id):
        return Identity(title_id=page_id, is_alias=is_direct and sent_id != page_id)
    if is_same_id(requested_id, page_id):
        return Identity(title_id=page_id)  # the alias is out of date
    ids = [id_in_url(site, address) for address in (*(step.url for step in redirects), url)]
    if is_same_id(ids[-1] or "", page_id):
        if sent_id in {season.site_id for season in page.seasons}:
            return Identity(title_id=page_id)
        title_id = page_id
        if movie.kind == "season" and movie.series_id and not part_of_series(site, sent_id):
            title_id = movie.series_id
            ids = [_series_of(site, step_id) for step_id in ids]
        if is_same_id(sent_id, title_id):
            return Identity(title_id=title_id)
        is_same_part = _number(site, sent_id) == _number(site, title_id)
        if is_same_part and _are_permanent(ids, redirects):
            return Identity(title_id=title_id, is_alias=is_direct)
    return Identity(title_id=page_id, refusal=f"the page is that of {page_id}")


def _sent_id(site: Site, requested_id: str, url: str, redirects: Sequence[Redirect]) -> str:
    """Return the id to whose address the request was sent: the requested one, or an alias'."""
    if not redirects or redirects[0].reason != ALIAS:
        return requested_id
    sent_to = redirects[1].url if len(redirects) > 1 else url
    return id_in_url(site, sent_to) or requested_id


def _series_of(site: Site, site_id: str | None) -> str | None:
    """Return the id of the series of a season; of a whole title its own."""
    part = part_of_series(site, site_id or "")
    return site_id if part is None else part.series_id


def _number(site: Site, site_id: str) -> tuple[object, ...] | None:
    """Return kind, season and episode of a part of a series; None for a whole title."""
    part = part_of_series(site, site_id)
    return None if part is None else (part.kind, part.season, part.episode)


def _are_permanent(ids: Sequence[str | None], redirects: Sequence[Redirect]) -> bool:
    """Return whether the site has redirected for good, each time that the id has changed.

    `ids` has those of all addresses: one more than there are redirects.
    """
    reasons = [
        redirect.reason
        for redirect, (before, after) in zip(redirects, pairwise(ids), strict=True)
        if not is_same_id(before or "", after or "")
    ]
    return bool(reasons) and all(reason in _PERMANENT for reason in reasons)
