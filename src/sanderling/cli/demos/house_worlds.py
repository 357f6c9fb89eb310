"""What `sanderling demo house` is about: four simulated upstreams on this machine, a crawler, and five commands."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path

from sanderling.cli.demos.events import SEED, small_day
from sanderling.cli.demos.pages import failing, make_web, throttling
from sanderling.cli.events.place import OWN_BODIES, OWN_LETTERS, EventsFolder
from sanderling.cli.worlds.social import SimulatedCrawler
from sanderling.clock import Clock
from sanderling.worlds.game import Game, GameRules, GameServer
from sanderling.worlds.game_schedule import Piece, ScheduleRules
from sanderling.worlds.game_weather import WeatherRules
from sanderling.worlds.pds import Fleet, FleetServer
from sanderling.worlds.race import RaceDay, RaceRules, RaceServer
from sanderling.worlds.race_day import DayRules
from sanderling.worlds.site import SiteServer, World
from sanderling.worlds.social import Social
from sanderling.worlds.social_day import DAY
from sanderling.worlds.weather import fair

PAGES, SEQUENCE, REPOS, POLLING, EVENTS = "pages", "sequence", "repos", "polling", "events"
ORDER = (EVENTS, POLLING, REPOS, SEQUENCE, PAGES)  # in which they are begun
DIDS = "dids.txt"
# Of a project that nobody else has.
PROJECT = "7d6c9a4e-52a1-4c1e-9b1f-0a8f5d3c2b10"
JOBS = {PAGES: f"{PROJECT}-brand-Pages-0", SEQUENCE: f"{PROJECT}-brand-Reports-0"}

# Pages of each host: more than half a minute takes, at eight a second to each.
ORDINARY_HOSTS = {"library": 400, "museum": 300, "harbour": 200}
# One allows three pages a second, the other fails from the sixth second after it was first asked to the fourteenth.
ODD_HOSTS = {"throttling": (150, throttling(3.0)), "failing": (150, failing(6.0, 14.0))}

HISTORY, RATE = 40.0, 8.0  # of the game: seconds before it is followed, and ids a second

# Two short races; the second is added after the first.
RACES = DayRules(pilots=6, late=0, removed=1, rounds=2, aborted=0, first=7.0, heat=15.0, pause=6.0, lap=2.5)

HOSTS, REPOS_EACH, OTHERS = 4, 220, ("limited", "failing", "lying")
BATCHES_A_SECOND = 2.0
MOST_BATCHES = 3600


@dataclass(frozen=True, slots=True)
class HouseWorlds:
    """The upstreams, as they are served."""

    site: SiteServer
    game: GameServer
    fleet: FleetServer
    race: RaceServer

    def commands(self, home: Path) -> Mapping[str, list[str]]:
        """The command of each system, which keeps what it has in a folder of the home."""
        first, *others = (host.tree.origin for host in self.site.world.hosts)
        allowed = [word for each in others for word in ("--allow", each.removeprefix("http://"))]
        onward = {name: ["--events-job", job, "--home", str(home)] for name, job in JOBS.items()}
        game = ["--base", self.game.url(), "--begin", str(self.game.game.first)]
        return {
            PAGES: ["pages", "crawl", f"{first}/", *allowed, *_out(home, PAGES), *onward[PAGES], "--private"],
            SEQUENCE: ["sequence", "crawl", *game, *_out(home, SEQUENCE), *onward[SEQUENCE], "--private"],
            REPOS: ["repos", "crawl", "--did-file", str(home / DIDS), "--private", *_out(home, REPOS)],
            POLLING: [
                *("polling", "run", "--trackside", self.race.url(), *_out(home, POLLING)),
                *("--set", "fullIntervalMs=3s", "--set", "raceIdleMs=2s", "--private"),
            ],
            EVENTS: ["events", "consume", *_out(home, EVENTS)],
        }


def _out(home: Path, name: str) -> tuple[str, str]:
    return "--out", str(home / name)


@asynccontextmanager
async def serve_worlds(home: Path, clock: Clock) -> AsyncIterator[HouseWorlds]:
    """All of them, each host a port of this machine; and the list of DIDs for whoever archives repos."""
    game, day = Game(small_game(), SEED, began=clock.wall()), RaceDay(SEED, RaceRules(RACES), began=clock.wall())
    fleet = Fleet.make(SEED, HOSTS, HOSTS * REPOS_EACH, others=OTHERS)
    async with (
        SiteServer(small_web(), clock) as site,
        GameServer(game, clock) as games,
        FleetServer(fleet, clock) as fleets,
        RaceServer(day, clock) as race,
    ):
        lines = [f"{did} {origin}\n" for did, origin in fleets.fleet.directory()]
        await asyncio.to_thread((home / DIDS).write_text, "".join(lines))
        yield HouseWorlds(site, games, fleets, race)


def small_web() -> World:
    """Ordinary hosts, one that allows little and one that fails for a while."""
    return make_web({name: (pages, fair) for name, pages in ORDINARY_HOSTS.items()} | ODD_HOSTS)


def small_game() -> GameRules:
    """A little to catch up with, and then the head."""
    schedule = ScheduleRules(pieces=(Piece(-HISTORY, inf, RATE),), delay=1.0, spread=1.0)
    return GameRules(schedule, WeatherRules(latency=0.1, quota=120.0, retry_after=2.0), raids=0.3)


class HousePublisher:
    """A crawler of social media, which hands its batches to `events` as other crawlers would."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self.social = Social(SEED, small_day(), began=clock.wall() // DAY * DAY - DAY)
        self.sent = 0  # messages
        self._stopped = False
        self._folder = EventsFolder(out=home / EVENTS)
        self._clock = clock

    def stop(self) -> None:
        """End with the message in hand: what is known to be sent is what was sent."""
        self._stopped = True

    async def run(self) -> None:
        """Publish at a steady pace, until told to stop."""
        clock, folder = self._clock, self._folder
        async with (
            OWN_LETTERS.opened(folder, clock) as queue,
            OWN_BODIES.opened(folder) as objects,
            OWN_LETTERS.topic(folder, clock, queue) as topic,
        ):
            crawler, began = SimulatedCrawler(self.social, objects, topic), clock.now()
            for delivery in self.social.deliveries(MOST_BATCHES):
                if self._stopped:
                    return
                await crawler.deliver([delivery])
                self.sent = crawler.sent
                await clock.sleep(max(0.0, began + self.sent / BATCHES_A_SECOND - clock.now()))
