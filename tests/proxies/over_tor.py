"""Crawling through a pool of kind tor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.crawling import Finished, crawl_command, scrapy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.https import HttpsFront

_FAST = {"DOWNLOAD_TIMEOUT": "30", "DOWNLOAD_DELAY": "0", "AUTOTHROTTLE_ENABLED": "0"}


def crawl(front: HttpsFront, data: Path, *arguments: str, **settings: str) -> Finished:
    """Crawl what stands at IMDb's place through a pool of kind tor; settings are environment variables."""
    site = {"IMDB_URL": front.url, "SSL_CERT_FILE": str(front.certificate), "PROXY_ORDER": '{"imdb": "tor"}'}
    return scrapy(
        *crawl_command("imdb", "via=pages", *arguments, **_FAST), data=data, replica=None, **{**site, **settings}
    )
