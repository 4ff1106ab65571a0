"""Crawling through a pool of kind tor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.crawling import FAST, Finished, scrapy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.https import HttpsFront

_FAST = {**FAST, "DOWNLOAD_TIMEOUT": "30", "DOWNLOAD_DELAY": "0", "AUTOTHROTTLE_ENABLED": "0"}


def crawl(front: HttpsFront, data: Path, *arguments: str, **settings: str) -> Finished:
    """Crawl what stands at IMDb's place through a pool of kind tor; settings are environment variables."""
    options = [part for name, value in _FAST.items() for part in ("-s", f"{name}={value}")]
    return scrapy(
        *("crawl", "imdb", "-a", "via=pages", *(part for given in arguments for part in ("-a", given)), *options),
        data=data,
        replica=None,
        **{
            "IMDB_URL": front.url,
            "SSL_CERT_FILE": str(front.certificate),
            "PROXY_ORDER": '{"imdb": "tor"}',
            **settings,
        },
    )
