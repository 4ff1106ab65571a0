"""Numbers, counts, durations and dates, as the sites write them.

Every function takes the text of one value and raises ValueError when it is not one: nothing is
guessed, and nothing that can't be read becomes 0.
"""

import re
from datetime import date

_COUNT = re.compile(
    r"^(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)\s*"
    r"(?P<unit>[KMB]?)\+?(?:\s+(?!\d)|$)",
    re.IGNORECASE | re.ASCII,
)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_ISO_DURATION = re.compile(
    r"^P(?:(?P<days>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)(?:\.\d+)?S)?)?$",
    re.ASCII,
)
_WORDED_DURATION = re.compile(
    r"^(?:(?P<h>\d+)\s*(?:h|hrs?|hours?)(?![a-z])\.?)?[\s,]*"
    r"(?:(?P<m>\d+)\s*(?:m|mins?|minutes?)(?![a-z])\.?)?$",
    re.IGNORECASE | re.ASCII,
)
_LONGEST_RUNTIME = 100_000
_FIRST_YEAR = 1870
_LAST_YEAR = 2100
_YEAR = re.compile(r"(?<!\d)((?:18[7-9]|19\d|20\d)\d)(?!\d)", re.ASCII)
_MONTH = r"(?P<month>[A-Za-z]{3,9})\.?,?\s+"
# Those of the calendar module are in the language of the machine.
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_DATE_FORMS = tuple(
    re.compile(form, re.ASCII)
    for form in (
        r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?:$|[T ])",
        r"(?P<y>\d{4})-(?P<m>\d{1,2})$",
        _MONTH + r"(?P<d>\d{1,2}),?\s+(?P<y>\d{4})(?!\d)",  # Oct 22, 2021
        r"(?P<d>\d{1,2})\s+" + _MONTH + r"(?P<y>\d{4})(?!\d)",  # 24 July 2008
        _MONTH + r"(?P<y>\d{4})(?!\d)",  # Feb 2024
    )
)


def parse_decimal(text: str) -> float:
    """Return a number with or without a decimal point.

    >>> parse_decimal("8.5"), parse_decimal("9")
    (8.5, 9.0)
    """
    text = text.strip()
    if not re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text, re.ASCII):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def parse_count(text: str) -> int:
    """Return how many a page says; "2.5M" and "5,000+" only say about how many.

    >>> parse_count("737,977"), parse_count("2.5M"), parse_count("5,000+ Ratings")
    (737977, 2500000, 5000)
    """
    match = _COUNT.match(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a count")
    whole, _, decimals = match["number"].replace(",", "").partition(".")
    unit = match["unit"].lower()
    if decimals and not unit:
        raise ValueError(f"{text!r} is not a count")
    scale: int = 10 ** len(decimals)
    return int(whole + decimals) * _UNITS[unit] // scale


def parse_runtime(text: str) -> int:
    """Return a duration in minutes, 1 to 100,000; seconds are dropped.

    >>> [parse_runtime(t) for t in ("PT2H22M", "PT126M", "2 hr. 11 min.", "1h 58m", "95 minutes")]
    [142, 126, 131, 118, 95]
    """
    text = text.strip()
    match = _ISO_DURATION.match(text) or _WORDED_DURATION.match(text)
    if not match:
        raise ValueError(f"{text!r} is not a duration")
    parts = match.groupdict()
    minutes = int(parts.get("days") or 0) * 1440 + int(parts["h"] or 0) * 60 + int(parts["m"] or 0)
    return check_runtime(minutes)


def check_runtime(minutes: int) -> int:
    """Return `minutes`, or raise ValueError when no title can be that long."""
    if not 1 <= minutes <= _LONGEST_RUNTIME:
        raise ValueError(f"{minutes} minutes is not a runtime")
    return minutes


def check_year(year: int) -> int:
    """Return `year`, or raise ValueError when no title can be of that year."""
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        raise ValueError(f"{year} is not a year of release")
    return year


def parse_year(text: str) -> int:
    """Return the first year of release named in a text.

    >>> parse_year("(1994)"), parse_year("TV Series 2005-2022")
    (1994, 2005)
    """
    match = _YEAR.search(text)
    if not match:
        raise ValueError(f"{text!r} names no year")
    return int(match[1])


def iso_date(year: int, month: int, day: int | None = None) -> str:
    """Return `YYYY-MM-DD` or `YYYY-MM`. Raises ValueError.

    >>> iso_date(1999, 3, 31), iso_date(1999, 3)
    ('1999-03-31', '1999-03')
    """
    check_year(year)
    date(year, month, 1 if day is None else day)
    return f"{year:04}-{month:02}" if day is None else f"{year:04}-{month:02}-{day:02}"


def parse_date(text: str) -> str:
    """Return a date as ISO 8601, to the day or the month; what follows it is not read.

    >>> parse_date("Oct 22, 2021, Wide"), parse_date("24 July 2008 (USA)"), parse_date("2000-12")
    ('2021-10-22', '2008-07-24', '2000-12')
    """
    text = text.strip()
    match = next(filter(None, (form.match(text) for form in _DATE_FORMS)), None)
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    parts = match.groupdict()
    month = int(parts["m"]) if "m" in parts else _month_number(parts["month"])
    day = parts.get("d")
    return iso_date(int(parts["y"]), month, int(day) if day else None)


def _month_number(name: str) -> int:
    """Return 1 to 12 for a month's name or a beginning of it."""
    for number, month in enumerate(_MONTHS, start=1):
        if month.startswith(name.lower()):
            return number
    raise ValueError(f"{name!r} is not a month")
