from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviecrawler.replica.splice import Body, Template

PARTS = st.binary(max_size=300)


@given(fixed=st.lists(PARTS, min_size=2, max_size=4), own=st.data())
def test_spliced_pages_are_one_sound_gzip_member(fixed: list[bytes], own: st.DataObject) -> None:
    parts = own.draw(st.lists(PARTS, min_size=len(fixed) - 1, max_size=len(fixed) - 1))
    body = Template(*fixed).fill(*parts)
    expected = fixed[0] + b"".join(mine + shared for mine, shared in zip(parts, fixed[1:], strict=True))
    assert body.identity() == expected
    assert gzip.decompress(body.gzip()) == expected
    member = zlib.decompressobj(31)
    assert member.decompress(body.gzip()) == expected
    assert member.eof
    assert not member.unused_data


def test_a_large_part_is_checked_by_the_right_sum() -> None:
    body = Template(b"a" * 3_000_000, b"b" * 70_001, b"").fill(b"own", b"")
    assert gzip.decompress(body.gzip()) == body.identity()


def test_a_template_takes_a_part_for_each_gap() -> None:
    with pytest.raises(ValueError, match="1 parts for 2 places"):
        Template(b"", b"", b"").fill(b"")


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [("", None), ("gzip", "gzip"), ("GZIP;q=0.5", "gzip"), ("gzip;q=0", None), ("gzip, br", "br")],
)
def test_encodings_are_those_that_the_client_takes(accepted: str, encoding: str | None) -> None:
    assert Body.plain(b"some text").encode(accepted)[1] == encoding
