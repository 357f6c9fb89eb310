"""Examples for the description of polling's routes."""

from sanderling.stores.documents import Value
from sanderling.stores.polling import Op, PollingTarget, RowChange
from sanderling.web.polling_rows import change_event
from sanderling.web.polling_types import (
    Confirmation,
    Hook,
    KindAndId,
    Promotion,
    Promotions,
    SettingValue,
    TargetPatch,
)
from sanderling.web.polling_views import (
    ChangePage,
    IngestedList,
    IngestedView,
    Promoted,
    Purged,
    Received,
    RowPage,
    RowView,
    SettingList,
    SettingView,
    TargetPage,
    cursor_of,
    target_view,
)
from sanderling.web.stream import RETRY, alive

_WALL = 1_800_000_000.0
_RACE = PollingTarget(
    id=7,
    kind="race",
    source_id="4f1c",
    event="2b9e",
    seconds=10.0,
    next_due=_WALL + 3.25,
    runs=41,
    asked=_WALL - 6.75,
    fetched=_WALL - 6.75,
    changed=_WALL - 300.0,
    status="ok",
    polls=25.5,
    hits=1.25,
)
_NAME = KindAndId(kind="race", id="4f1c")
_LAP: dict[str, Value] = {"race": "4f1c", "number": 3, "seconds": 31.4}
_CHANGE = RowChange(
    seq=812, at=_WALL, op=Op.INSERT, table="laps", key="77aa", values=_LAP, kind="race", source_id="4f1c", event="2b9e"
)

TARGET = target_view(_RACE, _WALL)
PAGE = TargetPage(targets=(TARGET,), next=cursor_of(_RACE))
PATCH = TargetPatch(seconds=2.0, priority=None)
PROMOTION = Promotion(seconds=30.0)
PROMOTIONS = Promotions(kind="race", event="2b9e")
PROMOTED = Promoted(promoted=24)
HOOK = Hook(targets=(_NAME,))
RECEIVED = Received(promoted=1)
VALUE = SettingValue(value="250ms")
SETTING = SettingView(
    key="scheduler.raceActiveMs",
    value="250",
    default="200",
    meaning="How often race is asked for while it is active; 0 for no more often than usual.",
    set=True,
)
SETTINGS = SettingList(settings=(SETTING,))
ROWS = RowPage(rows=(RowView(key="77aa", values=_LAP),), next=None, seq=812)
CHANGES = ChangePage(changes=(_CHANGE,), newest=812)
STREAM = (RETRY + alive(811) + change_event(_CHANGE)).decode()
INGESTED = IngestedList(ingested=(IngestedView(kind="pilots", id="2b9e", ok=True, status="ok", changes=0),), failed=0)
CONFIRMATION = Confirmation(confirm=True)
PURGED = Purged(removed={"laps": 96, "targets": 31})
