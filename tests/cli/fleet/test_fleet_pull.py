"""`sanderling fleet pull` into a folder that exists, and `fleet forget`: only of the same crawl, from its own store."""

import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from command_line import QUICK, Done, here, rows, run, site
from scripted_server import ScriptedServer
from services.postgres import fresh_database

from sanderling.cli.fleet import pull as pulling
from sanderling.crawls.parts import folders_of

pytestmark = pytest.mark.timeout(120)

PAGES = 4


class KilledError(BaseException):
    """The process is gone."""


@dataclass(frozen=True)
class Shared:
    """A crawl that machines share, and the folder that it is pulled into."""

    root: Path
    name: str
    fleet: str
    objects: str

    @property
    def worker(self) -> Path:
        """The folder of the one machine."""
        return self.root / self.name

    @property
    def pulled(self) -> Path:
        """Where it is brought to."""
        return self.root / "pulled"

    async def crawl(self, url: str, *more: str) -> None:
        """Crawl it."""
        flags = ("--rps", "50", "--lease", "3", "--fleet-parts", "8", "--fleet", self.fleet, "--objects", self.objects)
        done = await here("pages", "crawl", url, "--out", str(self.worker), *QUICK, *flags, *more)
        assert done.code == 0, done

    async def pull(self) -> Done:
        """Bring it here."""
        words = ("--fleet", self.fleet, "--objects", self.objects, "--out", str(self.pulled))
        return await here("fleet", "pull", self.name, *words)

    async def forget(self) -> Done:
        """Delete it."""
        return await here("fleet", "forget", self.name, "--fleet", self.fleet, "--objects", self.objects, "--yes")

    def kept(self) -> list[str]:
        """The URLs that there are rows of."""
        return sorted(row["url"] for part in folders_of(self.pulled) for row in rows(part))


@pytest.fixture
def shared(postgres: str, tmp_path: Path) -> Iterator[Shared]:
    """A crawl whose objects are files."""
    with fresh_database(postgres) as url:
        yield Shared(tmp_path, f"weekly-{secrets.token_hex(4)}", url, f"file:{tmp_path / 'objects'}")


async def is_refused(shared: Shared, *words: str) -> None:
    """To pull there is refused with these words, and the folder is as it was."""
    before = shared.kept()
    done = await shared.pull()
    assert done.code == 2, done
    assert all(word in done.err for word in words), done.err
    assert "into another folder" in done.err
    assert shared.kept() == before


async def is_whole(shared: Shared) -> None:
    """What was pulled is right."""
    proof = await here("verify", str(shared.pulled))
    assert proof.code == 0, proof


def test_another_crawl_of_the_same_name_is_not_pulled_over_the_first(shared: Shared) -> None:
    async def main() -> None:
        async with ScriptedServer(site(PAGES)) as server:
            await shared.crawl(server.url("/"))
            assert (await shared.pull()).code == 0
            assert (await shared.forget()).code == 0
            shutil.rmtree(shared.worker)
            await shared.crawl(server.url("/1"))
            await is_refused(shared, f"the crawl {shared.name}", "another of that name")
            await is_whole(shared)

    run(main)


def test_a_folder_that_was_gone_on_with_is_not_pulled_into(shared: Shared) -> None:
    async def main() -> None:
        async with ScriptedServer(site(PAGES)) as server:
            await shared.crawl(server.url("/"), "--max-pages", "2")
            assert (await shared.pull()).code == 0
            done = await here("pages", "crawl", server.url("/"), "--out", str(shared.pulled), *QUICK)
            assert done.code == 0, done
            await is_refused(shared, "was changed since", "ledger.db")
            await is_whole(shared)

    run(main)


def test_a_crawl_of_this_machine_is_not_pulled_into(shared: Shared) -> None:
    async def main() -> None:
        async with ScriptedServer(site(PAGES)) as server:
            await shared.crawl(server.url("/"))
            local = ("pages", "crawl", server.url("/"), "--out", str(shared.pulled), *QUICK)
            assert (await here(*local, "--processes", "2")).code == 0
            await is_refused(shared, "was not pulled")
            await is_whole(shared)

    run(main)


def test_what_was_forgotten_does_not_come_back(shared: Shared) -> None:
    async def main() -> None:
        async with ScriptedServer(site(PAGES)) as server:
            await shared.crawl(server.url("/"))
            assert (await shared.pull()).code == 0
            for wish in (server.url("/none-there"), server.url("/1")):
                assert (await here("forget", str(shared.pulled), wish)).code == 0
                await is_refused(shared, "was changed since", "forgotten.json")
            assert len(shared.kept()) == PAGES
            await is_whole(shared)

    run(main)


def test_who_only_reads_it_may_pull_again(shared: Shared) -> None:
    async def main() -> None:
        async with ScriptedServer(site(PAGES)) as server:
            await shared.crawl(server.url("/"), "--max-pages", "2")
            assert (await shared.pull()).code == 0
            folder, file = str(shared.pulled), str(shared.root / "pages.csv")
            for words in (
                ("verify", folder),
                ("status", folder),
                ("show", folder, server.url("/")),
                ("pages", "failed", folder),
                ("export", folder, "--to", file),
            ):
                done = await here(*words)
                assert done.code == 0, done
            again = await shared.pull()
            assert (again.code, again.out[:7]) == (0, "0 bytes"), again
            await is_whole(shared)

    run(main)


def test_a_pull_that_was_cut_short_is_no_crawl_until_it_is_pulled_again(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with ScriptedServer(site(PAGES)) as server:
            await shared.crawl(server.url("/"), "--max-pages", "2")
            for wrong in ("PartPuller", "_finish", "end_pull"):
                with monkeypatch.context() as patch:
                    patch.setattr(pulling, wrong, cut_short)
                    with pytest.raises(KilledError):
                        await shared.pull()
                    for local in (
                        ("verify", str(shared.pulled)),
                        ("pages", "crawl", server.url("/"), "--out", str(shared.pulled), *QUICK),
                        ("pages", "crawl", server.url("/"), "--out", str(shared.pulled), *QUICK, "--processes", "2"),
                    ):
                        done = await here(*local)
                        assert done.code != 0, done
                        assert "cut short" in done.err, done
                assert (await shared.pull()).code == 0
                await is_whole(shared)

    def cut_short(*_: object, **__: object) -> None:
        raise KilledError

    run(main)


def test_damage_ends_a_pull_of_many_parts_with_a_message(shared: Shared) -> None:
    async def main() -> Done:
        async with ScriptedServer(site(PAGES)) as server:
            await shared.crawl(server.url("/"))
        for path in (shared.root / "objects").rglob("rows/*/*/*"):
            path.write_bytes(b"torn" if path.suffix != ".json" else path.read_bytes())
        return await shared.pull()

    done = run(main)

    assert done.code == 1
    assert "is damaged" in done.err


def test_parts_that_have_nothing_new_are_left_alone(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs some waiting for the disk."""
    finished, system = list[Path](), pulling.SYSTEMS["pages"]

    def finish(folder: Path, wall: float, complete: bool) -> None:  # noqa: FBT001 - by a table
        finished.append(folder)
        system.finish(folder, wall, complete)

    async def main() -> list[int]:
        async with ScriptedServer(site(PAGES)) as server:
            await shared.crawl(server.url("/"))
        counts = []
        for _ in range(2):
            assert (await shared.pull()).code == 0
            counts.append(len(finished))
        await is_whole(shared)
        return counts

    monkeypatch.setitem(pulling.SYSTEMS, "pages", system._replace(finish=finish))

    assert run(main) == [8, 8]


def test_another_store_is_refused_by_pull_and_forget(shared: Shared) -> None:
    async def main() -> None:
        async with ScriptedServer(site(PAGES)) as server:
            await shared.crawl(server.url("/"))
        elsewhere = replace(shared, objects=f"file:{shared.root / 'elsewhere'}")
        for each in (elsewhere.forget, elsewhere.pull):
            done = await each()
            assert done.code == 2, done
            assert shared.objects in done.err, done
            assert not (shared.root / "elsewhere").exists()
        assert (await shared.pull()).code == 0
        await is_whole(shared)

    run(main)
