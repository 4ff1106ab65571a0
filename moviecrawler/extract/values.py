"""Numbers, counts, durations and dates, as the sites write them.

Every function takes the text of one value and raises ValueError when it is not one: nothing is guessed, and
nothing that can't be read becomes 0.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date

_INTEGER = re.compile(r"^\d{1,3}(?:[,.\u00a0\u202f\u2009 ]\d{3})+$|^\d+$", re.ASCII)
_COUNT = re.compile(
    r"^(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)\s*(?P<unit>[KMB]?)(?P<more>\+?)(?:\s+(?!\d)|$)",
    re.IGNORECASE | re.ASCII,
)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_ISO_DURATION = re.compile(
    r"^P(?:(?P<days>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)(?:\.\d+)?S)?)?$", re.ASCII
)
_WORDED_DURATION = re.compile(
    r"^(?:(?P<h>[0-9]+)\s*(?:h|hrs?|hours?|std|stunden?|heures?|or[ae]|horas?|ór[aák]{1,2}|godz(?:in[ay]?)?|ч|час(?:а|ов)?|год|saat|sa|t"  # noqa: RUF001 - Cyrillic
    r"|tim(?:er?|mar)?|u|u[ur]r|uren|hodin[ay]?|tuntia?|時間|小[时時]|시간)(?![^\W\d])\.?)?"
    r"[\s,]*(?:(?:and|und|et|e|y|og|och|en|и|i)\s+)?"
    r"(?:(?P<m>[0-9]+)\s*(?:m|mins?|minut(?:es?|en|ter|i|os?|y|a)?|minuuttia?|perc|мин|хв|dk|分|分[钟鐘]|분)(?![^\W\d])\.?)?$",
    re.IGNORECASE,
)
"""Words of the languages in which IMDb shows its pages."""
_LONGEST_RUNTIME = 100_000
_FIRST_YEAR, _LAST_YEAR = 1870, 2100
_YEAR = re.compile(r"(?<!\d)((?:18[7-9]|19\d|20\d)\d)(?!\d)", re.ASCII)
_MONTH = r"(?P<month>[^\W\d_]{3,12})\.?,?\s+"
_DATE_FORMS = tuple(
    re.compile(r"(?<![\w-])" + form)
    for form in (
        r"(?P<y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})(?:$|[T ])",
        r"(?P<y>[0-9]{4})-(?P<m>[0-9]{1,2})$",
        _MONTH + r"(?P<d>[0-9]{1,2}),?\s+(?P<y>[0-9]{4})(?!\d)",  # Oct 22, 2021
        r"(?P<d>[0-9]{1,2})(?:\.|º|er)?\s+(?:de\s+)?" + _MONTH + r"(?:de\s+)?(?P<y>[0-9]{4})(?!\d)",  # 1er mai 2008
        r"(?<![0-9]\s)(?<![0-9]\.\s)(?<!\bde\s)" + _MONTH + r"(?:de\s+)?(?P<y>[0-9]{4})(?!\d)",  # outubro de 1994
        r"(?P<y>[0-9]{4})\.\s*" + _MONTH + r"(?P<d>[0-9]{1,2})(?!\d)",  # 2001. november 17.
        r"(?P<y>[0-9]{4})[年년]\s*(?P<m>[0-9]{1,2})[月월](?:\s*(?P<d>[0-9]{1,2})[日일])?",
    )
)


def parse_integer(text: str) -> int:
    """Return a whole number written with or without thousands separators.

    >>> parse_integer("2,836,665"), parse_integer("1.646.089"), parse_integer("350")
    (2836665, 1646089, 350)
    """
    text = text.strip()
    if not _INTEGER.match(text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(re.sub(r"\D", "", text))


def parse_decimal(text: str) -> float:
    """Return a number with a decimal point or a decimal comma.

    >>> parse_decimal("8.5"), parse_decimal("8,5"), parse_decimal("9")
    (8.5, 8.5, 9.0)
    """
    text = text.strip()
    if not re.fullmatch(r"\d{1,9}(?:[.,]\d{1,9})?", text, re.ASCII):
        raise ValueError(f"{text!r} is not a number")
    return float(text.replace(",", "."))


def parse_count(text: str) -> tuple[int, bool]:
    """Return how many a page says, and whether that is exact: "2.5M" and "5,000+" only say about how many.

    >>> parse_count("737,977"), parse_count("2.5M"), parse_count("5,000+ Ratings")
    ((737977, True), (2500000, False), (5000, False))
    """
    found = _COUNT.match(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a count")
    number, unit = found["number"], found["unit"].lower()
    if not unit:
        return parse_integer(number), not found["more"]
    whole, _, decimals = number.replace(",", "").partition(".")
    digits = int(whole + decimals) * _UNITS[unit]
    return digits // 10 ** len(decimals), False


def parse_runtime(text: str) -> int:
    """Return a duration in minutes, 1 to 100,000; seconds are dropped.

    >>> [parse_runtime(t) for t in ("PT2H22M", "PT126M", "2 hr. 11 min.", "1h 58m", "95 minutes", "1 Std. 55 Min.")]
    [142, 126, 131, 118, 95, 115]
    """
    text = text.strip()
    found = _ISO_DURATION.match(text) or _WORDED_DURATION.match(text)
    if not found:
        raise ValueError(f"{text!r} is not a duration")
    parts = found.groupdict()
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
    found = _YEAR.search(text)
    if not found:
        raise ValueError(f"{text!r} names no year")
    return int(found[1])


def iso_date(year: int, month: int | None = None, day: int | None = None) -> str | None:
    """Return `YYYY-MM-DD` or `YYYY-MM`, or None for a bare year, which is not a date. Raises ValueError.

    >>> iso_date(1999, 3, 31), iso_date(1999, 3), iso_date(1999)
    ('1999-03-31', '1999-03', None)
    """
    check_year(year)
    if month is None:
        return None
    date(year, month, 1 if day is None else day)
    return f"{year:04}-{month:02}" if day is None else f"{year:04}-{month:02}-{day:02}"


def parse_date(text: str) -> str:
    """Return a date as ISO 8601, to the day or the month; what follows it is not read.

    >>> parse_date("Oct 22, 2021, Wide"), parse_date("24 July 2008 (USA)"), parse_date("16. Dezember 2000")
    ('2021-10-22', '2008-07-24', '2000-12-16')
    """
    text = text.strip()
    for form in _DATE_FORMS:
        if found := form.match(text):
            return _date(found)
    raise ValueError(f"{text!r} is not a date")


def find_date(text: str) -> str | None:
    """Return the first date in a text as ISO 8601, or None when it holds none that can be read.

    >>> find_date("Release Date: 13 de outubro de 1994 (Brazil)"), find_date("Video Game Released 2004")
    ('1994-10-13', None)
    """
    for form in _DATE_FORMS:
        for found in form.finditer(text):
            # Any word and any number may stand side by side: most are no dates.
            with suppress(ValueError):
                return _date(found)
    return None


def _date(found: re.Match[str]) -> str:
    parts = found.groupdict()
    name, day = parts.get("month"), parts.get("d")
    parsed = iso_date(int(parts["y"]), month_number(name) if name else int(parts["m"]), int(day) if day else None)
    assert parsed is not None  # noqa: S101 - every form has a month
    return parsed


# --- Months ---------------------------------------------------------------------------------------------------------
# By their names in the languages that IMDb's older pages were written in.

# One text a language; "|" stands between two forms of one name.
_NAMES = (
    "january february march april may june july august september october november december",
    "januar|jänner februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "januar februar mars|marts april mai|maj juni juli august september oktober november desember|december",
    "január február március április május június július augusztus szeptember október november december",
    """stycznia|styczeń lutego|luty marca|marzec kwietnia|kwiecień maja|maj czerwca|czerwiec
    lipca|lipiec sierpnia|sierpień września|wrzesień października|październik listopada|listopad grudnia|grudzień""",
    """ledna|leden února|únor března|březen dubna|duben května|květen června|červen
    července|červenec srpna|srpen září října|říjen listopadu prosince|prosinec""",
    "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
    "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",  # noqa: RUF001 - Turkish
    """января|январь февраля|февраль марта|март апреля|апрель мая|май июня|июнь
    июля|июль августа|август сентября|сентябрь октября|октябрь ноября|ноябрь декабря|декабрь""",
    """січня|січень лютого|лютий березня|березень квітня|квітень травня|травень червня|червень
    липня|липень серпня|серпень вересня|вересень жовтня|жовтень листопада|листопад грудня|грудень""",
)
# Of these no abbreviations: Finnish "mar…" is November, and would take "Mar" away from March.
_WHOLE_NAMES = (
    """tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta
    heinäkuuta elokuuta syyskuuta lokakuuta marraskuuta joulukuuta""",
    """ιανουαρίου φεβρουαρίου μαρτίου απριλίου μαΐου ιουνίου
    ιουλίου αυγούστου σεπτεμβρίου οκτωβρίου νοεμβρίου δεκεμβρίου""",
    "януари февруари март април май юни юли август септември октомври ноември декември",
    "januára februára marca apríla mája júna júla augusta septembra októbra novembra decembra",
    "januar februar marec april maj junij julij avgust september oktober november december",
    "januari februari maret april mei juni juli agustus september oktober november desember",
)
_SHORTEST_ABBREVIATION = 3


def _numbers() -> dict[str, int]:
    """Return the number of every name, and of every beginning of names that are all of the same month."""
    names = _numbered(_NAMES)
    meant: dict[str, set[int]] = {}
    for name, number in names.items():
        for length in range(_SHORTEST_ABBREVIATION, len(name)):
            meant.setdefault(name[:length], set()).add(number)
    return (
        {short: numbers.pop() for short, numbers in meant.items() if len(numbers) == 1}
        | names
        | _numbered(_WHOLE_NAMES)
    )


def _numbered(languages: tuple[str, ...]) -> dict[str, int]:
    return {
        name: number
        for language in languages
        for number, forms in enumerate(language.split(), start=1)
        for name in forms.split("|")
    }


_NUMBERS = _numbers()


def month_number(name: str) -> int:
    """Return 1 to 12 for a month's name or abbreviation in any of the languages. Raises ValueError.

    >>> [month_number(name) for name in ("Oct", "octobre", "Dez", "ноября", "marraskuuta")]
    [10, 10, 12, 11, 11]
    """
    number = _NUMBERS.get(name.lower())
    if number is None:
        raise ValueError(f"{name!r} is not a month")
    return number
