"""How the tests of the dashboard ask a cluster, and read its pages."""

import html
import re
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.services.nodes import Answer, Cluster, Node
from tests.services.postgres import execute
from tests.services.redis import RedisServer
from tests.waiting import wait_for

LOGIN = ("operator", "of-operators")
DONE = 12
PER_DAY = 6000
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
"""A title that a site could give itself."""
PASSWORD = "s3cret-of-the-proxy"  # noqa: S105 - the test's own
USER = "customer-alice"


@dataclass
class Operated:
    """What runs, and how to ask it."""

    cluster: Cluster
    redis: RedisServer
    database_url: str
    done: str
    """The job that is over."""
    running: str
    """The job that runs."""

    @property
    def node(self) -> Node:
        return self.cluster.nodes[0]

    def page(self, path: str, node: Node | None = None) -> str:
        """Return a page, which must be there with all that it shows."""
        pages: list[Answer] = []

        def is_whole() -> bool:
            # On a machine that is so busy that a store takes seconds, whoever asks asks again.
            pages.append((node or self.node).request(path.lstrip("/")))
            return "has not answered" not in pages[-1].text

        wait_for(is_whole)
        assert pages[-1].code == 200, (path, pages[-1].code, pages[-1].text[-2000:])
        return pages[-1].text

    def send(self, path: str, node: Node | None = None, /, **fields: str) -> Answer:
        """Send a form as a browser does, and return the answer without following it."""
        return (node or self.node).post(path.lstrip("/"), **fields)

    def sent(self, path: str, node: Node | None = None, /, **fields: str) -> str:
        """Send a form, and return where that leads to."""
        answer = self.send(path, node, **fields)
        assert answer.code == 303, answer.text
        return answer.headers["Location"]

    def ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Ask the database."""
        return execute(self.database_url, statement, *values)


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
