"""The decoder of Nuxt 3's payloads, also on payloads that nobody's server would write."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviecrawler.extract.devalue import unflatten
from moviecrawler.extract.findings import ShapeError
from tests.extract.limits import processor_time
from tests.golden import flatten, plain


def value_of(elements: list[Any]) -> Any:
    """Return the whole value of a payload."""
    return plain(unflatten(json.dumps(elements).encode()))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1000, 1000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_what_was_flattened_comes_back(value: Any) -> None:
    assert value_of(flatten(value)) == value


@pytest.mark.parametrize(
    ("elements", "value"),
    [
        pytest.param([["Reactive", 1], {"a": 2}, 7], {"a": 7}, id="Reactive"),
        pytest.param(
            [["ShallowReactive", 1], ["Ref", 2], ["ShallowRef", 3], 7], 7, id="wrappers in wrappers"
        ),
        pytest.param([[-1, -2, 1], 7], [None, None, 7], id="undefined and a hole"),
        pytest.param([[1] * 20, {"a": 2}, "end"], [{"a": "end"}] * 20, id="shared"),
    ],
)
def test_typed_value(elements: list[Any], value: Any) -> None:
    assert value_of(elements) == value


def test_only_what_is_looked_at_is_resolved() -> None:
    elements = [
        ["Reactive", 1],
        {"broken": 2, "rows": 3, "self": 0},
        ["Unheard", 1],
        [4, -1],
        {"title": 5},
        "Salt Roads",
    ]
    payload: Any = unflatten(json.dumps(elements).encode())
    assert (list(payload), len(payload["rows"])) == (["broken", "rows", "self"], 2)
    assert next(iter(payload["self"]["rows"]))["title"] == "Salt Roads"
    assert (payload.get("missing"), payload.get("missing", 7)) == (None, 7)
    with pytest.raises(ShapeError, match="Unheard"):
        payload["broken"]


@pytest.mark.parametrize(
    "elements",
    [
        *([{"a": reference}] for reference in (1, -3, True, "0", 1.0, None)),
        pytest.param([["Ref", 0]], id="wrapper of itself"),
        pytest.param([["Ref", 1], ["Reactive", 0]], id="wrappers of each other"),
        pytest.param([["Ref"]], id="wrapper of nothing"),
        *(
            pytest.param([[kind, 1], 7], id=kind)
            for kind in ("Map", "Set", "Date", "EmptyRef", "BigInt")
        ),
        pytest.param([], id="nothing"),
        pytest.param([*([n + 1, n + 1] for n in range(150)), "end"], id="doubling"),
        pytest.param([[1] * 20_000, [2] * 20_000, "end"], id="a list of one list"),
    ],
)
def test_forged_payload_is_refused_at_once(elements: list[Any]) -> None:
    with processor_time(2), pytest.raises(ShapeError):
        value_of(elements)


@pytest.mark.parametrize("raw", [b"", b"null", b"{}", b"7", b"[1,"])
def test_no_payload_is_refused(raw: bytes) -> None:
    with pytest.raises(ShapeError):
        unflatten(raw)
