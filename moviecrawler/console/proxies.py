"""`scrapy proxies`: the exits that requests may leave from, how well each serves each site, and trying them."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, get_args
from urllib.parse import urlsplit

import aiohttp
import msgspec
import redis.exceptions
from protego import Protego
from scrapy.exceptions import UsageError

from moviecrawler.console.output import Console
from moviecrawler.errors import ConfigurationError
from moviecrawler.extract.blocks import classify
from moviecrawler.items import Site
from moviecrawler.proxies.health import Figures, Quarantine, state_of
from moviecrawler.proxies.options import ProxyOptions
from moviecrawler.proxies.shared_health import clear_quarantines, read_health
from moviecrawler.redis_client import connect, describe_error, redis_parameters

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from moviecrawler.proxies.pools import Proxy, ProxyPool

_SITES: tuple[Site, ...] = get_args(Site)
_AT_ONCE = 4
_LONGEST = 20.0
"""Seconds that one exit may take for a check, when DOWNLOAD_TIMEOUT is not less."""
_LARGEST = 4 * 1024 * 1024
_SERVER_ERROR = 500
_HEADINGS = ("exit", "kind", "site", "requests", "answered", "refused", "failed", "latency", "state")


@dataclass(slots=True)
class Row:
    """How one exit serves one site, by the last 24 hours."""

    exit: str
    kind: str
    site: str | None
    """None where the exit has been used for no site."""
    successes: int = 0
    failures: int = 0
    bans: int = 0
    latency: float | None = None
    """Mean seconds of a success."""
    state: str = "unused"
    """`well`, `quarantined` or `recovering` (its quarantine is over, and it has yet to be tried); `unused`."""
    until: float | None = None
    """When the quarantine ends, in seconds since 1970."""
    strikes: int = 0
    """Quarantines in a row, which make the next one longer."""
    reason: str | None = None


class Proxies(Console):
    """A table of exits; `clear` ends quarantines, and `check` asks for one URL from every exit."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do one of the three; exit code 1 when Redis can't be asked, or when an exit does not get an answer."""
        action, *rest = args or ["show"]
        try:
            self._options = ProxyOptions.from_settings(self.settings)
            if action == "show":
                asyncio.run(self._show(as_json=opts.json))
            elif action == "clear":
                asyncio.run(self._clear(self._named(rest)))
            elif action == "check" and rest and urlsplit(rest[0]).scheme in {"http", "https"}:
                asyncio.run(self._check(rest[0], self._named(rest[1:]), as_json=opts.json))
            else:
                raise UsageError("give nothing, `clear`, or `check` and a URL", print_help=False)
        except ConfigurationError as error:
            raise UsageError(str(error), print_help=False) from None
        except redis.exceptions.RedisError as error:
            self._fail(f"Redis at REDIS_URL can't be asked: {describe_error(error)}")

    def _exits(self) -> Iterator[tuple[ProxyPool, Proxy]]:
        """Yield the exits of all pools; this machine's own address only where a site may be asked from it by PROXY_ORDER."""
        used = {pool.name for order in self._options.orders.values() for pool in order}
        for pool in self._options.pools.values():
            if pool.kind != "direct" or pool.name in used:
                for exit_ in pool.proxies:
                    yield pool, exit_

    def _named(self, names: list[str]) -> list[tuple[ProxyPool, Proxy]]:
        """Return the exits of these names, or of these pools; all when there are none."""
        known = [(pool, exit_) for pool, exit_ in self._exits() if not names or {exit_.name, pool.name} & set(names)]
        unknown = set(names) - {name for pool, exit_ in known for name in (pool.name, exit_.name)}
        if unknown:
            raise UsageError(f"there is no exit {', '.join(sorted(unknown))}", print_help=False)
        return known

    # --- Table ---------------------------------------------------------------------------------------------------------

    async def _show(self, *, as_json: bool) -> None:
        rows = await self._rows()
        if as_json:
            for row in rows:
                sys.stdout.buffer.write(msgspec.json.encode(asdict(row)) + b"\n")
            sys.stdout.buffer.flush()
            return
        cells = [_HEADINGS, *(_cells(row, time.time()) for row in rows)]
        widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADINGS))]
        for line in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        if not self.settings.get("REDIS_URL"):
            print(
                "REDIS_URL is not set: every crawl keeps what it learns of its exits to itself, and forgets it at its end",
                file=sys.stderr,
            )

    async def _rows(self) -> list[Row]:
        url = self.settings.get("REDIS_URL")
        exits = {exit_.id: exit_ for _, exit_ in self._exits()}
        rows: list[Row] = []
        if url:
            client = connect(url, **redis_parameters(self.settings))
            try:
                for site in _SITES:
                    now, figures, quarantines = await read_health(client, site)
                    for exit_id in {**figures, **quarantines}:
                        exit_ = exits.get(exit_id)
                        name, kind = (exit_.name, exit_.kind) if exit_ else self._label(exit_id)
                        row = Row(name, kind, site)
                        _fill(row, now, figures.get(exit_id, Figures()), quarantines.get(exit_id))
                        rows.append(row)
            finally:
                await client.aclose()
        used = {row.exit for row in rows}
        rows += [Row(exit_.name, exit_.kind, None) for exit_ in exits.values() if exit_.name not in used]
        places = {exit_.name: place for place, exit_ in enumerate(exits.values())}
        return sorted(rows, key=lambda row: (places.get(row.exit, len(places)), row.exit, row.site or ""))

    def _label(self, exit_id: str) -> tuple[str, str]:
        """Return the name and the kind of an exit that only other nodes have, such as their own addresses, or had."""
        pool = self._options.pools.get(exit_id.partition("@")[0].partition(":")[0])
        return exit_id, pool.kind if pool else "?"

    # --- Clear ---------------------------------------------------------------------------------------------------------

    async def _clear(self, exits: list[tuple[ProxyPool, Proxy]]) -> None:
        url = self.settings.get("REDIS_URL")
        if not url:
            raise UsageError("REDIS_URL is not set; without it a crawl's quarantines end with it", print_help=False)
        client = connect(url, **redis_parameters(self.settings))
        try:
            for site in _SITES:
                _, _, quarantines = await read_health(client, site)
                # Also of exits that are only other nodes', when all are meant.
                ids = {exit_.id: exit_.name for _, exit_ in exits}
                if len(exits) == sum(1 for _ in self._exits()):
                    ids = {**{exit_id: exit_id for exit_id in quarantines}, **ids}
                for exit_id in [exit_id for exit_id in quarantines if exit_id in ids]:
                    await clear_quarantines(client, site, [exit_id])
                    print(f"{ids[exit_id]} may be used for {site} again")
        finally:
            await client.aclose()

    # --- Check ---------------------------------------------------------------------------------------------------------

    async def _check(self, url: str, exits: list[tuple[ProxyPool, Proxy]], *, as_json: bool) -> None:
        """Ask for a URL once from each exit, some at a time, where its robots.txt allows that."""
        agent = self.settings["USER_AGENT"]
        places = asyncio.Semaphore(_AT_ONCE)
        timeout = aiohttp.ClientTimeout(total=min(_LONGEST, self.settings.getfloat("DOWNLOAD_TIMEOUT")))
        async with aiohttp.ClientSession(
            timeout=timeout, headers={"User-Agent": agent}, trust_env=True, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            parts = urlsplit(url)
            robots = await self._robots(session, f"{parts.scheme}://{parts.netloc}/robots.txt", exits)
            if robots is not None and not robots.can_fetch(url, agent):
                self._fail(f"robots.txt of {parts.netloc} does not allow {url}")
                return

            async def try_one(pool: ProxyPool, exit_: Proxy) -> None:
                async with places:
                    began = time.monotonic()
                    status, told, _ = await _ask(session, url, pool, exit_)
                seconds = time.monotonic() - began
                if told != "answered":
                    self.exitcode = 1
                if as_json:
                    line = {"exit": exit_.name, "status": status, "outcome": told, "seconds": round(seconds, 3)}
                    print(msgspec.json.encode(line).decode())
                else:
                    print(f"{exit_.name:24} {status or '-':>4} {seconds:6.2f} s  {told}")

            async with asyncio.TaskGroup() as tasks:
                for pool, exit_ in exits:
                    tasks.create_task(try_one(pool, exit_))

    async def _robots(
        self, session: aiohttp.ClientSession, url: str, exits: Iterable[tuple[ProxyPool, Proxy]]
    ) -> Protego | None:
        """Return the site's robots.txt from the first exit that gets one; None when the site has none, or nobody does."""
        for pool, exit_ in exits:
            status, told, body = await _ask(session, url, pool, exit_)
            if status is not None and told == "answered" and status < _SERVER_ERROR:
                return Protego.parse(body.decode("utf-8-sig", "replace")) if status == 200 else None  # noqa: PLR2004 - OK
        return None

    def _fail(self, sentence: str) -> None:
        print(f"scrapy proxies: {sentence}", file=sys.stderr)
        self.exitcode = 1


def _fill(row: Row, now: float, figures: Figures, quarantine: Quarantine | None) -> None:
    row.successes, row.failures, row.bans = figures.successes, figures.failures, figures.bans
    row.latency = None if figures.latency is None else round(figures.latency, 3)
    row.state = state_of(quarantine, now)
    if quarantine is not None:
        row.strikes = quarantine.strikes
        if row.state != "well":
            row.until, row.reason = quarantine.until, quarantine.reason


def _cells(row: Row, now: float) -> tuple[str, ...]:
    requests = row.successes + row.failures + row.bans
    state = row.state
    if row.until is not None and row.state == "quarantined":
        state = f"quarantined for {max(row.until - now, 0) / 60:.0f} min: {row.reason}"
    return (
        *(row.exit, row.kind, row.site or "-", f"{requests:,}"),
        f"{row.successes / requests:.0%}" if requests else "-",
        *(f"{row.bans:,}", f"{row.failures:,}"),
        "-" if row.latency is None else f"{row.latency:.2f} s",
        state,
    )


async def _ask(
    session: aiohttp.ClientSession, url: str, pool: ProxyPool, exit_: Proxy
) -> tuple[int | None, str, bytes]:
    """Return an answer's status, what it is in a few words, and its body. No words of a proxy's own are shown."""
    if not pool.takes(url):
        return None, "this pool takes https only", b""
    route = pool.route(exit_)
    auth = None
    if route.authorization is not None:
        auth = aiohttp.BasicAuth.decode(route.authorization.decode(), "utf-8")
    try:
        async with session.get(url, proxy=route.url, proxy_auth=auth, allow_redirects=False) as response:
            try:
                body = await response.content.readexactly(_LARGEST)
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
