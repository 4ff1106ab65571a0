"""Builds the tree of a page's markup, within bounds: a hostile page could take hours.

Elements take memory, and time in each of a hundred searches. Depth, children of one element and
attributes take quadratic time, as libxml2 walks along all of them to find out which comes first.
"""

import re

from parsel import Selector, SelectorList

from moviecrawler.basics.texts import fold
from moviecrawler.extract.embedded import LARGEST_PAGE, decode_text
from moviecrawler.extract.findings import ShapeError

MOST_TAGS = 40_000
"""Opening and closing ones; the largest page seen has 28,000."""
MOST_CHILDREN = 4000
"""Elements directly in one element, such as rows of a table; the page that has most has 444."""
DEEPEST = 100
"""Elements inside of each other; the deepest page seen has 33."""
MOST_ATTRIBUTES = 500
"""Of an element that is kept. libxml2 compares each with all before it."""
_LONG_TAG = re.compile(rb"<[a-zA-Z][^<>]{2000,}>?")
"""Shorter ones have fewer attributes than matter."""
_ATTRIBUTE = re.compile(rb"""[^\s"'=<>/]+(?:\s*=\s*(?:"[^"]*"|'[^']*'))?""")
_BELOW = "/*" * (DEEPEST + 1)
_WITH_MORE_CHILDREN = f"//*[*[{MOST_CHILDREN + 1}]]"


def tree_of(markup: bytes) -> Selector:
    """Return the tree of a page, or of a slice of one.

    Raises ShapeError when it is larger than any page is.
    """
    if len(markup) > LARGEST_PAGE:
        raise ShapeError("page", f"{len(markup):,} bytes; {LARGEST_PAGE:,} are the most")
    if (tags := markup.count(b"<")) > MOST_TAGS:
        raise ShapeError("page", f"{tags:,} tags; {MOST_TAGS:,} are the most")
    root = Selector(text=decode_text(_LONG_TAG.sub(_without_attributes, markup)), type="html")
    if root.xpath(_BELOW):
        raise ShapeError("page", f"more than {DEEPEST} elements inside of each other")
    if root.xpath(_WITH_MORE_CHILDREN):
        raise ShapeError(
            "page", f"an element with more than {MOST_CHILDREN:,} others directly in it"
        )
    return root


def _without_attributes(tag: re.Match[bytes]) -> bytes:
    """Return a tag as it is, or without its attributes when it has more than any that is read.

    Texts in scripts can look like tags.
    """
    return (
        tag[0]
        if len(_ATTRIBUTE.findall(tag[0])) <= MOST_ATTRIBUTES
        else tag[0].split(maxsplit=1)[0] + b">"
    )


def text_of(selection: Selector | SelectorList[Selector]) -> str:
    """Return the text of (the first of) a selection, white space folded; "" when there is none."""
    return fold(selection.xpath("string()").get() or "")
