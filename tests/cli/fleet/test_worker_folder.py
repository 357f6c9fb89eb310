"""The folder of a worker of a fleet, which has copies only: commands say so, and `status` tells of the worker."""

import json
import secrets
from pathlib import Path

import pytest
from command_line import QUICK, Done, here, run, running, site
from part_processes import until
from scripted_server import ScriptedServer
from services.postgres import fresh_database

pytestmark = pytest.mark.timeout(120)


def test_what_is_not_in_the_folder_of_a_worker_is_said_to_be_in_the_fleet(postgres: str, tmp_path: Path) -> None:
    name = f"example-{secrets.token_hex(4)}"
    folder = tmp_path / name
    fleet = ("--lease", "3", "--fleet-parts", "8", "--objects", f"file:{tmp_path / 'objects'}")

    async def main(url: str) -> list[Done]:
        async with ScriptedServer(site(4)) as server:
            words = ("pages", "crawl", server.url(), "--out", str(folder), *QUICK, *fleet, "--fleet", url)
            async with running(*words):
                await until(lambda: (folder / "copies").is_dir() and (folder / "status.json").exists())
                runs = await here("status", str(folder), "--json")
            assert json.loads(runs.out)["status"] is not None, runs
            said = await here("status", str(folder))
            assert (said.code, said.out.count(f"sanderling fleet status {name}")) == (0, 1), said
            done = [
                await here("verify", str(folder)),
                await here("export", str(folder), "--to", str(tmp_path / "pages.csv")),
                await here("show", str(folder), server.url()),
                await here("pages", "failed", str(folder)),
                await here("pages", "crawl", server.url(), "--out", str(folder), *QUICK),
                await here("forget", str(folder), server.url()),
                await here("forget", str(folder), server.url(), "--dry-run"),
            ]
            assert not (folder / "forgotten.json").exists()
            return done

    with fresh_database(postgres) as url:
        ended = run(lambda: main(url))
    for done in ended:
        assert done.code == 2, done
        assert f"sanderling fleet pull {name} " in done.err, done
        assert "worker of a fleet" in done.err, done
