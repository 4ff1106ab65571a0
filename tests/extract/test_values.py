import contextlib
import json
from collections.abc import Callable
from datetime import date
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from moviecrawler.basics import values
from moviecrawler.basics.errors import MovieCrawlerError
from moviecrawler.basics.values import (
    parse_count,
    parse_date,
    parse_decimal,
    parse_runtime,
    parse_year,
)
from moviecrawler.extract.dig import parse_at
from moviecrawler.extract.findings import ABSENT, ShapeError
from tests import written
from tests.golden import stated

PARSERS: list[Callable[[str], Any]] = [
    parse_count,
    parse_date,
    parse_decimal,
    parse_runtime,
    parse_year,
]


@pytest.mark.parametrize(("kind", "text", "value"), written.rows(__file__, "values.txt"))
def test_value_is_read_as_the_sites_write_it_and_what_is_malformed_is_refused(
    kind: str, text: str, value: str | None
) -> None:
    parse: Callable[[str], Any] = getattr(values, f"parse_{kind}")
    if value is not None:
        assert json.dumps(parse(text)) == value
        return
    with pytest.raises(ValueError, match="not a" if kind != "date" else r".+"):
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


def test_a_wrong_shape_is_named_by_the_path_to_the_key_that_it_lacks() -> None:
    with pytest.raises(ShapeError, match=r"^a\.b\.c: expected an object, not \[\]"):
        parse_at(str, {"a": {"b": []}}, "a", "b", "c", "d")


@pytest.mark.parametrize(("name", "given", "told"), written.rows(__file__, "functions.txt"))
def test_function_returns_what_is_written_beside_it(name: str, given: str, told: str) -> None:
    module, _, function = name.rpartition(".")
    read = getattr(import_module(f"moviecrawler.{module}"), function)
    if told == "refused":
        with pytest.raises((ValueError, MovieCrawlerError)):
            read(*json.loads(given))
        return
    value = read(*json.loads(given))
    assert (
        (told == "absent") if value is ABSENT else (json.loads(told) == stated(to_builtins(value)))
    )
