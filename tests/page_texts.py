"""How tests of the dashboard read its pages."""

import html
import re
import urllib.parse
from collections.abc import Iterable

from moviecrawler.dashboard.pages import Page, PageRequest

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
"""A title that a site could give itself."""


def shown(page: Page, /, *path: str, **values: str) -> str:
    """Return what a page answers, which must be there with all that it shows."""
    answer = page.respond(PageRequest(path=path, values=values))
    assert answer.code == 200, answer.content
    assert b"can\xe2\x80\x99t be shown" not in answer.content
    return answer.content.decode()


def text_of(page: str) -> str:
    """Return a page as it is read: without tags, in single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def luminance(colour: Iterable[int]) -> float:
    """Return the relative luminance of a colour, as WCAG defines it.

    A colour is red, green and blue, each from 0 to 255.
    """
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (one / 255 for one in colour)
    ]
    red, green, blue = linear
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Iterable[int], other: Iterable[int]) -> float:
    """Return the contrast of two colours, as WCAG defines it."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def query(path: str, **parameters: str) -> str:
    """Return a path with a query."""
    return f"{path}?{urllib.parse.urlencode(parameters)}"


def figures(page: str, site: str) -> dict[str, str]:
    """Return the figures of a site's card."""
    card = page.split(f'aria-labelledby="site-{site}"')[1].split("</section>", maxsplit=1)[0]
    return {
        name: text_of(value) for name, value in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", card)
    }


def number(text: str) -> int:
    """Return the number that a text begins with."""
    return int(text.split(maxsplit=1)[0].replace(",", ""))
