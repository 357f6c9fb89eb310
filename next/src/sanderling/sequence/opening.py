"""How a run is opened: which API, where it starts, and what an earlier run has left."""

import os
import runpy
import traceback
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from pathlib import Path
from random import Random

import msgspec

from sanderling.clock import Clock
from sanderling.fetch.client import Client
from sanderling.fetch.messages import Headers
from sanderling.fetch.options import limiter_for
from sanderling.files import FolderError, FolderLock, make_folder, read_small
from sanderling.forms import read_durations
from sanderling.ids import UrlError, host_of
from sanderling.observe.alerts import open_alerts
from sanderling.options import OptionError
from sanderling.records.rows import RowWriter
from sanderling.sequence.crawl import SequenceParts, SequenceRun
from sanderling.sequence.description import Description, IdApi, described
from sanderling.sequence.follower import Position, ranges_of
from sanderling.sequence.options import SequenceOptions
from sanderling.sequence.readings import Metrics, Prometheus
from sanderling.sequence.retries import Reason
from sanderling.sequence.store import ROWS, Missed, SavedState, SequenceBatch, SequenceStore
from sanderling.sequence.storing import Storing
from sanderling.sequence.targets import RETRY_BATCH, RetryQueue, open_targets
from sanderling.systems import check_edition

SHIPPED = files("sanderling.sequence") / "apis"


def shipped_names() -> list[str]:
    """The descriptions that come with Sanderling."""
    return sorted(each.name.removesuffix(".toml") for each in SHIPPED.iterdir() if each.name.endswith(".toml"))


def read_description(api: str, base: str = "", id_: str = "", time: str = "") -> Description:
    """The description that `api` names. Raises OptionError."""
    changed = {name: value for name, value in (("id", id_), ("time", time)) if value}
    if "{id}" in api or "{ids}" in api:
        return described({"url": api, **changed}, "API", base)
    if api.endswith(".py"):
        return described(_run_file(api), api, base)
    if api in shipped_names():
        content = (SHIPPED / f"{api}.toml").read_bytes()
    elif api.endswith(".toml"):
        content = read_small(Path(api))
    else:
        raise OptionError(
            f"API: found {api[:100]!r}, expected an address with {{id}}, a file .toml or .py, or one of "
            f"{', '.join(shipped_names())}"
        )
    try:
        return described({**msgspec.toml.decode(content), **changed}, api, base)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{api} is not TOML: {error}") from None


def _run_file(api: str) -> Description:
    """The `description` of a file of Python, which is run: it is the user's own program."""
    read_small(Path(api))  # says what is wrong with the file itself
    try:
        written = runpy.run_path(api).get("description")
    except Exception as error:  # noqa: BLE001 - whatever the program raises
        where = traceback.extract_tb(error.__traceback__)[-1]
        line = error.lineno if isinstance(error, SyntaxError) else where.lineno
        raise OptionError(f"{api}, line {line}: {type(error).__name__}: {error}") from None
    if not isinstance(written, Description):
        raise OptionError(f"{api}: found no `description`, expected one of type Description")
    return written


def key_headers(description: Description) -> Headers:
    """The header that carries the key, if the environment has one."""
    key = os.environ.get(description.key_variable, "") if description.key_variable else ""
    return ((description.key_header, key),) if key else ()


@asynccontextmanager
async def open_run(options: SequenceOptions, clock: Clock) -> AsyncIterator[SequenceRun]:
    """Open the sequence in the folder, or begin it."""
    make_folder(options.out)
    check_edition(options.out)
    with FolderLock(options.out):
        async with AsyncExitStack() as stack:
            yield await _open(stack, options, clock)


async def _open(stack: AsyncExitStack, options: SequenceOptions, clock: Clock) -> SequenceRun:
    store = await stack.enter_async_context(SequenceStore(options.out))
    state = store.state
    api = options.api or state.api
    if not api:
        raise OptionError("API is missing; expected an address with {id}, as in https://api.example.org/things/{id}")
    plan = options.plan()
    if not store.is_new:
        if options.api and state.api != options.api:
            raise FolderError(f"{options.out} follows {state.api}, not {options.api}", "choose another folder")
        if options.api:
            _check_plan(options, state)
        else:
            options = SequenceOptions(**{**state.plan, **options.given})
            plan = state.plan
    base = options.base or state.base
    description = read_description(api, base, options.id, options.time)
    try:
        host = host_of(description.url.replace("{ids}", "1").replace("{id}", "1"))
    except UrlError as error:
        raise OptionError(f"API: {error}") from None
    targets, database = await open_targets(stack, options, clock, game=description.game)
    batch = SequenceBatch()
    if store.is_new or options.from_latest:
        state, batch = _begin(options, state, await database.latest() if database is not None else None, clock)
    state.api, state.plan, state.game = api, plan, description.game
    state.base, state.revisit = base, options.revisit or state.revisit
    rows = RowWriter(options.out, ROWS, state.files)
    stack.callback(rows.close)
    limiter = limiter_for(options, clock=clock)
    if state.limiter:
        limiter.restore(host, state.limiter)
    client = await stack.enter_async_context(Client(options, limiter, clock=clock))
    alerts = await stack.enter_async_context(open_alerts(options, clock))
    prometheus = None
    if options.prometheus:
        prometheus = await stack.enter_async_context(Prometheus(options.prometheus, clock))
    retry_queue = None
    if options.queue:
        from sanderling.stores.rabbitmq import QueueConsumer  # noqa: PLC0415 - an extra

        consumer = await stack.enter_async_context(QueueConsumer(options.queue, options.retry_queue, RETRY_BATCH))
        retry_queue = RetryQueue(consumer, clock)
    storing = Storing(store, rows, targets, clock, Random(), read_durations(state.revisit), batch)
    parts = SequenceParts(
        options, IdApi(description), host, store, storing, Metrics(prometheus, alerts, clock), client, limiter, alerts,
        clock, Random(), key_headers(description), retry_queue,
    )  # fmt: skip
    return SequenceRun(parts, state)


def _check_plan(options: SequenceOptions, state: SavedState) -> None:
    for name, value in options.plan().items():
        if name in state.plan and state.plan[name] != value:
            flag = options.fields[name].typed_as
            raise FolderError(
                f"{options.out} was begun with {flag} {state.plan[name]}, not {value}", "choose another folder"
            )


def _begin(
    options: SequenceOptions, state: SavedState, latest: int | None, clock: Clock
) -> tuple[SavedState, SequenceBatch]:
    """Where a new sequence starts, or one that is told to start anew at the latest record; and what that leaves out."""
    batch = SequenceBatch()
    if options.from_latest:
        latest = max(filter(None, (latest, state.position.newest)), default=None)
    elif options.begin is not None:
        return SavedState(begin=options.begin, position=Position(options.begin)), batch
    elif options.target is not None:
        latest = options.target
    if latest is None:
        raise OptionError(
            "--begin or --target is missing; expected the id to start at, or --database with records in it"
        )
    first, position = max(0, latest - options.buffer), state.position
    if not position.next:
        return SavedState(begin=first, position=Position(first)), batch
    if first > position.next:  # what is passed over is missed, and some of it is asked again
        wall = clock.wall()
        ranges = [*ranges_of(position.open), (position.next, first - 1)]
        batch.missed = [Missed(low, high, Reason.GAP, 1, wall, wall) for low, high in ranges]
        state.position = Position(first, rate=position.rate, margin=position.margin)
    return state, batch  # what lies behind was requested, and is not stored twice
