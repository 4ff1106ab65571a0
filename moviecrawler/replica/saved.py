"""Saved pages, served under the addresses that they were saved from."""

from __future__ import annotations

import csv
import functools
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.sources import JSON, Answer
from moviecrawler.sites import SITES
from moviecrawler.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from moviecrawler.items import Site

_Key = tuple["Site", str, tuple[tuple[str, str], ...]]


class SavedPages:
    """The pages of a folder whose INDEX.tsv names for each `file` its `url`, when it was `captured`, and its `kind`.

    Of several files for one address the newest is served: "2025-12" is newer than "<=2025-12", and of equals the last.
    Pages of all of a site's hosts are on that site's port. Bodies of redirects are left out, as they are no answers by
    themselves. A file of bare JSON whose address is that of a page is put back into its script.
    """

    def __init__(self, folder: Path) -> None:
        """Read the index. Raises ConfigurationError when it can't be read."""
        self._folder = folder
        index = folder / "INDEX.tsv"
        self._files: dict[_Key, tuple[str, str]] = {}
        try:
            with index.open(encoding="utf-8", newline="") as lines:
                rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
            for row in sorted(rows, key=_age):
                site, address = site_of(row["url"]), urlsplit(row["url"])
                if site is not None and row["kind"] != "redirect":
                    query = parse_qsl(address.query, keep_blank_values=True)
                    self._files[_key(site, address.path, query)] = row["file"], row["url"]
        except (OSError, KeyError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"--pages is {str(folder)!r}, but {index} can't be read ({error!r}); give a folder with an INDEX.tsv that "
                "has the columns file, kind, url and captured"
            ) from error

    def answer(self, site: Site, path: str, query: Mapping[str, str], host: str) -> Answer | None:
        """Return the newest page that was saved from an address, or None; see `Generated.answer`."""
        del host  # links in saved pages stay as they are
        found = self._files.get(_key(site, path, query.items()))
        return None if found is None else self._read(site, *found)

    @functools.lru_cache(maxsize=64)  # noqa: B019 - one folder is served as long as the process lives
    def _read(self, site: Site, file: str, url: str) -> Answer:
        content = (self._folder / file).read_bytes()
        is_page = urlsplit(url).netloc == urlsplit(SITES[site].home).netloc and not urlsplit(url).path.endswith(".json")
        if not is_page:
            return Answer(content, JSON)
        if content[:1] in {b"{", b"["}:
            name = b"__NUXT_DATA__" if content.startswith(b"[") else b"__NEXT_DATA__"
            content = b'<script id="%b" type="application/json">%b</script>' % (name, content.strip())
        return Answer(content)


def _age(row: Mapping[str, str]) -> tuple[str, bool]:
    return row["captured"].removeprefix("<="), not row["captured"].startswith("<=")


def _key(site: Site, path: str, query: Iterable[tuple[str, str]]) -> _Key:
    return site, path.rstrip("/"), tuple(sorted(query))
