"""`scrapy proxies`: how each site answers through each proxy, and checking the proxies."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
from protego import Protego

from moviecrawler.console.output import Console, print_json, print_table
from moviecrawler.errors import ConfigurationError
from moviecrawler.extract.blocks import classify
from moviecrawler.frontier.report import asking
from moviecrawler.proxies.health import Figures
from moviecrawler.proxies.report import configured_proxies, read_proxies
from moviecrawler.proxies.shared_health import clear_quarantines
from moviecrawler.proxies.site_pools import SitePools

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from moviecrawler.proxies.pools import Proxy, ProxyPool
    from moviecrawler.proxies.report import ProxyReport

_CHECKS_AT_ONCE = 4
_MAX_CHECK_SECONDS = 20.0
"""Seconds that one proxy may take for a check, when DOWNLOAD_TIMEOUT is not less."""
_MAX_BODY_BYTES = 4 * 1024 * 1024
_SERVER_ERROR = 500
_HEADINGS = ("proxy", "kind", "site", "requests", "answered", "refused", "failed", "latency", "state")


class Proxies(Console):
    """A table of proxies; `clear` ends quarantines, and `check` asks for one URL through every proxy."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run one of the three; exit code 1 when Redis can't be reached, or when a proxy gets no answer."""
        action, *rest = args or ["show"]
        self._site_pools = SitePools.from_settings(self.settings)
        if action == "show":
            asyncio.run(self._show(as_json=opts.json))
        elif action == "clear":
            asyncio.run(self._clear(self._select(rest), everything=not rest))
        elif action == "check" and rest and urlsplit(rest[0]).scheme in {"http", "https"}:
            asyncio.run(self._check(rest[0], self._select(rest[1:]), as_json=opts.json))
        else:
            raise ConfigurationError("give nothing, `clear`, or `check` and a URL")

    def _select(self, names: list[str]) -> list[tuple[ProxyPool, Proxy]]:
        """Return the proxies of these names, or of these pools; all when there are none."""
        configured = configured_proxies(self._site_pools)
        known = [(pool, proxy) for pool, proxy in configured if not names or {proxy.name, pool.name} & set(names)]
        unknown = set(names) - {name for pool, proxy in known for name in (pool.name, proxy.name)}
        if unknown:
            raise ConfigurationError(f"there is no proxy {', '.join(sorted(unknown))}")
        return known

    # --- Table ---------------------------------------------------------------------------------------------------------

    async def _show(self, *, as_json: bool) -> None:
        if self.settings.get("REDIS_URL"):
            async with asking(self.settings) as client:
                reports = await read_proxies(client, self._site_pools)
        else:
            reports = {}
            print(
                "REDIS_URL is not set: every crawl keeps what it learns of its proxies to itself, and forgets it at its end",
                file=sys.stderr,
            )
        used = [
            (site, one)
            for site, of_site in reports.items()
            for one in of_site
            if one.figures.requests or one.quarantine
        ]
        proxies = [proxy for _, proxy in configured_proxies(self._site_pools)]
        rows = [_row(one.name, one.kind or "?", site, one) for site, one in used]
        rows += [_row(proxy.name, proxy.kind, None) for proxy in proxies if proxy.id not in {one.id for _, one in used}]
        places = {proxy.name: place for place, proxy in enumerate(proxies)}
        rows.sort(key=lambda row: (places.get(row["exit"], len(places)), row["exit"], row["site"] or ""))
        if as_json:
            for row in rows:
                print_json(row)
        else:
            print_table([_HEADINGS, *(_cells(row, time.time()) for row in rows)])

    # --- Clear ---------------------------------------------------------------------------------------------------------

    async def _clear(self, named: list[tuple[ProxyPool, Proxy]], *, everything: bool) -> None:
        if not self.settings.get("REDIS_URL"):
            raise ConfigurationError("REDIS_URL is not set; without it a crawl's quarantines end with it")
        ids = {proxy.id for _, proxy in named}
        async with asking(self.settings) as client:
            for site, reports in (await read_proxies(client, self._site_pools)).items():
                for one in reports:
                    # Without names, also those that only other nodes have.
                    if one.quarantine is not None and (everything or one.id in ids):
                        await clear_quarantines(client, site, [one.id])
                        print(f"{one.name} may be used for {site} again")

    # --- Check ---------------------------------------------------------------------------------------------------------

    async def _check(self, url: str, proxies: list[tuple[ProxyPool, Proxy]], *, as_json: bool) -> None:
        """Fetch a URL once through each proxy, some at a time, if robots.txt allows it."""
        agent = self.settings["USER_AGENT"]
        places = asyncio.Semaphore(_CHECKS_AT_ONCE)
        timeout = aiohttp.ClientTimeout(total=min(_MAX_CHECK_SECONDS, self.settings.getfloat("DOWNLOAD_TIMEOUT")))
        async with aiohttp.ClientSession(
            timeout=timeout, headers={"User-Agent": agent}, trust_env=True, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            parts = urlsplit(url)
            robots = await self._robots(session, f"{parts.scheme}://{parts.netloc}/robots.txt", proxies)
            if robots is not None and not robots.can_fetch(url, agent):
                self.fail(f"robots.txt of {parts.netloc} does not allow {url}")
                return

            async def try_one(pool: ProxyPool, proxy: Proxy) -> None:
                async with places:
                    began = time.monotonic()
                    status, outcome, _ = await _fetch(session, url, pool, proxy)
                seconds = time.monotonic() - began
                if outcome != "answered":
                    self.exitcode = 1
                if as_json:
                    line = {"exit": proxy.name, "status": status, "outcome": outcome, "seconds": round(seconds, 3)}
                    print_json(line)
                else:
                    print(f"{proxy.name:24} {status or '-':>4} {seconds:6.2f} s  {outcome}")

            async with asyncio.TaskGroup() as tasks:
                for pool, proxy in proxies:
                    tasks.create_task(try_one(pool, proxy))

    async def _robots(
        self, session: aiohttp.ClientSession, url: str, proxies: Iterable[tuple[ProxyPool, Proxy]]
    ) -> Protego | None:
        """Return the site's robots.txt from the first proxy that gets an answer; None when the site has none, or no proxy gets an answer."""
        for pool, proxy in proxies:
            status, outcome, body = await _fetch(session, url, pool, proxy)
            if status is not None and outcome == "answered" and status < _SERVER_ERROR:
                return Protego.parse(body.decode("utf-8-sig", "replace")) if status == 200 else None  # noqa: PLR2004 - OK
        return None


def _row(name: str, kind: str, site: str | None, report: ProxyReport | None = None) -> dict[str, Any]:
    """Return the row of a proxy and a site; `site` is None for a proxy that was not used."""
    figures, quarantine = (report.figures, report.quarantine) if report is not None else (Figures(), None)
    resting = quarantine if report is not None and report.state != "well" else None
    return {
        "exit": name,
        "kind": kind,
        "site": site,
        "successes": figures.successes,
        "failures": figures.failures,
        "bans": figures.bans,
        "latency": None if figures.latency is None else round(figures.latency, 3),
        "state": "unused" if report is None else report.state,
        "until": resting and resting.until,
        "strikes": quarantine.strikes if quarantine is not None else 0,
        "reason": resting and resting.reason,
    }


def _cells(row: dict[str, Any], now: float) -> tuple[str, ...]:
    requests = row["successes"] + row["failures"] + row["bans"]
    state = row["state"]
    if state == "quarantined":
        state = f"quarantined for {max(row['until'] - now, 0) / 60:.0f} min: {row['reason']}"
    return (
        *(row["exit"], row["kind"], row["site"] or "-", f"{requests:,}"),
        f"{row['successes'] / requests:.0%}" if requests else "-",
        *(f"{row['bans']:,}", f"{row['failures']:,}"),
        "-" if row["latency"] is None else f"{row['latency']:.2f} s",
        state,
    )


async def _fetch(
    session: aiohttp.ClientSession, url: str, pool: ProxyPool, proxy: Proxy
) -> tuple[int | None, str, bytes]:
    """Return an answer's status, its outcome in a few words of our own, and its body."""
    if not pool.accepts(url):
        return None, "this pool takes https only", b""
    route = pool.route(proxy)
    auth = None
    if route.authorization is not None:
        auth = aiohttp.BasicAuth.decode(route.authorization.decode(), "utf-8")
    try:
        async with session.get(url, proxy=route.url, proxy_auth=auth, allow_redirects=False) as response:
            try:
                body = await response.content.readexactly(_MAX_BODY_BYTES)
            except asyncio.IncompleteReadError as end:
                body = end.partial
            headers = {name.lower(): value for name, value in response.headers.items()}
            status = response.status
    except aiohttp.ClientHttpProxyError as error:
        return error.status, f"{error.status} from the proxy", b""
    except TimeoutError:
        return None, "timeout", b""
    except (aiohttp.ClientError, OSError) as error:
        return (
            None,
            {"ClientProxyConnectionError": "the proxy is not there"}.get(type(error).__name__, "no answer"),
            b"",
        )
    if route.url is not None and status == 407:  # noqa: PLR2004 - HTTP's own number
        return status, "407 from the proxy", b""
    refusal = classify(status, headers, body, expects="other", now=time.time())
    if refusal is not None:
        return status, f"{refusal.kind.replace('_', ' ')} ({refusal.reason})", body
    return status, "answered" if status < _SERVER_ERROR else "error", body
