"""Whether a site may be asked now: one gate for each site in a process.

A gate is *open*; or *waiting* for a request's turn; or *closed*: the site is blocking us, the
budget of its day is spent (both hold for all workers), or it is unreachable from this worker.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NoReturn

from protego import Protego
from scrapy.exceptions import IgnoreRequest

from moviecrawler.basics.clock import utc_text
from moviecrawler.basics.errors import FrontierError
from moviecrawler.politeness.budgets import UNLIMITED, SiteReply
from moviecrawler.politeness.ledger import Refusal
from moviecrawler.scrapy_internals import end_crawl, is_closing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from scrapy.crawler import Crawler

    from moviecrawler.politeness.budgets import Budget, Condition
    from moviecrawler.politeness.ledger import Ledger

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 0.25
"""Seconds between two checks whether the crawl closes, while a request waits."""
_RETRY_SECONDS = 1.0
"""Seconds until the ledger is tried again after a failure."""
_QUIET_SECONDS = 30.0
_REMINDER_SECONDS = 60.0
"""A wait that is longer than the first is logged, and then each time after the second."""
_FIRST_PROBE_SECONDS = 30.0
"""Seconds after which an unreachable site is tried again; they double each time."""
_VALID_SECONDS = 24 * 3600.0
"""Seconds after which a robots.txt is fetched again, by RFC 9309, 2.4."""
_RENEW_SECONDS = 3600.0
"""Seconds after which it is tried again while an earlier one holds in its place."""
UNREACHABLE = "unreachable/"
"""What the name of a stat begins with that says why a site can't be reached; empty when it can."""
_KEPT_SECONDS = 7 * 24 * 3600.0
"""Seconds for which an earlier robots.txt holds while none is available."""


class Closed(IgnoreRequest):
    """The request was not sent, as the site is closed or the crawl ends. It goes back to the queue.

    It is not an outcome of what was requested, and is not counted.
    """

    def __init__(self, why: str, *, is_put_last: bool = False) -> None:
        super().__init__(why)
        self.is_put_last = is_put_last
        """Whether the request goes to the end of its level, so that others come first."""


class Disallowed(IgnoreRequest):
    """robots.txt forbids a request."""


class UnreachableError(Exception):
    """No robots.txt is available: the host gives no response, or says that it is broken."""


@dataclass(frozen=True, kw_only=True)
class Closure:
    """Why a site is not asked."""

    site: str
    kind: Condition | Literal["unreachable"]
    reason: str
    until: float = math.inf
    """Unix time; infinite where it is not known."""

    @property
    def sentence(self) -> str:
        """Why the site is not asked, and until when."""
        if self.until == math.inf:
            return self.reason
        return f"{self.reason}; {self.site} is paused until {utc_text(self.until)}"


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a site is asked."""

    budget: Budget = UNLIMITED
    is_shared: bool = True
    """Whether the ledger is asked: without a budget, only in a crawl that has joined a run."""
    least_gap_seconds: float = 0.0
    """The DOWNLOAD_DELAY that the operator has set."""
    is_paced: bool = True
    """Whether others run the site, so that its Crawl-delay holds, and it is asked no faster than it
    answers. A replica is."""
    user_agent: str = ""
    obeys_robots: bool = True
    patience_seconds: float = 600.0
    """FRONTIER_PATIENCE."""


@dataclass(frozen=True, kw_only=True)
class _KnownRules:
    """A robots.txt. Times are by the monotonic clock."""

    rules: Protego
    fetched_at: float
    until: float


@dataclass(kw_only=True)
class _Way:
    """How requests leave: through one proxy, or directly."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Requests leave one by one."""
    sent_at: float = -math.inf
    """When the last one left, by the monotonic clock."""
    answer_seconds: float = 0.0
    """How long the last response took."""


@dataclass(frozen=True, eq=False)
class _Wait:
    what: str
    since: float  # by the monotonic clock


class Gate:
    """The gate of one site."""

    def __init__(
        self,
        crawler: Crawler,
        site: str,
        terms: Terms,
        ledger: Ledger,
        fetch_robots: Callable[[str], Awaitable[str]],
        clock: Callable[[], float],
    ) -> None:
        """Make an open gate.

        Args:
            crawler: The crawl that asks.
            site: The site's name.
            terms: How it is asked.
            ledger: What all workers know of it.
            fetch_robots: Returns the text of the robots.txt below a scheme and host; raises
                UnreachableError, or Closed when the response is a refusal.
            clock: Returns the Unix time.
        """
        self.crawler = crawler
        self._log = logging.LoggerAdapter(logger, {"spider": crawler.spider})
        self.site = site
        self.terms = terms
        self.ledger = ledger
        self._fetch_robots = fetch_robots
        self._clock = clock
        self._has_asked = False  # whether the ledger has said anything yet
        self._shared_closure: Closure | None = None
        self._unreachable: Closure | None = None
        self._unreachable_since = 0.0
        self._state = "open"  # as it was logged last
        self._state_since = 0.0  # by the monotonic clock, as all of these times
        self._rules: dict[str, _KnownRules] = {}
        self._rules_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._ways: defaultdict[str, _Way] = defaultdict(_Way)
        self._may_probe = False  # whether the next request is the probe
        self._is_probing = False  # whether the probe's answer is awaited
        self._failing: _Wait | None = None  # the wait for a ledger that fails
        self._waits: list[_Wait] = []
        self._reminded_at = -_REMINDER_SECONDS
        self._reports: set[asyncio.Task[SiteReply]] = set()
        self._probe_task: asyncio.Task[None] | None = None

    # --- Passing ----------------------------------------------------------------------------------

    async def enter(self, url: str, base: str) -> None:
        """Let a request pass that may be sent. It leaves by `take_turn`.

        Args:
            url: The address that is asked.
            base: Its scheme and host.

        Raises:
            Disallowed: robots.txt forbids the address.
            Closed: The site is closed, or the crawl ends.
        """
        is_new = self.terms.is_shared and not self._has_asked
        shared = self._shared_closure
        if is_new or (shared is not None and shared.until <= self._clock()):
            await self.ask()
        self.check_open()
        try:
            await self.check_robots(url, base)
        except UnreachableError as error:
            self.close_as_unreachable(base, str(error))

    async def take_turn(self, base: str, proxy: str = "", *, is_probe: bool = False) -> bool:
        """Wait until a request may leave through a proxy, "" for none, and charge it.

        Args:
            base: Scheme and host of its address.
            proxy: The proxy's name.
            is_probe: Whether it was the probe before it was redirected.

        Returns:
            Whether it is the probe, which finds out whether the site answers again.

        Raises:
            Closed: The site is closed by then, or the crawl ends.
        """
        way = self._ways[proxy]
        async with way.turn:
            self.check_open()
            ready_at = way.sent_at + self._gap(base, way)
            with self._waiting_for(f"the next turn at {base}"):
                await self._sleep(ready_at - _now())
            is_charged = self.terms.budget != UNLIMITED or self._may_probe or self._is_probing
            is_probe = is_charged and await self._charge(is_probe=is_probe)
            self.check_not_refused()  # not whether the budget is spent, perhaps by this request
            if self._unreachable is not None:
                raise Closed(self._unreachable.reason)
            way.sent_at = _now()
            return is_probe

    def check_open(self) -> None:
        """Raise Closed when the site is closed, or the crawl ends."""
        if self.closure is not None:
            raise Closed(self.closure.reason)
        if is_closing(self.crawler.engine):
            raise Closed("the crawl ends")

    def check_not_refused(self) -> None:
        """Raise Closed when the site is blocking us, so that not even a robots.txt is requested."""
        if self._shared_closure is not None and self._shared_closure.kind != "budget_spent":
            raise Closed(self._shared_closure.reason)

    def note_latency(self, proxy: str, seconds: float) -> None:
        """Note how long a response took, which the next request waits, too."""
        self._ways[proxy].answer_seconds = seconds

    def _gap(self, base: str, way: _Way) -> float:
        """Return the seconds between two requests of this worker, by a clock that nobody sets."""
        gap = self.terms.least_gap_seconds
        if self.terms.budget.per_second:
            gap = max(gap, 1 / self.terms.budget.per_second)
        if self.terms.is_paced:
            gap = max(gap, way.answer_seconds)
            if known := self._rules.get(base):
                gap = max(gap, known.rules.crawl_delay(self.terms.user_agent) or 0.0)
        return gap

    async def _charge(self, *, is_probe: bool) -> bool:
        """Charge a request, and wait for its turn; return whether it is the probe."""
        reply = await self.ask(charge=True)
        if reply.state == "probed" and is_probe and self._is_probing:
            return True  # where the probe was redirected to is requested at once
        if reply.blocked:
            self.check_open()
            raise Closed(reply.reason)
        if reply.delay:
            with self._waiting_for(f"the budget of {self.site}"):
                await self._sleep(reply.delay / 1000)
            await self.ask()  # the site may have refused another worker meanwhile
        return reply.probing

    # --- What is known of the site ----------------------------------------------------------------

    @property
    def closure(self) -> Closure | None:
        """Why no request is sent to the site; None while one may be."""
        return self._shared_closure or self._unreachable

    @property
    def unreachable_seconds(self) -> float | None:
        """Seconds since when the site is unreachable; None when it is not."""
        return None if self._unreachable is None else _now() - self._unreachable_since

    async def ask(
        self,
        *,
        charge: bool = False,
        refusal: Refusal | None = None,
        has_answered: bool = False,
    ) -> SiteReply:
        """Ask the ledger until it answers, as `Ledger.ask` does.

        Raises Closed when the crawl ends before that.
        """
        while True:
            try:
                reply = await self.ledger.ask(
                    self.site,
                    self.terms.budget,
                    charge=charge,
                    refusal=refusal,
                    has_answered=has_answered,
                )
            except FrontierError as error:
                self.note_ledger_failure(error)
                await self._sleep(_RETRY_SECONDS)
            else:
                self.update(reply)
                return reply

    def update(self, reply: SiteReply) -> None:
        """Note what the ledger says of the site."""
        self._has_asked = True
        if self._failing is not None:
            self._waits.remove(self._failing)
            self._failing = None
        if self._reports:
            return  # the reply may be older than what this worker is about to report
        self._may_probe = reply.state == "half_open"
        if reply.probing:
            self._is_probing = True
        elif reply.state in {"open", "refused"}:
            self._is_probing = False  # another worker was answered, or refused
        self._shared_closure = self._closure_of(reply)
        self._log_state()

    def _closure_of(self, reply: SiteReply) -> Closure | None:
        if not reply.blocked or (reply.state == "probed" and self._is_probing):
            return None
        reason = reply.reason
        if reply.state == "probed":
            reason = f"{reason}; another worker sends the probe"
        until = self._clock() + reply.blocked / 1000
        return Closure(site=self.site, kind=reply.state, reason=reason, until=until)

    def report_refusal(self, reason: str, pause_seconds: float) -> None:
        """Note that the site is blocking us: no worker requests it for so long, or longer."""
        self._is_probing = False
        until = self._clock() + pause_seconds
        closure = self._shared_closure
        if closure is not None and closure.kind == "refused" and closure.until >= until:
            return
        self._shared_closure = Closure(site=self.site, kind="refused", reason=reason, until=until)
        self._report(self.ask(refusal=Refusal(reason, pause_seconds)))

    def report_success(self) -> None:
        """Note a proper page that answers the probe. It opens the site for all workers."""
        if self._is_probing:
            self._is_probing = False
            self._report(self.ask(has_answered=True))

    def _report(self, report: Coroutine[None, None, SiteReply]) -> None:
        task = asyncio.get_running_loop().create_task(report)
        self._reports.add(task)
        task.add_done_callback(self._note_report)

    def _note_report(self, task: asyncio.Task[SiteReply]) -> None:
        self._reports.discard(task)
        if task.cancelled() or task.exception() is not None:
            self._log.warning("%s: the last report did not reach the queue", self.site)
            self._log_state()
        else:
            self.update(task.result())  # a pause is longer when it follows another one

    def note_ledger_failure(self, error: FrontierError) -> None:
        """End the crawl when the ledger fails for longer than FRONTIER_PATIENCE."""
        self.crawler.stats.inc_value("frontier/errors")
        if self._failing is None:
            self._failing = _Wait("the queue", _now())
            self._waits.append(self._failing)
            self._log.warning("%s; trying again", error)
        patience = self.terms.patience_seconds
        if _now() - self._failing.since >= patience:
            end_crawl(self.crawler, "frontier_unreachable", f"{error}, for {patience:g} s")

    # --- robots.txt -------------------------------------------------------------------------------

    async def check_robots(self, url: str, base: str) -> None:
        """Check that robots.txt allows an address.

        Raises:
            Disallowed: It does not.
            UnreachableError: There is none, and none is available.
            Closed: It can't be requested, as the site is blocking us, or it is refused itself.
        """
        if not self.terms.obeys_robots:
            return
        known = self._rules.get(base)
        if known is None or known.until <= _now():
            with self._waiting_for(f"the robots.txt of {base}"):
                known = await self._renew_rules(base)
        if not known.rules.can_fetch(url, self.terms.user_agent):
            raise Disallowed("by robots.txt")

    async def _renew_rules(self, base: str) -> _KnownRules:
        """Fetch a robots.txt; where none is available, take the last one that was."""
        async with self._rules_locks[base]:
            known = self._rules.get(base)
            if known is not None and known.until > _now():
                return known  # another request has fetched it
            try:
                return await self._fetch_rules(base)
            except UnreachableError:
                known = known or await self._kept_rules(base)
                if known is None or known.fetched_at + _KEPT_SECONDS <= _now():
                    raise
            self._rules[base] = replace(known, until=_now() + _RENEW_SECONDS)
            return self._rules[base]

    async def _fetch_rules(self, base: str, *, is_probe: bool = False) -> _KnownRules:
        """Fetch a robots.txt, and keep it; of an unreachable site only the probe does.

        Raises UnreachableError or Closed.
        """
        if self._unreachable is not None and not is_probe:
            raise UnreachableError(self._unreachable.reason)
        text = await self._fetch_robots(base)
        now = _now()
        rules = Protego.parse(text)
        self._rules[base] = _KnownRules(rules=rules, fetched_at=now, until=now + _VALID_SECONDS)
        if self.terms.is_shared:
            try:
                await self.ledger.keep_robots(base, text)
            except FrontierError as error:
                self.note_ledger_failure(error)
        return self._rules[base]

    async def _kept_rules(self, base: str) -> _KnownRules | None:
        try:
            kept = await self.ledger.read_robots(base) if self.terms.is_shared else None
        except FrontierError as error:
            self.note_ledger_failure(error)
            return None
        if kept is None:
            return None
        age = abs(self._clock() - kept.fetched_at)  # a clock that was ahead makes it no younger
        rules = Protego.parse(kept.text)
        return _KnownRules(rules=rules, fetched_at=_now() - age, until=0.0)

    # --- Whether the site can be reached ----------------------------------------------------------

    async def confirm_reachable(self, base: str, why: str) -> None:
        """Find out whether a host is there, after a request's last attempt got no response.

        Raises:
            Closed: The host gives no robots.txt either: the request was not at fault.
        """
        failed_at = _now()
        if is_closing(self.crawler.engine):
            raise Closed("the crawl ends", is_put_last=True)
        with self._waiting_for(f"the robots.txt of {base}"):
            async with self._rules_locks[base]:
                known = self._rules.get(base)
                if known is not None and known.fetched_at > failed_at:
                    return  # another request has found out
                try:
                    await self._fetch_rules(base)
                except UnreachableError as error:
                    self.close_as_unreachable(base, f"{why}; {error}", is_put_last=True)

    def close_as_unreachable(self, base: str, why: str, *, is_put_last: bool = False) -> NoReturn:
        """Close the gate until a host gives its robots.txt again. Raises Closed."""
        if self._unreachable is None:
            self._unreachable_since = _now()
            since = utc_text(self._clock())
            self.crawler.stats.set_value(UNREACHABLE + self.site, f"{why}, since {since}")
            self._set_unreachable(why)
            probing = self._probe_until_reachable(base)
            self._probe_task = asyncio.get_running_loop().create_task(probing)
        raise Closed(why, is_put_last=is_put_last)

    def _set_unreachable(self, why: str) -> None:
        reason = f"{self.site} can't be reached: {why}"
        self._unreachable = Closure(site=self.site, kind="unreachable", reason=reason)
        self._log_state()

    async def _probe_until_reachable(self, base: str) -> None:
        """Try an unreachable host until it gives a robots.txt, or refuses it, or the crawl ends."""
        pause = _FIRST_PROBE_SECONDS
        is_away = True
        while is_away:
            try:
                await self._sleep(pause)
                await self._fetch_rules(base, is_probe=True)
                is_away = False
            except UnreachableError as error:
                self._set_unreachable(str(error))
                pause *= 2
            except Closed:
                if is_closing(self.crawler.engine):
                    return
                is_away = False  # it is blocking us
        self._unreachable = None
        self.crawler.stats.set_value(UNREACHABLE + self.site, "")
        self._log_state()

    # --- Waiting ----------------------------------------------------------------------------------

    async def _sleep(self, seconds: float) -> None:
        """Sleep; raise Closed, at once, when the crawl ends."""
        until = _now() + seconds
        while (left := until - _now()) > 0:
            if is_closing(self.crawler.engine):
                raise Closed("the crawl ends")
            await asyncio.sleep(min(_CHECK_SECONDS, left))

    @contextmanager
    def _waiting_for(self, what: str) -> Iterator[None]:
        wait = _Wait(what, _now())
        self._waits.append(wait)
        try:
            yield
        finally:
            self._waits.remove(wait)

    @property
    def _longest_wait(self) -> _Wait | None:
        """What requests wait for longest: when the site is closed, that."""
        if self.closure is not None:
            return _Wait(self.closure.sentence, self._state_since)
        return min(self._waits, key=lambda wait: wait.since, default=None)

    def describe_wait(self) -> str:
        """Return what requests wait for longest; empty when none waits."""
        wait = self._longest_wait
        return wait.what if wait is not None else ""

    def log_long_wait(self) -> None:
        """Log what the crawl waits for, once a minute, when that takes longer than 30 s."""
        wait = self._longest_wait
        now = _now()
        is_due = now - self._reminded_at >= _REMINDER_SECONDS
        if wait is not None and is_due and now - wait.since > _QUIET_SECONDS:
            self._reminded_at = now
            self._log.info("Waiting for %.0f s: %s", now - wait.since, wait.what)

    def _log_state(self) -> None:
        """Log the state when it has changed."""
        closure = self.closure
        is_half_open = self._may_probe or self._is_probing
        state = "half-open" if is_half_open else "open"
        if closure is not None:
            state = closure.kind
        if state == self._state:
            return
        self._state = state
        self._state_since = _now()
        if closure is not None:
            self._log.warning("%s", closure.sentence)
        elif is_half_open:
            self._log.info("Probing %s with one request", self.site)
        else:
            self._log.info("%s is no longer paused", self.site)

    async def close(self) -> None:
        """Wait for reports on their way."""
        if self._probe_task is not None:
            self._probe_task.cancel()
        if self._reports:
            await asyncio.wait(self._reports, timeout=_RETRY_SECONDS)


def _now() -> float:
    return asyncio.get_running_loop().time()
