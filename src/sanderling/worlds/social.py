"""A simulated crawler of two platforms, as arithmetic: asked for a batch by its number, it makes it.

Deterministic: the same seed gives the same bytes. No clock, no I/O, and nothing is kept of a batch, so that a million
items take no more memory than fifty. With each batch comes the truth about it: where its items must end.

Terms. *Truth*: see `social_truth`. *Project*, *job*, *round*: see `social_market`. *Trend*: a few batches in a row, in
which several projects may find the same posts. *Twist*, *spoil*: see `social_hostile`.
"""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from sanderling.worlds.chance import scatter
from sanderling.worlds.social_bodies import Metadata, PackedObject, Packing, document, pack, spoil_object
from sanderling.worlds.social_envelopes import BUCKET, LYING, Notice, Version, key_of, message, task_type
from sanderling.worlds.social_hostile import Spoil, bend, reword
from sanderling.worlds.social_items import WRITE, BatchSetting, ItemDraft, Spelling, failed, remarks
from sanderling.worlds.social_market import SocialProject
from sanderling.worlds.social_plan import TREND, BatchPlan, Planner, SocialRules, truth_of
from sanderling.worlds.social_texts import Texts
from sanderling.worlds.social_truth import BatchTruth, Totals

BEGAN = 1_799_971_200.0  # Unix seconds of the first midnight, unless told otherwise: 15 January 2027
CRAWLED_BEFORE = 20  # seconds before the message


class SocialBatch(NamedTuple):
    """A message, and the object that it is about."""

    path: str  # bucket and key; empty if the message has everything in it
    body: bytes | None  # None if there is no object
    metadata: Metadata
    envelope: bytes
    truth: BatchTruth


class SocialDelivery(NamedTuple):
    """A message as it arrives."""

    number: int  # the batch's
    envelope: bytes
    again: bool  # whether it has been delivered before


class Social:
    """The crawler, its projects, and all their batches, numbered from 0."""

    def __init__(self, seed: int, rules: SocialRules | None = None, began: float = BEGAN, bucket: str = BUCKET) -> None:
        self.rules = rules or SocialRules()
        self.began = began
        self.bucket = bucket
        self._planner = Planner(self.rules, seed, began)
        self._texts = Texts()

    def __repr__(self) -> str:
        return f"<Social of {len(self.projects)} projects, {self.rules.batches} batches a day>"

    @property
    def projects(self) -> tuple[SocialProject, ...]:
        """Who wants to know what is said. The crises are those of the first one's brand."""
        return self._planner.market.projects

    def sent_at(self, number: int) -> float:
        """When the message of a batch is sent, in Unix seconds."""
        return self.began + self._planner.since(number)

    def batch(self, number: int) -> SocialBatch:
        """A batch by its number."""
        plan = self._planner.plan(number)
        notice, items, truth = self._notice(plan), self._written(plan), truth_of(plan)
        if not plan.version.stores:
            return SocialBatch("", None, {}, message(notice, items), truth)
        if plan.spoil is Spoil.GONE:
            return SocialBatch(notice.path, None, {}, message(notice), truth)
        body, metadata = _stored(plan, items)
        return SocialBatch(notice.path, body, metadata, message(notice), truth)

    def truth(self, number: int) -> BatchTruth:
        """What must become of a batch, without making it."""
        return truth_of(self._planner.plan(number))

    def envelope(self, number: int) -> bytes:
        """The message of a batch, without making the object."""
        plan = self._planner.plan(number)
        return message(self._notice(plan), () if plan.version.stores else self._written(plan))

    def totals(self, first: int, end: int) -> Totals:
        """What must be in a store after the batches from the first up to, and without, the other."""
        totals = Totals(TREND)
        for number in range(first, end):
            totals.add(self.truth(number))
        return totals

    def deliveries(self, count: int) -> Iterator[SocialDelivery]:
        """The messages of the first batches as they arrive: not quite in their order, and some of them twice."""
        mixed, late = self.rules.mixed, list[int]()
        for first in range(0, count, mixed):
            fresh = range(first, min(first + mixed, count))
            chance = Random(scatter(first, self._planner.salts.delivery))
            turns = [(number, False) for number in fresh] + [(number, True) for number in late]
            chance.shuffle(turns)
            late = [number for number in fresh if chance.random() < self.rules.again]
            for number, again in turns:
                yield SocialDelivery(number, self.envelope(number), again)
        for number in late:
            yield SocialDelivery(number, self.envelope(number), again=True)

    def _notice(self, plan: BatchPlan) -> Notice:
        key = key_of(plan.run, plan.version, plan.event_id, plan.sent, packed=plan.packing is not Packing.PLAIN)
        path = f"{self.bucket}/{key}" if key else ""
        return Notice(plan.run, plan.version, plan.event_id, plan.sent, path, len(plan.drafts), plan.spoil)

    def _written(self, plan: BatchPlan) -> list[object]:
        chance = Random(scatter(plan.run.number, self._planner.salts.words))
        setting = BatchSetting(
            platform=plan.run.job.platform,
            job_id=plan.run.job_id,
            keyword=plan.run.keyword,
            task_type=task_type(plan.run),
            crawled=plan.sent - CRAWLED_BEFORE,
            states=plan.version is not Version.LEGACY,
            signed=plan.version is Version.INLINE,
        )
        return [self._item(draft, setting, plan.spelling, chance) for draft in plan.drafts]

    def _item(self, draft: ItemDraft, setting: BatchSetting, spelling: Spelling, chance: Random) -> object:
        if draft.mood is None:
            return failed(draft, setting, spelling)
        if draft.shared:  # and says the same wherever it is found
            chance = Random(scatter(draft.number, self._planner.salts.words))
        words = self._texts.words(draft.mood, draft.brand, setting.platform, chance)
        if draft.twist:
            words = reword(words, draft.twist)
        item = WRITE[spelling](draft, words, remarks(draft, words, self._planner.people, chance), setting)
        return bend(item, draft.twist) if draft.twist else item


def _stored(plan: BatchPlan, items: list[object]) -> PackedObject:
    number, spoil = plan.run.number, plan.spoil
    lying = len(items) + LYING if spoil is Spoil.WRONG_COUNT else None
    # Older crawlers write one item as it is, and so does every other one of today's.
    alone = len(items) == 1 and lying is None and (plan.version is Version.LEGACY or number % 2 == 0)
    data = document(items, plan.shape, alone=alone, count=lying)
    return spoil_object(data, plan.packing, number, spoil) if spoil else pack(data, plan.packing, number)
