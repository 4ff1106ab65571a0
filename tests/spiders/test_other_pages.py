"""A site that answers with another page than was asked for."""

from __future__ import annotations

import urllib.request
from pathlib import Path

from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import crawl
from tests.middlewares.sites import Site, Told


def test_page_of_another_title_is_stored_for_neither_unless_a_redirect_led_there(tmp_path: Path) -> None:
    first, second, third = (f"/title/{Collection(1, 20).imdb_id(n)}/" for n in range(3))
    with ReplicaProcess(titles=20) as replica, Site() as site:
        page = urllib.request.urlopen(replica.urls["imdb"] + first, timeout=30).read()
        site.answers = {first: Told(body=page), second: Told(body=page), third: Told(301, headers={"Location": first})}
        ids = [path.split("/")[2] for path in (first, second, third)]
        for asked, stored in ((ids[1], []), (ids[2], [ids[0]])):
            finished = crawl("imdb", f"ids={asked}", "via=pages", data=tmp_path, IMDB_URL=site.url)
            assert [movie.site_id for movie in finished.movies] == stored
        assert finished.misses[ids[1]] == "failed"
