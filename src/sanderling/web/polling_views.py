"""What the routes of polling give: targets, settings, rows and changes as they are shown."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from sanderling.polling.control import Ingested
from sanderling.polling.settings import Setting
from sanderling.stores.documents import SourceRow, Value
from sanderling.stores.polling import PollingTarget, RowChange
from sanderling.web.polling_types import LARGEST, KindAndId
from sanderling.web.problems import Problem, problem


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


def setting_view(setting: Setting) -> SettingView:
    """A setting as it is shown."""
    return SettingView(
        key=setting.key, value=setting.text, default=setting.default, meaning=setting.meaning, set=setting.set
    )


def row_view(row: SourceRow) -> RowView:
    """A row as it is shown."""
    return RowView(key=row.key, values=row.values)


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
