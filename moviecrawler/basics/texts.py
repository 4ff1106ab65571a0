"""Cleans and shortens texts in the same way for all stores, the catalogue and the log."""

import re

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters, which no page shows, and of which some stores take none. Tab and line breaks
are not among them."""
_BREAKS = re.compile(r"[\t\r\n]+")


def without_controls(text: str) -> str:
    r"""Return a text without control characters.

    >>> without_controls("The\x00 Lamp\x07"), without_controls("two\nlines")
    ('The Lamp', 'two\nlines')
    """
    return _CONTROLS.sub("", text)


def on_one_line(text: str) -> str:
    r"""Return a text without control characters, and with spaces in place of tabs and line breaks.

    >>> on_one_line("The\r\nLamp\x00")
    'The Lamp'
    """
    return _BREAKS.sub(" ", _CONTROLS.sub("", text))


def shown(value: object) -> str:
    """Return a value of somebody's as an error shows it: a text in quotes, and cut.

    It is not shown at all where there may be a password before an "@".

    >>> shown("tt1"), shown("https://me:password@host/x")
    ("'tt1'", "a text with '@' in it")
    """
    quoted = repr(value)
    return shortened(quoted, 200) if "@" not in quoted else "a text with '@' in it"


def fold(text: str) -> str:
    """Return a text with every run of white space as one space, and none at its ends."""
    return " ".join(text.split())


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters and a few: a longer one is cut in the middle.

    >>> shortened("a" * 10 + "b" * 10, 8)
    'aaaa … bbbb'
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} … {text[-half:]}"


def printable(text: str) -> str:
    r"""Return a text of others, with what could move a cursor or hide something escaped.

    >>> printable("caf\u00e9 \x1b[31m\n")
    'café \\x1b[31m\\n'
    """
    if text.isprintable():  # most are, and a table has many
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


# A spreadsheet runs a cell that starts with one of these. An apostrophe before it makes it text; a
# text that has apostrophes there by itself gets one more, so that taking one off always gives back
# what was written. Full-width forms are run as well.
_RUNS_AS_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")  # noqa: RUF001


def neutralise(text: str) -> str:
    r"""Return a text that no spreadsheet runs as a formula.

    >>> neutralise("=1+1"), neutralise("'-'"), neutralise("'Twas"), neutralise("Up")
    ("'=1+1", "''-'", "'Twas", 'Up')
    """
    return "'" + text if _RUNS_AS_FORMULA.match(text) else text
