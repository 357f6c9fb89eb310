"""Who is searched for in a simulated market, by whom, and in which order the batches of all searches come.

Terms. A *project* has a brand and competitors, and wants to know what is said of them. A *job* is one search of one
platform for one name. A *round* is one run of all jobs; they run side by side, so their batches come mixed, and every
round in the same order. All of a job's batches are full but the last. A *dry run* is a search that belongs to nobody.

So any batch is found by its number, and nothing is kept of those before it. All names are invented.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from uuid import UUID

from sanderling.worlds.chance import pick, scatter

SIZES = {"tiktok": 50, "youtube": 20}  # items of a full batch
PLATFORMS = tuple(SIZES)

# With hyphens, digits, spaces and Vietnamese letters, as they may well be in the id of a job.
BRANDS = (
    "Zorvani",
    "Mây Sậy",
    "Tuvaro-9",
    "Kemdali",
    "Sếu Đỏ-7",
    "Ondrelo",
    "Bralto-X",
    "Nâu Đất",
    "Fenwiro 21",
    "Quilbera",
    "Đèn-Dầu",
    "Xuplora",
)
SEARCHES = ("{}", "{}", "{} review", "giá {}", "đánh giá {}")
OLDER = "proj_"
PROJECT_NAMES = ("spring-2031-launch", "dawn-q3-campaign", "north-shelf-test")


@dataclass(frozen=True, slots=True)
class MarketRules:
    """How much is searched for."""

    projects: int = 5
    competitors: int = 2  # of each project
    longest: int = 6  # batches of a job, at most; those of the first project's brand have so many
    dry_runs: int = 2  # in a round


@dataclass(frozen=True, slots=True)
class Brand:
    """A name, and how it is written where not everything may be written."""

    name: str
    bare: str  # without marks
    slug: str  # without spaces
    tag: str  # letters and digits only

    @classmethod
    def of(cls, name: str) -> "Brand":
        """The brand of that name."""
        bare = without_marks(name)
        tag = "".join(letter for letter in bare if letter.isalnum()).lower()
        return cls(name, bare, name.replace(" ", "-"), tag)


def without_marks(text: str) -> str:
    """Vietnamese as it is typed by people in a hurry."""
    plain = "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))
    return plain.replace("đ", "d").replace("Đ", "D")


@dataclass(frozen=True, slots=True)
class SocialProject:
    """Who wants to know."""

    id: str  # a UUID; older ones have a name instead
    brand: Brand
    competitors: tuple[Brand, ...]


@dataclass(frozen=True, slots=True)
class SearchJob:
    """One search, in every round anew."""

    place: int  # among all jobs
    project: SocialProject | None  # None for a dry run
    brand: Brand
    platform: str
    batches: int

    @property
    def is_own(self) -> bool:
        """Whether it searches for the project's own brand."""
        return self.project is not None and self.project.brand == self.brand


@dataclass(frozen=True, slots=True)
class SearchRun:
    """A batch's place: that of its job in this round."""

    number: int  # the batch's
    job: SearchJob
    round: int
    index: int  # among the batches of the job, from 0
    job_id: str
    keyword: str
    size: int  # items

    @property
    def project_id(self) -> str | None:
        """Whose it is; None for a dry run."""
        return self.job.project.id if self.job.project else None

    @property
    def counted(self) -> int:
        """The place among all batches of this search, in whatever round."""
        return self.round * self.job.batches + self.index


class Market:
    """The projects, their jobs, and which batch is whose."""

    def __init__(self, rules: MarketRules, chance: Random) -> None:
        self.brands = tuple(Brand.of(name) for name in BRANDS)
        self.projects = tuple(self._project(place, rules, chance) for place in range(rules.projects))
        self.jobs = tuple(self._jobs(rules, chance))
        turns = [job.place for job in self.jobs for _ in range(job.batches)]
        chance.shuffle(turns)
        seen = [0] * len(self.jobs)
        self._order: list[tuple[SearchJob, int]] = []
        for place in turns:
            self._order.append((self.jobs[place], seen[place]))
            seen[place] += 1
        self._salt = chance.getrandbits(64)

    @property
    def round(self) -> int:
        """Batches of a round."""
        return len(self._order)

    def job(self, number: int) -> SearchJob:
        """The job that a batch is of."""
        return self._order[number % len(self._order)][0]

    def run(self, number: int) -> SearchRun:
        """The place of a batch."""
        turn, at = divmod(number, len(self._order))
        job, index = self._order[at]
        # The same for all batches of the job in this round.
        chance = Random(scatter(turn << 32 | job.place, self._salt))
        job_id = _job_id(job, turn, chance)
        keyword = pick(SEARCHES, chance).format(job.brand.name)
        full = SIZES[job.platform]
        last = 1 + int(chance.random() * (full - 1))
        return SearchRun(number, job, turn, index, job_id, keyword, full if index < job.batches - 1 else last)

    def _project(self, place: int, rules: MarketRules, chance: Random) -> SocialProject:
        identity = str(UUID(int=chance.getrandbits(128), version=4))
        # Two of five are from before projects had UUIDs.
        if place % 5 == 2:
            identity = f"{OLDER}{identity[:6]}"
        elif place % 5 == 4:
            identity = f"{PROJECT_NAMES[place // 5 % len(PROJECT_NAMES)]}{place // 5 or ''}"
        first = place * 2
        names = [self.brands[(first + more) % len(self.brands)] for more in range(rules.competitors + 1)]
        return SocialProject(identity, names[0], tuple(names[1:]))

    def _jobs(self, rules: MarketRules, chance: Random) -> Iterator[SearchJob]:
        searches = [(each, brand) for each in self.projects for brand in (each.brand, *each.competitors)]
        place = 0
        for project, brand in searches:
            for platform in PLATFORMS:
                batches = chance.randint(1, rules.longest) if place >= len(PLATFORMS) else rules.longest
                yield SearchJob(place, project, brand, platform, batches)
                place += 1
        for dry in range(rules.dry_runs):
            yield SearchJob(place, None, pick(self.brands, chance), PLATFORMS[dry % 2], 1)
            place += 1


def _job_id(job: SearchJob, turn: int, chance: Random) -> str:
    """In one of the shapes that have been seen. Nothing in it says which platform was searched."""
    if job.project is None:
        dry = str(UUID(int=chance.getrandbits(128), version=4))
        return dry.upper() if turn % 3 == 2 else dry
    project, slug = job.project.id, job.brand.slug
    if job.is_own:
        return f"{project}-brand-{turn}"
    if project.startswith(PROJECT_NAMES):
        which = job.project.competitors.index(job.brand)
        return f"{project}-competitor-{turn * len(job.project.competitors) + which}"
    if project.startswith(OLDER):
        return f"{project}-competitor-{slug}-{turn}" if "-" in slug else f"{project}-{slug}-{turn}"
    # Some write UUIDs in capitals.
    return f"{project.upper() if turn % 7 == 6 else project}-competitor-{slug}-{turn}"
