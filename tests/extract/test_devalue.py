"""The decoder of Nuxt 3's payloads, also on payloads that nobody's server would write."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviecrawler.extract.devalue import Devalue
from moviecrawler.extract.findings import ShapeError
from tests.extract.limits import processor_time


def flatten(root: Any) -> list[Any]:
    """Write a value as devalue does; a tuple is a typed one, such as ("Ref", value)."""
    elements: list[Any] = []

    def put(value: Any) -> int:
        index = len(elements)
        elements.append(None)
        if isinstance(value, tuple):
            elements[index] = [value[0], *map(put, value[1:])]
        elif isinstance(value, dict):
            elements[index] = {name: put(member) for name, member in value.items()}
        else:
            elements[index] = [put(member) for member in value] if isinstance(value, list) else value
        return index

    put(root)
    return elements


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON_VALUES)
def test_what_was_flattened_comes_back(value: Any) -> None:
    assert Devalue(flatten(value)).at() == value


@settings(deadline=None)
@given(JSON_VALUES)
def test_script_text_is_decoded(value: Any) -> None:
    assert Devalue.decode(json.dumps(flatten({"data": value})).encode()).at("data") == value


@pytest.mark.parametrize(
    ("elements", "value"),
    [
        pytest.param([["Reactive", 1], {"a": 2}, 7], {"a": 7}, id="Reactive"),
        pytest.param([["ShallowReactive", 1], ["Ref", 2], ["ShallowRef", 3], 7], 7, id="wrappers in wrappers"),
        pytest.param([["EmptyRef", 1], '""'], "", id="empty text"),
        pytest.param([["EmptyRef", 1], "null"], None, id="null"),
        pytest.param([["EmptyShallowRef", 1], "_"], None, id="undefined ref"),
        pytest.param([["EmptyShallowRef", 1], "0n"], 0, id="BigInt ref"),
        pytest.param([["NuxtError", 1], {"statusCode": 2}, 404], {"statusCode": 404}, id="NuxtError"),
        pytest.param([["Island", 1], {"key": 2}, "x"], {"key": "x"}, id="Island"),
        pytest.param([["Date", "2026-04-01T00:00:00.000Z"]], "2026-04-01T00:00:00.000Z", id="Date"),
        pytest.param([["Set"]], [], id="empty Set"),
        pytest.param([["Set", 1, 2, 1], "a", "b"], ["a", "b", "a"], id="Set"),
        pytest.param([["Object", "boxed"]], "boxed", id="boxed"),
        pytest.param([["URL", "https://example.com/"]], "https://example.com/", id="URL"),
        pytest.param([["null", "name", 1], 7], {"name": 7}, id="object without a prototype"),
        pytest.param([[-1, -2, 1], 7], [None, None, 7], id="undefined and a hole"),
        pytest.param([[-4, -5, -6]], [math.inf, -math.inf, 0.0], id="numbers that JSON has not"),
    ],
)
def test_typed_value(elements: list[Any], value: Any) -> None:
    assert Devalue(elements).at() == value


def test_nan_and_negative_zero() -> None:
    nan, zero = Devalue([[-3, -6]]).at()
    assert math.isnan(nan)
    assert math.copysign(1, zero) == -1


def test_shared_value_is_built_once() -> None:
    first, second = Devalue([[1, 1], {"a": 2}, 7]).at()
    assert first is second


def test_cycle_is_a_cycle() -> None:
    built = Devalue([{"self": 0, "list": 1}, [0, 1]]).at()
    assert built["self"] is built
    assert built["list"][0] is built
    assert built["list"][1] is built["list"]


def test_path_builds_only_what_it_leads_to() -> None:
    payload = Devalue([["Reactive", 1], {"broken": 2, "rows": 3}, ["Unheard", 1], [4, -1], {"title": 5}, "Salt Roads"])
    assert payload.keys() == ["broken", "rows"]
    assert payload.count("rows") == 2
    assert payload.at("rows", 0, "title") == "Salt Roads"
    with pytest.raises(ShapeError, match="Unheard"):
        payload.at("broken")


@pytest.mark.parametrize("path", [("missing",), ("missing", "deeper"), ("rows", 9), ("rows", 0), ("rows", 0, "title")])
def test_missing_step_is_none(path: tuple[str | int, ...]) -> None:
    payload = Devalue([{"rows": 1}, [-1]])
    assert payload.at(*path) is None
    assert payload.keys(*path) == []
    assert payload.count(*path) == 0


@pytest.mark.parametrize(
    "elements",
    [
        pytest.param([{"a": 1}], id="reference past the end"),
        pytest.param([{"a": -7}], id="unknown special"),
        pytest.param([{"a": True}], id="boolean for a reference"),
        pytest.param([{"a": "0"}], id="text for a reference"),
        pytest.param([{"a": 1.0}], id="float for a reference"),
        pytest.param([{"a": None}], id="null for a reference"),
        pytest.param([["Ref", 0]], id="wrapper of itself"),
        pytest.param([["Ref", 1], ["Reactive", 0]], id="wrappers of each other"),
        pytest.param([["Ref"]], id="wrapper of nothing"),
        pytest.param([["Date", {"a": 0}]], id="Date of an object"),
        pytest.param([["EmptyRef", 1], 7], id="EmptyRef of a number"),
        *(pytest.param([[kind, 1], 7], id=kind) for kind in ("Map", "BigInt", "RegExp", "Uint8Array")),
        pytest.param([["null", [], 1], 7], id="list for a name"),
        pytest.param([[i + 1] for i in range(5000)] + [7], id="nested too deep"),
    ],
)
def test_forged_payload_is_refused(elements: list[Any]) -> None:
    with pytest.raises(ShapeError):
        Devalue(elements).at()


@pytest.mark.parametrize("raw", [b"", b"null", b"{}", b"[]", b"7", b"[1,"])
def test_no_payload_is_refused(raw: bytes) -> None:
    with pytest.raises(ShapeError):
        Devalue.decode(raw)


def test_wrapper_of_itself_is_refused_on_the_way() -> None:
    with pytest.raises(ShapeError):
        Devalue([["Ref", 0]]).at("data")


@pytest.mark.parametrize(
    "elements",
    [
        [*([n + 1, n + 1] for n in range(150)), "end"],
        [[1] * 20_000, [2] * 20_000, "end"],
        [{"a": 1, "b": 1}, *({"x": n + 1, "y": n + 1} for n in range(1, 100)), "end"],
    ],
    ids=["doubling", "a list of one list", "objects"],
)
def test_value_that_would_be_too_large_if_nothing_were_shared_is_refused_at_once(elements: list[Any]) -> None:
    with processor_time(1), pytest.raises(ShapeError, match="too often"):
        Devalue(elements).at()


def test_path_that_is_followed_again_and_again_is_refused_in_the_end() -> None:
    payload = Devalue([{"data": 1}, [2] * 10, "end"])
    with processor_time(1), pytest.raises(ShapeError, match="too often"):
        [payload.at("data", 3) for _ in range(1000)]


def test_values_may_be_shared_as_often_as_pages_share_them() -> None:
    assert Devalue([[1] * 20, {"a": 2}, "end"]).at() == [{"a": "end"}] * 20
