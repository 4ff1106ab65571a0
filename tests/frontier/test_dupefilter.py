from __future__ import annotations

from scrapy import Request

from moviecrawler.frontier.dupefilter import fingerprint


def test_pages_have_fingerprints_of_their_own() -> None:
    pages = [Request(f"https://www.imdb.com/title/tt{number:07}/") for number in range(1000)]
    assert len({fingerprint(page) for page in pages}) == 1000
    assert all(len(fingerprint(page)) == 32 for page in pages)


def test_fingerprint_knows_the_site_of_a_replica() -> None:
    plain = Request("http://127.0.0.1:8000/title/tt0000001/", meta={"site": "imdb"})
    assert fingerprint(plain) == fingerprint(plain.replace(url=plain.url + "?ref_=x"))
