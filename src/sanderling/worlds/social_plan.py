"""What chance decides about the batches of a simulated crawler, before a word of them is written.

So the truth about a batch can be had without making it, and is the same.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import log
from random import Random
from typing import NamedTuple

from sanderling.worlds.chance import Weights, perhaps, pick, scatter
from sanderling.worlds.social_bodies import Packing, Shape
from sanderling.worlds.social_day import DAY, draw_code, draw_mood
from sanderling.worlds.social_envelopes import Version
from sanderling.worlds.social_hostile import STRUCTURAL, TEXTUAL, Spoil, Twist, fate_of, retell
from sanderling.worlds.social_items import SPACE, ItemDraft, Spelling, message_of, post_id
from sanderling.worlds.social_market import Brand, Market, MarketRules, SearchRun
from sanderling.worlds.social_people import Person, population
from sanderling.worlds.social_truth import NO_COUNTERS, BatchFate, BatchTruth, Counters, ItemTruth, Mood, PostSentiment

MOST_DAYS = 36_500  # a century; further on there are years that nobody can write
TREND = 8  # batches in a row
TRENDING = 6  # posts of each platform that are shared in a trend
FIRST_SHARED = SPACE - TRENDING  # their numbers: behind those of the largest batch
FOUND_AFTER, LATEST = 25, 600  # minutes from being published to being found: the mean, and the most
EXCITED = 6.0  # times as many views for what is said in anger


@dataclass(frozen=True, slots=True)
class FormRules:
    """How batches are written, by weight. A job keeps to one version, and a batch to one spelling."""

    versions: Mapping[Version, float] = field(
        default_factory=lambda: {
            Version.EVENT_1_0: 0.25,
            Version.EVENT_1_1: 0.25,
            Version.EVENT_2_0: 0.4,
            Version.LEGACY: 0.04,
            Version.INLINE: 0.04,
            Version.RESULT: 0.02,
        }
    )
    spellings: Mapping[Spelling, float] = field(
        default_factory=lambda: {Spelling.GUIDE: 0.4, Spelling.CONTRACT_1: 0.2, Spelling.CONTRACT_2: 0.4}
    )
    shapes: Mapping[Shape, float] = field(default_factory=lambda: {Shape.LIST: 0.8, Shape.COUNTED: 0.2})
    packings: Mapping[Packing, float] = field(
        default_factory=lambda: {Packing.PLAIN: 0.3, Packing.ZSTD: 0.5, Packing.ZSTD_STREAM: 0.2}
    )


@dataclass(frozen=True, slots=True)
class SocialRules:
    """What is crawled, and what comes of it."""

    batches: int = 2000  # of a day; there are more on the next
    market: MarketRules = field(default_factory=MarketRules)
    forms: FormRules = field(default_factory=FormRules)
    shared: float = 0.04  # share of the items that others find too
    twists: Mapping[Twist, float] = field(  # shares of the items that are posts
        default_factory=lambda: {Twist.NUMBER_ID: 0.005, Twist.EMPTY: 0.004, Twist.EMOJI: 0.004, Twist.LONG: 0.0002}
    )
    spoils: Mapping[Spoil, float] = field(default_factory=dict)  # shares of the batches that are events
    again: float = 0.02  # share of the messages that are delivered twice
    mixed: int = 8  # messages among which the order is any


def demo() -> SocialRules:
    """A day in forty batches, some 1,000 items."""
    return SocialRules(batches=40, market=MarketRules(projects=3, competitors=1, longest=5), again=0.05)


def day() -> SocialRules:
    """A day in two thousand batches, some 60,000 items."""
    return SocialRules()


def hostile() -> SocialRules:
    """A day in 400 batches in which everything is wrong that can be."""
    twists = dict.fromkeys(Twist, 0.01) | {Twist.LONG: 0.002, Twist.HUGE: 0.0005, Twist.DEEP: 0.002}
    return SocialRules(batches=400, shared=0.08, twists=twists, spoils=dict.fromkeys(Spoil, 0.02), again=0.2, mixed=16)


PRESETS: Mapping[str, Callable[[], SocialRules]] = {each.__name__: each for each in (demo, day, hostile)}


class BatchPlan(NamedTuple):
    """What chance has decided about a batch."""

    run: SearchRun
    event_id: str
    sent: int  # Unix seconds
    version: Version
    spelling: Spelling
    shape: Shape
    packing: Packing
    spoil: Spoil | None
    drafts: tuple[ItemDraft, ...]


class Salts(NamedTuple):
    """What keeps the chances of different things apart."""

    plan: int
    version: int
    post: int
    trend: int
    event: int
    words: int
    delivery: int


class Planner:
    """Decides about any batch by its number. Times are Unix seconds, but for `since`, which is since the beginning."""

    def __init__(self, rules: SocialRules, seed: int, began: float) -> None:
        chance = Random(f"social {seed}")
        self.salts = Salts(*(chance.getrandbits(64) for _ in Salts._fields))
        self.market = Market(rules.market, chance)
        self.people = population()
        self._rules, self._began = rules, began
        forms = rules.forms
        self._versions, self._spellings = Weights(forms.versions), Weights(forms.spellings)
        self._shapes, self._packings = Weights(forms.shapes), Weights(forms.packings)
        self._twists, self._spoils = perhaps(rules.twists), perhaps(rules.spoils)

    def since(self, number: int) -> float:
        """When a batch is sent. Raises ValueError for one that is never sent."""
        if not 0 <= number < MOST_DAYS * self._rules.batches:
            raise ValueError(f"batch {number}, expected 0 to {MOST_DAYS * self._rules.batches - 1}")
        return number * (DAY / self._rules.batches)

    def plan(self, number: int) -> BatchPlan:
        """What becomes of a batch."""
        sent = int(self._began + self.since(number))
        run = self.market.run(number)
        chance = Random(scatter(number, self.salts.plan))
        version = self._version(run)
        spoil = self._spoils.draw(chance.random())
        return BatchPlan(
            run=run,
            event_id=f"evt_{scatter(number, self.salts.event):016x}",
            sent=sent,
            version=version,
            spelling=self._spellings.draw(chance.random()),
            shape=self._shapes.draw(chance.random()),
            packing=self._packings.draw(chance.random()),
            spoil=spoil if version.is_event else None,
            drafts=tuple(self._drafts(run, version, chance)),
        )

    def _version(self, run: SearchRun) -> Version:
        """All batches of a job in one round are of the same."""
        luck = (scatter(run.round << 32 | run.job.place, self.salts.version) >> 11) / 2**53
        version = self._versions.draw(luck)
        dry = run.job.project is None and version is Version.EVENT_2_0  # which has no dry runs
        return Version.EVENT_1_1 if dry else version

    def _drafts(self, run: SearchRun, version: Version, chance: Random) -> Iterator[ItemDraft]:
        since, taken = self.since(run.number), set[int]()
        for place in range(1 if version.alone else run.size):
            if chance.random() < self._rules.shared:
                trending = int(chance.random() * TRENDING)
                if trending not in taken:
                    taken.add(trending)
                    yield self._trending(run, trending)
                    continue
            # Where only what was fetched is sent, nothing has failed.
            code = draw_code(since, chance) if version.is_event else ""
            draft = self._draft(run.job.brand, run.job.platform, run.number * SPACE + place, since, chance)
            if code:
                yield draft._replace(mood=None, code=code, counters=NO_COUNTERS)
            else:
                yield draft._replace(twist=self._twist(version, place, chance))

    def _draft(self, brand: Brand, platform: str, number: int, since: float, chance: Random) -> ItemDraft:
        author = pick(self.people, chance)
        mood = draw_mood(since, chance, hit=brand == self.market.projects[0].brand)
        age = 2 + min(int(-FOUND_AFTER * log(1 - chance.random())), LATEST)
        return ItemDraft(
            number=number,
            id=post_id(platform, number, self.salts.post),
            brand=brand,
            author=author,
            published=(int(self._began + since) // 60 - age) * 60,
            age=age,
            mood=mood,
            counters=_counters(author, mood, platform, chance),
        )

    def _trending(self, run: SearchRun, place: int) -> ItemDraft:
        """A post that others find too, and the same whoever finds it: about what one of the batches searches for."""
        trend = run.number // TREND
        first, number = trend * TREND, trend * SPACE + FIRST_SHARED + place
        chance = Random(scatter(number, self.salts.trend))
        brand = self.market.job(first + int(chance.random() * TREND)).brand
        draft = self._draft(brand, run.job.platform, number, self.since(first), chance)
        return draft._replace(shared=True)

    def _twist(self, version: Version, place: int, chance: Random) -> Twist | None:
        twist = self._twists.draw(chance.random())
        return twist if twist and _fits(twist, version, place) else None


def _fits(twist: Twist, version: Version, place: int) -> bool:
    """Whether the item at that place of a batch can have it."""
    if version.is_event:
        return place > 0 or twist not in STRUCTURAL
    # A message with fifty long texts would be too large for any queue.
    return twist in TEXTUAL and not (twist is Twist.LONG and version is Version.RESULT)


def truth_of(plan: BatchPlan) -> BatchTruth:
    """What must become of a batch."""
    run, fate = plan.run, fate_of(plan.spoil)
    return BatchTruth(
        number=run.number,
        fate=fate,
        event_id=plan.event_id if plan.version.is_event else "",
        job_id=run.job_id,
        project=run.project_id,
        platform=run.job.platform,
        brand=run.job.brand.name,
        sent_at=float(plan.sent),
        items=tuple(_true(draft) for draft in plan.drafts) if fate is BatchFate.READ else (),
    )


def _true(draft: ItemDraft) -> ItemTruth:
    if draft.mood is None:
        return ItemTruth(draft.id, draft.code, message_of(draft.code))
    truth = ItemTruth(
        id=draft.id,
        mood=draft.mood,
        counters=draft.counters,
        followers=draft.author.followers,
        shared=draft.shared,
    )
    return retell(truth, draft.twist) if draft.twist else truth


def _counters(author: Person, mood: Mood, platform: str, chance: Random) -> Counters:
    """How people took it: with many followers there are more of them, and anger spreads."""
    views = (20 + author.followers * 0.4) * 10 ** (1.6 * chance.random())
    views *= EXCITED if mood.sentiment is PostSentiment.NEGATIVE else 1.0
    likes = views * (0.02 + 0.1 * chance.random())
    said, passed = likes * 0.2 * chance.random(), likes * 0.15 * chance.random()
    if platform == "youtube":  # which does not tell
        return Counters(int(views), int(likes), int(said))
    return Counters(int(views), int(likes), int(said), int(passed), int(passed * 0.6))
