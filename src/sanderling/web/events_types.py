"""What the routes of `events` take, and what of it is meant.

Dates are ISO 8601, a day or a moment, and of UTC where they do not say otherwise. A day as `to_date` is meant to its
end; a moment is meant up to itself, without it.
"""

from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Literal, NamedTuple, TypeVar

from msgspec import UNSET, Meta, UnsetType

from sanderling.events.analysis.impact import Risk
from sanderling.events.analysis.sentiment import Label
from sanderling.stores.analytics import ErrorFilter, Granularity, PostFilter, Sort
from sanderling.stores.queue import LONGEST_KEY
from sanderling.web.events_envelope import BAD_DATE, DEEPEST, EPOCH, TOO_DEEP, refused
from sanderling.web.parsing import Taken

LARGEST = 2**63 - 1
MOST_POSTS = 10_000  # without pages
MOST_KEYS = 1_000  # of dead letters that are named at once
DAY = 86_400.0

C = TypeVar("C", PostFilter, ErrorFilter)

_ISO = {"anyOf": [{"format": "date"}, {"format": "date-time"}]}

Project = Annotated[str, Meta(max_length=256, description="Empty for what belongs to none, as after a dry run.")]
Name = Annotated[str, Meta(max_length=256)]
Code = Annotated[str, Meta(max_length=64)]
From = Annotated[str, Meta(max_length=40, description="ISO 8601: from that day or moment on.", extra_json_schema=_ISO)]
To = Annotated[
    str,
    Meta(max_length=40, description="ISO 8601: to the end of that day, or up to that moment.", extra_json_schema=_ISO),
]
PageNumber = Annotated[int, Meta(ge=1, le=DEEPEST + 1, description=f"At most {DEEPEST:,} rows may be before it.")]
PageSize = Annotated[int, Meta(ge=1, le=100)]


# Parameters of paths and queries.


class PostPath(Taken, frozen=True, kw_only=True):
    """Which post, by its number here."""

    id: Annotated[int, Meta(ge=1, le=LARGEST)]


class EventScope(Taken, frozen=True, kw_only=True):
    """Of what."""

    project_id: Project
    brand_name: Name | UnsetType = UNSET
    keyword: Annotated[Name, Meta(description="What was searched for.")] | UnsetType = UNSET
    platform: Annotated[str, Meta(max_length=32)] | UnsetType = UNSET
    from_date: From | UnsetType = UNSET
    to_date: To | UnsetType = UNSET


class Chosen(EventScope, frozen=True, kw_only=True):
    """Which posts."""

    sentiment: Label | UnsetType = UNSET
    risk_level: Risk | UnsetType = UNSET
    intent: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET  # their list is a file that people may change
    is_viral: bool | UnsetType = UNSET
    is_kol: bool | UnsetType = UNSET


class Sorted(Chosen, frozen=True, kw_only=True):
    """Which posts, and in which order."""

    sort_by: Sort = "analyzed_at"
    order: Literal["asc", "desc"] = "desc"


class PostsQuery(Sorted, frozen=True, kw_only=True):
    """Which page of which posts."""

    page: PageNumber = 1
    page_size: PageSize = 20


class AllPostsQuery(Sorted, frozen=True, kw_only=True):
    """Which posts, and how many."""

    limit: Annotated[int, Meta(ge=1, le=MOST_POSTS)] = 1_000


class TrendsQuery(Chosen, frozen=True, kw_only=True):
    """Which posts, between which dates, by what."""

    from_date: From
    to_date: To
    granularity: Granularity = "day"


class KeywordsQuery(Chosen, frozen=True, kw_only=True):
    """Which posts, and how many keywords."""

    limit: Annotated[int, Meta(ge=1, le=50)] = 20


class AlertsQuery(EventScope, frozen=True, kw_only=True):
    """Of what, and how many of each sort."""

    limit: Annotated[int, Meta(ge=1, le=100)] = 10


class ErrorsChosen(Taken, frozen=True, kw_only=True):
    """Which errors."""

    project_id: Project | UnsetType = UNSET
    job_id: Name | UnsetType = UNSET
    error_code: Code | UnsetType = UNSET
    error_category: Code | UnsetType = UNSET
    from_date: From | UnsetType = UNSET
    to_date: To | UnsetType = UNSET


class ErrorsQuery(ErrorsChosen, frozen=True, kw_only=True):
    """Which page of which errors."""

    page: PageNumber = 1
    page_size: PageSize = 20


class DeadQuery(Taken, frozen=True, kw_only=True):
    """Which dead letters to list."""

    after: Annotated[str, Meta(max_length=LONGEST_KEY, description="`next` of the page before.")] = ""
    limit: PageSize = 20


# Bodies.


class ModesGiven(Taken, frozen=True, kw_only=True):
    """Which formats to process from now on, all of it: what is left out would be switched back unnoticed."""

    new: bool
    legacy: bool
    inline: bool
    canary: Annotated[float, Meta(ge=0, le=1, description="The share of new messages that are processed.")]


class Replay(Taken, frozen=True, kw_only=True):
    """Which dead letters to process again: some, or all."""

    keys: (
        Annotated[
            tuple[Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY)], ...],
            Meta(min_length=1, max_length=MOST_KEYS),
        ]
        | UnsetType
    ) = UNSET
    all: Annotated[bool, Meta(extra_json_schema={"const": True})] | UnsetType = UNSET


# What is meant.


class Moment(NamedTuple):
    """A date as it was given, in Unix seconds; `day` if it is a whole day."""

    seconds: float
    day: bool


def read_moment(name: str, text: str) -> Moment:
    """The date that a parameter has. Raises ProblemError."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        expected = "expected a date or date-time in ISO 8601, its + written as %2B"
        raise refused(BAD_DATE, f"query: {name} is {text!a:.100}, {expected}") from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return Moment((found - EPOCH).total_seconds(), _is_day(text))


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def read_span(from_date: str | UnsetType, to_date: str | UnsetType) -> tuple[float | None, float | None]:
    """From when on and until before when. Raises ProblemError, also if the end is before the beginning."""
    start = None if from_date is UNSET else read_moment("from_date", from_date).seconds
    if to_date is UNSET:
        return start, None
    end, day = read_moment("to_date", to_date)
    end += DAY * day
    if start is not None and (start > end or (day and start == end)):
        found = f"from_date is {from_date!a:.100} and to_date is {to_date!a:.100}"
        raise refused(BAD_DATE, f"query: {found}, expected the former not to be after the latter")
    return start, end


def filter_of(kind: type[C], chosen: EventScope | ErrorsChosen) -> C:
    """Which rows are meant: what was given, by the same names, and dates as Unix seconds. Raises ProblemError."""
    start, end = read_span(chosen.from_date, chosen.to_date)
    given = {name: getattr(chosen, name, UNSET) for name in kind.__struct_fields__}
    known = {name: value for name, value in given.items() if value is not UNSET}
    fields = {name: value.value if isinstance(value, Enum) else value for name, value in known.items()}
    if "platform" in fields:
        fields["platform"] = fields["platform"].lower()  # as it is stored
    return kind(**fields | {"from_date": start, "to_date": end})


def offset_of(page: int, size: int) -> int:
    """How many rows are before a page. Raises ProblemError if that are too many."""
    offset = (page - 1) * size
    if offset > DEEPEST:
        raise refused(TOO_DEEP, f"query: {offset:,} rows are before page {page:,}, expected at most {DEEPEST:,}")
    return offset
