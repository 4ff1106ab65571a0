import contextlib
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviecrawler.basics.values import (
    parse_count,
    parse_date,
    parse_decimal,
    parse_runtime,
    parse_year,
)

PARSERS: list[Callable[[str], Any]] = [
    parse_count,
    parse_date,
    parse_decimal,
    parse_runtime,
    parse_year,
]

READ: dict[Callable[[str], Any], dict[str, Any]] = {
    parse_count: {
        "2.5m votes": 2_500_000,
        "1K": 1_000,
        "12.34K": 12_340,
        "1.2B": 1_200_000_000,
        "5,000+ Ratings": 5_000,
        "250,000+": 250_000,
        "350 Reviews": 350,
        "1,046": 1_046,
        "0": 0,
    },
    parse_runtime: {
        **dict.fromkeys(("PT2H22M", "2 h 22 m", "2h22m"), 142),
        **dict.fromkeys(("PT2H", "2h"), 120),
        **dict.fromkeys(("95 min", "1 hr 35 mins"), 95),
        "PT126M": 126,
        "PT1H0M30S": 60,
        "45m": 45,
        **dict.fromkeys(("2 hours, 5 minutes", "PT2H5M0.000S"), 125),
    },
    parse_date: {
        "May 2020": "2020-05",
        "Sept. 3, 2020": "2020-09-03",
        "2020-05-03T04:05:06.000Z": "2020-05-03",
    },
}
REFUSED: dict[Callable[[str], Any], list[str]] = {
    parse_count: ["2.5MM", "2,5M", "1,00,000", "1,00", "2.5", "12,3K4"],
    parse_runtime: [
        "PT",
        "P",
        "PT0M",
        "0 min",
        "PT30S",
        "100001 min",
        "2h 3",
        "1:58",
        "h",
        "min",
        "2 seasons 5 minutes",
        "1h30x",
    ],
    parse_date: [
        "2021-13-01",
        "2021-02-30",
        "Foo 3, 2020",
        "32 May 2020",
        "1492-01-01",
        "0000-00-00",
        "1970",
    ],
}


@pytest.mark.parametrize(
    ("parse", "text", "value"), [(p, t, v) for p, read in READ.items() for t, v in read.items()]
)
def test_value_is_read_as_the_sites_write_it(
    parse: Callable[[str], Any], text: str, value: Any
) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"), [(p, text) for p, texts in REFUSED.items() for text in texts]
)
def test_malformed_or_impossible_value_is_refused(parse: Callable[[str], Any], text: str) -> None:
    with pytest.raises(ValueError, match="not a" if parse is not parse_date else r".+"):
        parse(text)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "text",
    ["", " ", "\\N", "N/A", "tbd", "-", "–", "null", "NaN", "0x10", "²", "१२३", "1e9", "--5"],
)
def test_what_is_no_value_is_refused(parse: Callable[[str], Any], text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(text)


@pytest.mark.parametrize("parse", PARSERS)
@given(text=st.text(max_size=40))
def test_any_text_gives_a_value_or_a_value_error(parse: Callable[[str], Any], text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse(text) is not None


@given(st.integers(1, 999_999_999), st.integers(1, 99_999), st.sampled_from("KM"))
def test_an_abbreviated_count_scales_by_its_unit(number: int, tenths: int, unit: str) -> None:
    assert parse_count(f"{number:,} votes") == number
    assert parse_count(f"{tenths / 10:.1f}{unit}") == tenths * {"K": 100, "M": 100_000}[unit]


@given(st.integers(1, 166), st.integers(0, 59))
def test_runtime_in_every_form(hours: int, minutes: int) -> None:
    for form in ("PT{}H{}M", "{}h {}m", "{} hr. {} min.", "{} hours {} minutes"):
        assert parse_runtime(form.format(hours, minutes)) == hours * 60 + minutes


@given(st.dates(min_value=date(1870, 1, 1), max_value=date(2100, 12, 31)))
def test_date_in_every_form(day: date) -> None:
    forms = (
        "{d:%b} {d.day}, {d.year}",
        "{d:%B} {d.day}, {d.year}, Wide",
        "{d.day} {d:%B} {d.year} (USA)",
        "{d:%Y-%m-%d}",
    )
    for form in forms:
        assert parse_date(form.format(d=day)) == day.isoformat()
