"""What the routes of polling take, and what they give. Wherever a target is named, `id` is the upstream's id."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from sanderling.apis.polled import LONGEST_INTERVAL
from sanderling.polling.control import Ingested
from sanderling.polling.settings import SHORTEST, PollingSetting
from sanderling.stores.documents import Value
from sanderling.stores.polling import PollingTarget, RowChange
from sanderling.stores.polling_rows import LONGEST_KEY
from sanderling.web.parsing import Taken
from sanderling.web.problems import Problem, problem

MOST_TARGETS = 1_000  # of a page, and of a webhook
MOST_ROWS = 10_000
MOST_CHANGES = 10_000
LARGEST = 2**63 - 1
LONGEST_VALUE = 1_000  # characters of a setting

# No database of ours can hold a NUL, and what can be stored at all is no longer than that.
Text = Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY, pattern=r"^[^\u0000]*$")]
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\u0000]*$")]
Number = Annotated[int, Meta(ge=0, le=LARGEST)]
Accelerated = Annotated[
    float, Meta(ge=0, le=86_400, description="For how many seconds to run it more often than usual; 0 for one run.")
]


# Parameters of paths and queries.


class KindAndId(Taken, frozen=True, kw_only=True):
    """Which target."""

    kind: Name
    id: Text


class KeyPath(Taken, frozen=True, kw_only=True):
    """Which setting."""

    key: Name


class TablePath(Taken, frozen=True, kw_only=True):
    """Which table."""

    table: Name


class EventPath(Taken, frozen=True, kw_only=True):
    """Which event."""

    event: Text


class EventKindPath(EventPath, frozen=True, kw_only=True):
    """Which targets of an event."""

    kind: Name


class EventTargetPath(EventKindPath, frozen=True, kw_only=True):
    """Which target of an event."""

    id: Text


class TargetsQuery(Taken, frozen=True, kw_only=True):
    """Which targets to list."""

    kind: Name | UnsetType = UNSET
    event: Text | UnsetType = UNSET
    enabled: Literal["true", "false"] | UnsetType = UNSET
    gone: Annotated[
        Literal["true", "false", "any"], Meta(description="Those that the upstream does not list any more.")
    ] = "false"
    due: Annotated[Literal["true"], Meta(description="Only those that are due now.")] | UnsetType = UNSET
    accelerated: Annotated[Literal["true"], Meta(description="Only those that are live now.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=MOST_TARGETS)] = 100
    cursor: Annotated[str, Meta(max_length=100, description="`next` of the page before.")] | UnsetType = UNSET


class RowsQuery(Taken, frozen=True, kw_only=True):
    """Which rows to list."""

    event: Text | UnsetType = UNSET
    after: Annotated[
        str, Meta(max_length=LONGEST_KEY, pattern=r"^[^\u0000]*$", description="`next` of the page before.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 1_000


class ChangesQuery(Taken, frozen=True, kw_only=True):
    """Which changes to list."""

    since: Annotated[Number, Meta(description="The number of the last change that is known.")]
    limit: Annotated[int, Meta(ge=1, le=MOST_CHANGES)] = 500


class EventsQuery(Taken, frozen=True, kw_only=True):
    """Which changes to be told."""

    since: Annotated[Number, Meta(description="The number of the last change that is known.")] | UnsetType = UNSET
    table: Name | UnsetType = UNSET
    kind: Name | UnsetType = UNSET


# Bodies.


class TargetPatch(Taken, frozen=True, kw_only=True):
    """What an admin may set of a target. null goes back to what discovery says."""

    enabled: bool | UnsetType = UNSET
    seconds: (
        Annotated[float, Meta(ge=SHORTEST / 1000, le=LONGEST_INTERVAL, description="Between two runs.")]
        | UnsetType
        | None
    ) = UNSET
    priority: Annotated[int, Meta(ge=-1000, le=1000)] | UnsetType | None = UNSET


class Promotion(Taken, frozen=True, kw_only=True):
    """How to run a target."""

    seconds: Accelerated = 0.0


class Promotions(Taken, frozen=True, kw_only=True):
    """Which targets to run, and how; all of them, if neither kind nor event is given."""

    kind: Name | UnsetType = UNSET
    event: Text | UnsetType = UNSET
    seconds: Accelerated = 0.0


class Hook(Taken, frozen=True, kw_only=True):
    """What has changed upstream: either some targets or a whole event."""

    targets: Annotated[tuple[KindAndId, ...], Meta(min_length=1, max_length=MOST_TARGETS)] | UnsetType = UNSET
    event: Text | UnsetType = UNSET


class SettingValue(Taken, frozen=True, kw_only=True):
    """What to set it to."""

    value: Annotated[str, Meta(max_length=LONGEST_VALUE)]


class Confirmation(Taken, frozen=True, kw_only=True):
    """That this is meant."""

    confirm: Annotated[bool, Meta(extra_json_schema={"const": True})]


# What is given.


class Ready(Struct, frozen=True):
    """That it polls."""

    ok: bool = True


class TargetView(Struct, frozen=True, kw_only=True):
    """A target. Times are Unix seconds, null for never; durations are seconds."""

    kind: str
    id: str
    event: str
    next_due: float
    due_in: float  # from now; below 0 if it is late
    interval: float  # between two runs, unless accelerated; 0 for none at all
    weight: int  # the priority that counts
    accelerated: bool
    wanted: bool  # whether it is polled at all
    row: int  # its number in the database
    only: tuple[str, ...] | None
    seconds: float  # by discovery, as is the priority
    priority: int
    gone: float | None
    enabled: bool  # by an admin, as are the next three
    set_seconds: float | None
    set_priority: int | None
    promote: float | None
    until: float | None
    runs: int
    missed: int
    failures: int
    asked: float | None
    fetched: float | None
    changed: float | None
    status: str
    etag: str
    modified: str
    digest: str  # in hexadecimal
    polls: float
    hits: float


class TargetPage(Struct, frozen=True, kw_only=True):
    """Some targets, those that are due first before the others."""

    targets: tuple[TargetView, ...]
    next: str | None  # the cursor of the next page; null if this is the last


class Promoted(Struct, frozen=True, kw_only=True):
    """How many targets are to run now. Those that are paused are not."""

    promoted: int


class Received(Struct, frozen=True, kw_only=True):
    """What came of a webhook."""

    promoted: int
    unknown: tuple[KindAndId, ...] = ()


class SettingView(Struct, frozen=True, kw_only=True):
    """A setting."""

    key: str
    value: str
    default: str
    meaning: str
    set: bool  # whether somebody set it


class SettingList(Struct, frozen=True, kw_only=True):
    """All settings."""

    settings: tuple[SettingView, ...]


class RowView(Struct, frozen=True, kw_only=True):
    """A row, as changes have it."""

    key: str
    values: Mapping[str, Value]


class RowPage(Struct, frozen=True, kw_only=True):
    """Some rows of a table, in the order of their keys."""

    rows: tuple[RowView, ...]
    next: str | None  # the last key; null if this is the last page
    seq: int  # follow the changes after this number, and nothing is missed


class ChangePage(Struct, frozen=True, kw_only=True):
    """Some changes, in order."""

    changes: tuple[RowChange, ...]
    newest: int  # the number of the newest there is


class Reset(Struct, frozen=True, kw_only=True):
    """What a stream says where changes are missing: read the rows anew. It goes on after `newest`."""

    oldest: int
    newest: int


class Trimming(Problem, frozen=True, kw_only=True):
    """A problem, and the changes that are to be had."""

    oldest: int
    newest: int


class IngestedView(Struct, frozen=True, kw_only=True):
    """What came of a run."""

    kind: str
    id: str
    ok: bool
    status: str
    changes: int  # rows


class IngestedList(Struct, frozen=True, kw_only=True):
    """What came of runs."""

    ingested: tuple[IngestedView, ...]
    failed: int


class Purged(Struct, frozen=True, kw_only=True):
    """How many rows were removed, by table, and how many targets."""

    removed: dict[str, int]


_SAME: tuple[str, ...] = tuple(
    sorted(set(TargetView.__struct_fields__) & set(PollingTarget.__struct_fields__) - {"id", "digest"})
)


def target_view(target: PollingTarget, wall: float) -> TargetView:
    """A target as it is shown."""
    same: dict[str, Any] = {name: getattr(target, name) for name in _SAME}
    return TargetView(
        id=target.source_id,
        row=target.id,
        digest=target.digest.hex(),
        due_in=target.next_due - wall,
        interval=target.interval,
        weight=target.weight,
        accelerated=target.until is not None and target.until > wall,
        wanted=target.wanted,
        **same,
    )


def setting_view(setting: PollingSetting) -> SettingView:
    """A setting as it is shown."""
    return SettingView(
        key=setting.key, value=setting.text, default=setting.default, meaning=setting.meaning, set=setting.set
    )


def ingested_list(done: Sequence[Ingested]) -> IngestedList:
    """Runs as they are shown."""
    views = tuple(
        IngestedView(kind=each.kind, id=each.source_id, ok=each.ok, status=each.status, changes=each.changes)
        for each in done
    )
    return IngestedList(ingested=views, failed=sum(not view.ok for view in views))


def cursor_of(target: PollingTarget) -> str:
    """Where a page ended."""
    return base64.urlsafe_b64encode(msgspec.json.encode((target.next_due, target.id))).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[float, int]:
    """Where the page before ended. Raises ProblemError."""
    try:
        text = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(text, type=tuple[float, Annotated[int, Meta(ge=0, le=LARGEST)]])
    except (UnicodeEncodeError, binascii.Error, msgspec.DecodeError, UnicodeDecodeError):
        raise problem(400, f"query: cursor is {cursor!a}, expected `next` of the page before") from None
