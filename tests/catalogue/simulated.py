"""Weeks of crawling three sites with a clock of its own: what the lanes make of a catalogue, day by day.

The catalogue is a handful of heaps in memory; `catalogue.lanes` decides, and what it promises is checked here against
what was fetched when, not by its own rules.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import get_args

from moviecrawler.catalogue import lanes
from moviecrawler.catalogue.rows import Outcome
from moviecrawler.items import Site
from tests.catalogue import model
from tests.catalogue.model import SiteState

START = datetime(2026, 11, 1, tzinfo=UTC)
HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
SITES: tuple[Site, ...] = get_args(Site)
HAS: dict[Site, float] = {"imdb": 1.0, "rottentomatoes": 0.85, "metacritic": 0.6}
"""Part of the titles that a site has."""
FAILS = 0.02
"""Part of the pages that fail."""
FRESH = 0.02
"""Part of the titles that are younger than 180 days."""
QUEUES = ("boosted", "unread", "stale")
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True, kw_only=True, frozen=True)
class Scenario:
    titles: int = 100_000
    days: int = 30
    budgets: dict[Site, int] = field(
        default_factory=lambda: {"imdb": 30_000, "rottentomatoes": 5_000, "metacritic": 600}
    )
    """Pages a day."""
    boosts: int = 40
    """Titles that are boosted a day, each at its hour."""
    trending: int = 100
    """Titles on the day's lists, of which a fifth are new each day."""
    arrivals: int = 50
    """New titles a day, of any popularity."""
    running: int = 1_500
    """Series that run, of any popularity."""
    premieres: int = 20
    """Seasons that start to air a day, each at its hour, of series that have been read."""
    blocked: tuple[Site, int, int] = ("imdb", 200, 236)
    """A site, and the hours between which it refuses everything."""
    batch: int = 25
    """Titles that are claimed at once."""
    seed: int = 1


@dataclass(slots=True)
class Figures:
    """What was seen of one site."""

    fetched: Counter[str] = field(default_factory=Counter)
    """Pages by queue."""
    busiest_day: int = 0
    popular_read_after: timedelta | None = None
    """When each of the most popular hundredth of the titles that were there from the start had been asked for."""
    ahead_of_popular: int = 0
    """Pages fetched again while a more popular title had never been fetched."""
    boosts: int = 0
    boost_waited: timedelta = timedelta()
    """The longest from a boost until the page was fetched, while the site answered."""
    twice_a_week: int = 0
    """Pages that were fetched for a boost twice within seven days, those aside that failed."""
    premieres: int = 0
    premiere_waited: timedelta = timedelta()
    """The longest from the start of a season until the page of its series was fetched, failures and refusals aside."""
    overdue: timedelta = timedelta()
    """How long past its day a page was that was fetched, at most."""
    still_overdue: timedelta = timedelta()
    """The same, of those that still wait at the end."""
    fewest_unread: int | None = None
    """Titles that were fetched for the first time on one day, at least, while more of them waited."""
    unread: int = 0
    """Titles that were never asked for, at the end."""


class Shelf:
    """A queue of states by a key. A state that has changed is put here again; what was put before is then dropped."""

    def __init__(self, key: Callable[[SiteState], tuple[object, ...]]) -> None:
        self.key = key
        self.heap: list[tuple[tuple[object, ...], int, SiteState]] = []
        self.number = 0

    def put(self, state: SiteState) -> None:
        self.number += 1
        heapq.heappush(self.heap, (self.key(state), self.number, state))

    def take(self, size: int, belongs: Callable[[SiteState], bool]) -> list[SiteState]:
        """Take out the first states that belong here."""
        found: dict[int, SiteState] = {}
        while self.heap and len(found) < size:
            key, _, state = heapq.heappop(self.heap)
            if belongs(state) and key == self.key(state):
                found[state.title_id] = state
        return list(found.values())


class OneSite:
    """What waits on one site, and what was fetched from it."""

    def __init__(self, site: Site, scenario: Scenario, popular: set[int]) -> None:
        self.site = site
        self.scenario = scenario
        self.random = random.Random(f"{scenario.seed} {site}")  # noqa: S311 - repeatable
        self.round_robin = lanes.DeficitRoundRobin()
        self.boosted, self.unread, self.stale = map(Shelf, (model.boosted_order, model.unread_order, model.stale_order))
        self.later: list[tuple[datetime, int, SiteState]] = []
        self.states: dict[int, SiteState] = {}
        self.popular = popular
        self.asked: set[int] = set()
        self.wanted_since: dict[int, datetime] = {}
        self.begun: dict[int, datetime] = {}
        """When a season of a series started to air that the site was not asked for since."""
        self.answered: dict[int, datetime] = {}
        self.boost_answered: dict[int, datetime] = {}
        self.credit = 0.0
        self.today: Counter[str] = Counter()
        self.figures = Figures()

    def add(self, title_id: int, popularity: float, released: date, *, airs: bool = False) -> None:
        state = SiteState(
            title_id=title_id,
            site=self.site,
            state="never",
            popularity=popularity,
            next_due=LONG_AGO,
            released=released,
            airs=airs,
        )
        self.states[title_id] = state
        self.unread.put(state)

    def boost(self, title_id: int, by: float, last_round: datetime | None, now: datetime) -> None:
        state = self.states[title_id]
        if state.boost == 0 or state.boost_due is None:
            due = model.boost_due(last_round, self.answered.get(title_id), now)
            state.boost_due = due if state.boost_due is None else min(due, state.boost_due)
            self.figures.boosts += 1
            self.wanted_since[title_id] = due
        state.boost += by
        self.wait(state, now)

    def season_starts(self, title_id: int, now: datetime) -> None:
        if self.states[title_id].last_success is not None:
            self.begun.setdefault(title_id, now)
            self.figures.premieres += 1

    def wait(self, state: SiteState, now: datetime) -> None:
        """Put a state that has changed where it is found in time."""
        for due, shelf in (
            (state.boost_due, self.boosted),
            (state.next_due, self.unread if model.is_unread(state) else self.stale),
        ):
            if due is not None and due <= now:
                shelf.put(state)
            elif due is not None:
                heapq.heappush(self.later, (due, state.title_id, state))

    def hour(self, now: datetime) -> None:
        """Fetch what the budget allows in an hour."""
        while self.later and self.later[0][0] <= now:
            self.wait(heapq.heappop(self.later)[2], now)
        hours = (now - START) // HOUR
        site, first, last = self.scenario.blocked
        if site == self.site and first <= hours < last:
            self.today["refused"] += 1
            # What waits for a boost is not late: it counts from when the site answers again.
            for title_id in self.wanted_since:
                self.wanted_since[title_id] = max(self.wanted_since[title_id], START + last * HOUR)
            self.begun.clear()
        else:
            self.spend(now)
        if hours % 24 == 23:
            self.day_ends(now)

    def spend(self, now: datetime) -> None:
        self.credit += self.scenario.budgets[self.site] / 24
        while self.credit >= 1:
            size = min(self.scenario.batch, int(self.credit))
            batch = self.claim(size, now)
            if not batch:
                self.credit = 0.0
                return
            self.credit -= len(batch)
            for state in batch:
                self.fetch(state, now)

    def day_ends(self, now: datetime) -> None:
        self.figures.fetched += self.today
        self.figures.busiest_day = max(self.figures.busiest_day, sum(self.today[queue] for queue in QUEUES))
        waiting = any(model.is_unread(state) and state.next_due <= now for _, _, state in self.unread.heap)
        if waiting and not self.today["refused"]:
            fewest = self.figures.fewest_unread
            self.figures.fewest_unread = self.today["unread"] if fewest is None else min(fewest, self.today["unread"])
        self.today.clear()

    def claim(self, size: int, now: datetime) -> list[SiteState]:
        boosted = self.boosted.take(size, lambda state: state.boost_due is not None and state.boost_due <= now)
        unread = self.unread.take(size, lambda state: model.is_unread(state) and state.next_due <= now)
        stale = self.stale.take(size, lambda state: not model.is_unread(state) and state.next_due <= now)
        chosen = lanes.choose(size, boosted=boosted, unread=unread, stale=stale, round_robin=self.round_robin, now=now)
        taken = {state.title_id for state in chosen}
        for shelf, states in ((self.boosted, boosted), (self.unread, unread), (self.stale, stale)):
            for state in states:
                if state.title_id not in taken:
                    shelf.put(state)
        self.look(chosen, {state.title_id for state in boosted}, unread, now)
        return chosen

    def look(self, chosen: list[SiteState], boosted: set[int], unread: list[SiteState], now: datetime) -> None:
        """Count what is about to be fetched, and whether somebody more popular waits behind it."""
        taken = {state.title_id for state in chosen}
        passed_over = max((state.popularity for state in unread if state.title_id not in taken), default=-1.0)
        for state in chosen:
            queue = "boosted" if state.title_id in boosted else "unread" if model.is_unread(state) else "stale"
            self.today[queue] += 1
            if queue == "stale":
                self.figures.overdue = max(self.figures.overdue, now - state.next_due)
                is_patient = now - state.next_due < lanes.PATIENCE
                self.figures.ahead_of_popular += is_patient and state.popularity < passed_over

    def fetch(self, state: SiteState, now: datetime) -> None:
        """Ask the site for a title, and note what it says."""
        self.asked.add(state.title_id)
        if self.figures.popular_read_after is None and self.popular <= self.asked:
            self.figures.popular_read_after = now - START
        has_it = random.Random(f"{state.title_id} {self.site}").random() < HAS[self.site]  # noqa: S311 - repeatable
        outcome: Outcome = "error" if self.random.random() < FAILS else "ok" if has_it else "absent"
        if state.title_id in self.wanted_since and self.wanted_since[state.title_id] <= now and outcome != "error":
            before = self.boost_answered.get(state.title_id)
            self.figures.twice_a_week += before is not None and now - before < WEEK
            self.boost_answered[state.title_id] = now
        if outcome != "error":
            self.answered[state.title_id] = now
        state.state = outcome
        state.failures = state.failures + 1 if outcome == "error" else 0
        state.next_due = lanes.next_due(
            outcome, now=now, released=state.released, failures=state.failures, airs=state.airs
        )
        state.boost_due = lanes.boost_left(
            outcome, boost_due=state.boost_due, next_due=state.next_due, failures=state.failures, airs=state.airs
        )
        since = self.begun.pop(state.title_id, None)
        if since is not None and outcome == "ok":
            self.figures.premiere_waited = max(self.figures.premiere_waited, now - since)
        if outcome == "ok":
            state.last_success = now
        since = self.wanted_since.pop(state.title_id, None)
        if since is not None:
            self.figures.boost_waited = max(self.figures.boost_waited, now - since)
        if state.boost_due is None or outcome in {"ok", "absent"}:
            state.boost = 0.0
        self.wait(state, now)

    def end(self, now: datetime) -> Figures:
        for state in self.states.values():
            if state.title_id not in self.asked:
                self.figures.unread += 1
            elif not model.is_unread(state):
                self.figures.still_overdue = max(self.figures.still_overdue, now - state.next_due)
        for since in self.wanted_since.values():
            self.figures.boost_waited = max(self.figures.boost_waited, now - since)
        for since in self.begun.values():
            self.figures.premiere_waited = max(self.figures.premiere_waited, now - since)
        return self.figures


def simulate(scenario: Scenario) -> dict[Site, Figures]:
    """Return what happens on each site in so many days."""
    chance = random.Random(scenario.seed)  # noqa: S311 - repeatable
    popularities = [round(100 * chance.random() ** 4, 1) for _ in range(scenario.titles)]
    by_popularity = sorted(range(scenario.titles), key=lambda title: -popularities[title])
    popular = set(by_popularity[: scenario.titles // 100])
    sites = [OneSite(site, scenario, popular) for site in SITES]
    rounds: dict[int, datetime] = {}

    def add(title_id: int, popularity: float, released: date) -> None:
        for site in sites:
            site.add(title_id, popularity, released, airs=title_id in running)

    def boost(title_id: int, by: float, now: datetime) -> None:
        last_round = rounds.get(title_id)
        for site in sites:
            site.boost(title_id, by, last_round, now)
        rounds[title_id] = model.boost_round(last_round, now)

    running = set(random.Random(f"{scenario.seed} series").sample(range(scenario.titles), scenario.running))  # noqa: S311
    seasons = random.Random(f"{scenario.seed} seasons")  # noqa: S311 - repeatable
    of_series = sorted(running)
    for title_id, popularity in enumerate(popularities):
        age = chance.randrange(180) if chance.random() < FRESH else chance.randrange(180, 30_000)
        add(title_id, popularity, START.date() - age * DAY)
    number = scenario.titles
    trending = chance.sample(range(number), scenario.trending)
    for hour in range(24 * scenario.days):
        now = START + hour * HOUR
        if hour % 24 == 0:
            for _ in range(scenario.arrivals):
                add(number, round(100 * chance.random(), 1), now.date())
                number += 1
            kept = trending[len(trending) // 5 :]
            trending = [*kept, *chance.sample(range(number), scenario.trending - len(kept))]
            for place, title_id in enumerate(trending):
                boost(title_id, 1 + (scenario.trending - place) / scenario.trending, now)
        for _ in range(_in_hour(scenario.boosts, hour)):
            boost(chance.randrange(number), chance.random() * 10, now)
        for _ in range(_in_hour(scenario.premieres, hour)):
            begins = seasons.choice(of_series)
            for site in sites:
                site.season_starts(begins, now)
        for site in sites:
            site.hour(now)
    return {site.site: site.end(START + scenario.days * DAY) for site in sites}


def _in_hour(a_day: int, hour: int) -> int:
    return a_day * (hour % 24 + 1) // 24 - a_day * (hour % 24) // 24
