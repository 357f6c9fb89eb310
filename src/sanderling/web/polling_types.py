"""What the routes of polling take. In paths, and wherever a target is named, `id` is the upstream's id."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from sanderling.apis.polled import LONGEST_INTERVAL
from sanderling.polling.settings import SHORTEST
from sanderling.stores.polling_rows import LONGEST_KEY
from sanderling.web.parsing import Taken

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


class EventKindPath(Taken, frozen=True, kw_only=True):
    """Which targets of an event."""

    event: Text
    kind: Name


class EventTargetPath(Taken, frozen=True, kw_only=True):
    """Which target of an event."""

    event: Text
    kind: Name
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
