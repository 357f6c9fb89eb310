"""Whether anything is polled: a setting, and a view of control.json in the folder of whoever polls."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from looping import in_loop
from race_polling import at_once

from sanderling.polling.live_settings import LiveSettings
from sanderling.polling.settings import ENABLED, SettingError
from sanderling.stores.control_file import FILE, Control, read_control, write_control
from sanderling.stores.documents import Schema
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.sqlite_polling import open_sqlite_polling
from sanderling.testing import LoopClock

HOSTS = frozenset({"a.example"})


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[LiveSettings, PollingStore]]:
    """The settings of whoever polls into a folder, and its database."""
    store = await open_sqlite_polling(folder / "polling.db", Schema(()), "race", at_once)
    try:
        yield LiveSettings(store, (), LoopClock(), folder), store
    finally:
        await store.close()


async def listed(live: LiveSettings) -> str:
    return next(each.text for each in await live.listed() if each.key == ENABLED)


@in_loop
async def test_it_shows_what_control_json_says_and_writes_it_there(tmp_path: Path) -> None:
    write_control(tmp_path, Control(paused=True, hosts=HOSTS, ending="drain"))
    async with opened(tmp_path) as (live, store):
        paused = (await live.read()).enabled, await listed(live)
        await live.set(ENABLED, "on")
        resumed = (await live.read()).enabled, await listed(live), read_control(tmp_path)
        await live.set(ENABLED, "no")
        switched_off = read_control(tmp_path)
        await live.set(ENABLED, None)
        stored = await store.settings()

    assert paused == (False, "false")
    assert resumed == (True, "true", Control(hosts=HOSTS, ending="drain"))
    assert switched_off == Control(paused=True, hosts=HOSTS, ending="drain")
    assert read_control(tmp_path) == Control(hosts=HOSTS, ending="drain")
    assert ENABLED not in stored


@in_loop
@pytest.mark.parametrize(("text", "paused"), [("false", True), ("off", True), ("true", False), ("maybe", False)])
async def test_what_an_earlier_release_or_another_machine_wrote_to_the_database_is_moved(
    tmp_path: Path,
    text: str,
    paused: bool,  # noqa: FBT001
) -> None:
    async with opened(tmp_path) as (live, store):
        await store.set(ENABLED, text)
        await live.adopt()
        enabled = (await live.read()).enabled
        await live.adopt()  # there is nothing left to move

        assert read_control(tmp_path) == Control(paused=paused)
        assert enabled is not paused
        assert ENABLED not in await store.settings()


@in_loop
async def test_a_file_that_makes_no_sense_leaves_it_as_it_was_and_is_not_written_over(tmp_path: Path) -> None:
    async with opened(tmp_path) as (live, _):
        await live.set(ENABLED, "off")
        (tmp_path / FILE).write_text("{")

        assert not (await live.read()).enabled
        with pytest.raises(
            SettingError, match=r"control\.json.*repair the file, or: sanderling control FOLDER resume --replace"
        ):
            await live.set(ENABLED, "on")
        assert (tmp_path / FILE).read_text() == "{"


@in_loop
async def test_without_a_folder_the_database_has_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as (_, store):
        elsewhere = LiveSettings(store, (), LoopClock())
        await elsewhere.set(ENABLED, "off")

        assert (await store.settings())[ENABLED] == "false"
        assert not (await elsewhere.read()).enabled
    assert not (tmp_path / FILE).exists()
