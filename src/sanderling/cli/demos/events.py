"""`sanderling demo events`: a simulated day of crawled batches, really consumed while it passes, then proof of it."""

import asyncio
import shlex
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sanderling.cli.demos.events_report import (
    HOUR,
    LABELS,
    EventsReport,
    Numbers,
    describe_extremes,
    gather,
    picture,
)
from sanderling.cli.demos.shell import DemoEnd, next_steps
from sanderling.cli.events.consume import run_events, wait_until_empty
from sanderling.cli.events.flags import AnalysisFlags, ConsumeFlags
from sanderling.cli.events.place import OWN_LETTERS, EventsFolder
from sanderling.cli.options import Options
from sanderling.cli.report_screen import fitting
from sanderling.cli.screen import Drawing
from sanderling.cli.worlds.social import SimulatedCrawler
from sanderling.clock import SystemClock
from sanderling.events.outbox import DATABASE
from sanderling.events.report import EventsFacts
from sanderling.events.system import EventsSystem
from sanderling.observe.report import Report as SystemReport
from sanderling.stores.durable import plainly, sync_folder, write_new
from sanderling.stores.topic import QueueTopic
from sanderling.words import count, duration
from sanderling.worlds.social import Social, SocialDelivery
from sanderling.worlds.social_day import DAY
from sanderling.worlds.social_hostile import Spoil, Twist
from sanderling.worlds.social_market import MarketRules
from sanderling.worlds.social_plan import SocialRules
from sanderling.worlds.social_truth import BatchFate

REPORT = "report.svg"
SEED = 1  # the same day each time, so that what one person sees another can look for
BATCHES = 280
SECONDS = 17.0  # that the day takes, at least
AHEAD = 6  # messages that may wait: on a slow machine the day takes longer, and is the same
DEAD = 10_000  # more than there are

# Odd posts that are posts all the same, odd items that are errors, and batches that are odd and can be read.
TWISTS = dict.fromkeys((Twist.NUMBER_ID, Twist.EMPTY, Twist.EMOJI, Twist.LEFTWARD, Twist.COMBINING), 0.004)
TWISTS |= dict.fromkeys((Twist.VIRAL, Twist.ODD_COUNTERS, Twist.NO_ID, Twist.NO_STATUS, Twist.MALFORMED), 0.001)
# All that cannot be read is known for that at once: nobody wants to wait for a demo.
SPOILS = dict.fromkeys((Spoil.WRONG_COUNT, Spoil.MARKED, Spoil.TWO_FRAMES), 0.01)
SPOILS |= dict.fromkeys((Spoil.NOT_A_MESSAGE, Spoil.NO_PATH, Spoil.OTHER_EVENT, Spoil.SCALAR), 0.006)


def small_day() -> SocialRules:
    """The day of the demo."""
    market = MarketRules(projects=4, competitors=1, longest=5)
    return SocialRules(batches=BATCHES, market=market, twists=TWISTS, spoils=SPOILS, again=0.05)


class DayClock(SystemClock):
    """The real clock, but for what is on the wall: there the simulated day passes, as its batches come."""

    def __init__(self, began: float) -> None:
        self.at = began

    def wall(self) -> float:
        """Seconds since 1970, of the simulated day."""
        return self.at


async def run(out: Path, options: Options, *, as_json: bool) -> DemoEnd:
    """Consume a simulated day of batches as they come: every item ends in one row, and a report says what was said."""
    today = SystemClock().wall() // DAY * DAY
    social = Social(SEED, small_day(), began=today - DAY)
    day = DayPublisher(social, DayClock(social.began))
    screen = fitting(json=as_json, logs=options.log_format is not None)
    flags = ConsumeFlags(EventsFolder(out=out), metrics_port=None)
    screen.note("A simulated day of social media on this machine; nothing leaves it.")
    ran = await run_events(flags, AnalysisFlags().analyser(), options, day.clock, screen, until=day.run)
    # Whoever ends it early ends it in the middle of something.
    proof = await _prove(flags, day, complete=day.over)
    names = {each.id: each.brand.name for each in social.projects} | {"": "test searches"}
    async with flags.rows.opened(flags.folder) as store:
        numbers = await gather(store, names, social.began, round(DAY / HOUR))
    said = [f"{count(numbers.posts, 'post')}, {count(numbers.errors, 'error')}.", *describe_extremes(numbers)]
    svg = picture(EventsReport(numbers), "A simulated day of social media", said)
    await asyncio.to_thread(_write, out / REPORT, svg)
    document = _document(ran.last, proof, numbers) | {"report": str(out / REPORT), "out": str(out)}
    lines = _describe(ran.last, proof, numbers, out, min((each.id for each in social.projects), key=len))
    return DemoEnd(screen, lines, document, proof.ok, ran.stopped)


def _write(path: Path, text: str) -> None:
    with plainly(path):
        write_new(path, [text.encode()])
        sync_folder(path.parent)


@dataclass(slots=True)
class DayPublisher:
    """The crawler, which publishes while others consume."""

    social: Social
    clock: DayClock
    crawler: SimulatedCrawler | None = None
    over: bool = False

    async def run(self, system: EventsSystem) -> None:
        """Publish the day bit by bit, and return when all of it is consumed."""
        at, letters = system.stations, OWN_LETTERS
        self.crawler = SimulatedCrawler(self.social, at.objects, QueueTopic({letters.routing_key: at.queue}), letters)
        real = SystemClock()
        began = real.now()
        for delivery in self.social.deliveries(BATCHES):
            await self.crawler.deliver([delivery])
            self.clock.at = max(self.clock.at, self.social.sent_at(delivery.number))
            await real.sleep(max(0.0, began + SECONDS * (delivery.number / BATCHES) - real.now()))
            while (await at.queue.depth()).ready > AHEAD:
                await real.sleep(0.05)
        await wait_until_empty(system)
        self.over = True


@dataclass(frozen=True, slots=True)
class EventsProof:
    """What is stored, beside what the crawler knows of its own batches."""

    complete: bool  # whether all was published and consumed; otherwise what is not there may have been to come
    items: int  # of the batches that can be read
    posts: int  # rows that must be there
    errors: int  # the same
    lost: int  # of these, not there
    strangers: int  # rows that must not be there
    twice: int  # rows that are there more than once
    again: int  # messages that came for the second time
    unreadable: int  # messages that nobody can read
    buried: int  # of these, among the dead
    buried_wrongly: int  # among the dead, and not of these

    @property
    def ok(self) -> bool:
        """Whether nothing is lost and nothing is there that should not be."""
        if self.strangers or self.twice or self.buried_wrongly:
            return False
        return not self.complete or (not self.lost and self.buried == self.unreadable)


Key = tuple[object, ...]


class ExpectedRows:
    """The rows that must come of some messages, by their keys, and the messages of which nothing can."""

    def __init__(self) -> None:
        self.items = self.again = 0
        self.posts: set[Key] = set()
        self.errors: set[Key] = set()
        self.unreadable: Counter[bytes] = Counter()

    def add(self, social: Social, delivery: SocialDelivery) -> None:
        """Take in a message that was sent."""
        truth = social.truth(delivery.number)
        self.again += delivery.again
        if truth.fate is not BatchFate.READ:
            self.unreadable[delivery.envelope] += 1
            return
        self.items += 0 if delivery.again else len(truth.items)
        for place, item in enumerate(truth.items):
            if item.is_post:
                self.posts.add((truth.project, truth.platform, item.id))
            else:
                self.errors.add((truth.event_id, place, item.code))


async def _prove(flags: ConsumeFlags, day: DayPublisher, *, complete: bool) -> EventsProof:
    """Compare what is stored with what was published, key by key."""
    truth = ExpectedRows()
    for delivery in islice(day.social.deliveries(BATCHES), day.crawler.sent if day.crawler else 0):
        truth.add(day.social, delivery)
    async with flags.letters.opened(flags.folder, SystemClock()) as queue:
        buried = Counter(each.body for each in await queue.dead(DEAD))
    posts, errors = await asyncio.to_thread(_stored, flags.folder.out / DATABASE)
    return compare(truth, posts, errors, buried, complete=complete)


def _stored(path: Path) -> tuple[list[Key], list[Key]]:
    with closing(sqlite3.connect(path)) as db:
        posts = db.execute("SELECT project_id, platform, post_id FROM post_analytics").fetchall()
        return posts, db.execute("SELECT event_id, item_index, error_code FROM crawl_errors").fetchall()


def compare(
    truth: ExpectedRows, posts: Sequence[Key], errors: Sequence[Key], buried: Counter[bytes], *, complete: bool
) -> EventsProof:
    """The proof, of what is there."""
    there = set(posts), set(errors)
    due = truth.posts, truth.errors
    return EventsProof(
        complete=complete,
        items=truth.items,
        posts=len(truth.posts),
        errors=len(truth.errors),
        lost=sum(len(one - other) for one, other in zip(due, there, strict=True)),
        strangers=sum(len(other - one) for one, other in zip(due, there, strict=True)),
        twice=len(posts) + len(errors) - sum(map(len, there)),
        again=truth.again,
        unreadable=truth.unreadable.total(),
        buried=(truth.unreadable & buried).total(),
        buried_wrongly=(buried - truth.unreadable).total(),
    )


def _document(last: SystemReport[EventsFacts], proof: EventsProof, numbers: Numbers) -> dict[str, Any]:
    return {
        "ok": proof.ok,
        "seconds": round(last.process.seconds, 3),
        "batches": last.facts.batches,
        "messages": last.facts.messages.processed + last.facts.messages.failed,
        "duplicates": last.facts.messages.duplicates,
        "posts": numbers.posts,
        "errors": numbers.errors,
        "sentiments": {label: sum(getattr(each, label) for each in numbers.hours) for label in LABELS},
        "not_read": numbers.unread,
        "categories": dict(numbers.categories),
        "hours": [each._asdict() for each in numbers.hours],
        "projects": [each._asdict() for each in numbers.projects],
        "proof": asdict(proof),
    }


def _describe(
    last: SystemReport[EventsFacts], proof: EventsProof, numbers: Numbers, out: Path, project: str
) -> Iterator[str | Drawing]:
    yield ""
    how = "Consumed a simulated day" if proof.complete else "Ended early: consumed a part of a simulated day"
    items = count(last.facts.posts + last.facts.errors, "item")
    yield f"{how} in {duration(last.process.seconds)}: {last.facts.batches:,} batches of {items}."
    yield ""
    yield EventsReport(numbers)
    yield from describe_extremes(numbers)
    yield from describe_proof(proof)
    yield f"The plots as a picture: {out / REPORT}"
    where = shlex.quote(str(out))
    commands = {
        f"sanderling status {where}": "how it stood",
        f"sanderling dead list {where}": "what was given up, and why",
        f"sanderling events consume --port 8080 --out {where}": "the API",
        f"curl '127.0.0.1:8080/api/v1/analytics/posts?project_id={project}'": "asked from another terminal",
    }
    yield from next_steps("To try next:", commands)


def describe_proof(proof: EventsProof) -> Iterator[str]:
    """What is stored, in words."""
    if proof.complete:
        yield (
            f"The crawler published {count(proof.items, 'item')} that can be read. They must be {proof.posts:,} "
            f"posts, each once for a project however often it found it, and {proof.errors:,} errors: "
            f"{proof.lost or 'none'} of these rows are missing, {proof.twice or 'none'} are there twice, and "
            f"{proof.strangers or 'no'} others are there."
        )
    else:
        yield (
            f"Of the rows that are there {proof.twice or 'none'} are there twice, and {proof.strangers or 'none'} "
            "are none that the crawler knows of."
        )
    yield (
        f"{count(proof.again, 'message')} came a second time and changed nothing. {proof.buried:,} of "
        f"{proof.unreadable:,} that nobody can read are among the dead, with the reason."
    )
