"""Another process that opens and closes the database takes nothing from the run that uses it."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sanderling.clock import SystemClock
from sanderling.polling.database import SqliteDatabase
from sanderling.polling.store import Store

EDIT = "import sqlite3, sys; b = sqlite3.connect(sys.argv[1]); b.execute(sys.argv[2]); b.commit(); b.close()"


@pytest.mark.real
async def test_edits_of_other_processes_are_read_again_and_again(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "polling.db")
    await database.open()
    store = Store(database, SystemClock())
    for number in range(6):
        sql = f"INSERT OR REPLACE INTO server_settings VALUES ('scheduler.burst', '{number}')"
        subprocess.run([sys.executable, "-c", EDIT, str(tmp_path / "polling.db"), sql], check=True)
        assert (await store.settings())["scheduler.burst"] == str(number)
        await store.set_settings({"own": str(number)})
    await database.close()
    with closing(sqlite3.connect(tmp_path / "polling.db")) as base:
        assert dict(base.execute("SELECT * FROM server_settings"))["own"] == "5"
