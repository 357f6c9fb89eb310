"""A crawl of pages that several machines share goes on as that of one does: sessions, archives, and what failed."""

import json
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from command_line import Done, finish, here, rows, run, start
from cookie_wall import PAGES, cookie_wall
from part_processes import asked, site, until
from services.postgres import fresh_database
from services.s3 import S3
from warc_files import captured

from sanderling.crawls.archive import index_path
from sanderling.crawls.parts import folders_of
from sanderling.formats.cdxj import find_captures

pytestmark = pytest.mark.timeout(180)


@dataclass(frozen=True)
class Shared:
    """A crawl of a name of its own; each machine has a folder."""

    root: Path
    name: str
    fleet: tuple[str, ...]
    objects: str

    def crawl(self, machine: str, *words: str) -> list[str]:
        """What a machine runs."""
        out = self.root / machine / self.name
        flags = ("--private", "--no-parquet", "--json", "--rps", "20", "--lease", "3", "--fleet-parts", "8")
        return ["pages", "crawl", *words, "--out", str(out), *flags, *self.fleet, "--objects", self.objects]

    def of(self, *words: str) -> list[str]:
        """A command of `sanderling fleet`."""
        return ["fleet", words[0], self.name, *self.fleet, *words[1:]]

    @property
    def pulled(self) -> Path:
        """Where it is brought to."""
        return self.root / "pulled"

    async def pull(self) -> Done:
        """Make a folder of it, which is right."""
        done = await here(*self.of("pull", "--objects", self.objects, "--out", str(self.pulled)))
        assert done.code == 0, done
        proof = await here("verify", str(self.pulled), "--json")
        assert proof.code == 0, proof
        return done


@pytest.fixture
def shared(postgres: str, tmp_path: Path) -> Iterator[Shared]:
    """A crawl whose objects are files."""
    with fresh_database(postgres) as url:
        yield Shared(tmp_path, f"pages-{secrets.token_hex(4)}", ("--fleet", url), f"file:{tmp_path / 'objects'}")


def test_whoever_takes_a_host_over_goes_on_in_its_session(shared: Shared) -> None:
    async def main() -> tuple[list[str], Done]:
        async with cookie_wall() as wall:
            first = await start(*shared.crawl("one", wall.url))
            await until(lambda: len(wall.asked) > 6)
            first.kill()  # -9
            await first.communicate()
            assert len(wall.asked) < PAGES
            second = await here(*shared.crawl("two", wall.url))
            await shared.pull()
            return wall.refused, second

    refused, second = run(main)

    assert refused == []
    assert second.code == 0, second
    assert json.loads(second.out)["pages"] == PAGES + 1
    # They may let somebody in: no file has them.
    files = [path for path in shared.root.rglob("*") if path.is_file()]
    assert not [path for path in files if path.name == "cookies.json" or b'"sid"' in path.read_bytes()]


def test_a_warc_of_many_machines_has_each_page_once_and_others_read_it(shared: Shared, s3: S3) -> None:
    login, place = f"{s3.access_key_id}:{s3.secret_access_key}", s3.endpoint.removeprefix("http://")
    shared = replace(shared, objects=f"s3+http://{login}@{place}/{s3.bucket}")

    async def main() -> tuple[set[str], Done]:
        async with site() as server:
            words = [server.url(host.name) for host in server.world.hosts] + ["--keep", "warc"]
            first = await start(*shared.crawl("one", *words))
            await until(lambda: asked(server) > 20)
            second = await start(*shared.crawl("two", *words))
            await until((shared.root / "two" / shared.name / "copies").is_dir)
            before = asked(server)
            await until(lambda: asked(server) > before + 20)
            first.kill()  # -9
            await first.communicate()
            await shared.pull()
            done = await finish(second)
            assert done.code == 1, done  # two broken links on each host
            await shared.pull()
            again = await shared.pull()
            assert again.out.startswith("0 bytes of rows")
            url = server.url(server.world.hosts[3].name)
            return {url}, await here("show", str(shared.pulled), url)

    urls, show = run(main)

    kept = [(part, row) for part in folders_of(shared.pulled) for row in rows(part)]
    assert len(kept) > 60
    assert Counter(url for part in folders_of(shared.pulled) for url in captured(part)) == Counter(
        row["url"] for _, row in kept
    )
    for part, row in kept:
        (found,) = find_captures(index_path(part, 1), row["url"])
        assert (found[1].filename, found[1].offset) == (row["warc_file"], str(row["warc_offset"]))
    assert urls <= {row["url"] for _, row in kept}
    assert show.code == 0, show


def test_what_failed_is_asked_again_once_when_somebody_wants_that(shared: Shared) -> None:
    async def main() -> tuple[list[Done], list[int]]:
        async with site() as server:
            words = [server.url(host.name) for host in server.world.hosts[:2]]
            first = await start(*shared.crawl("one", *words))
            await until(lambda: asked(server) > 3)
            early = await here(*shared.of("retry"))
            assert (early.code, "by those who work on it" in early.out) == (0, True), early
            done, counts = [await finish(first)], [asked(server)]
            done.append(await here(*shared.crawl("one", *words)))
            counts.append(asked(server))
            done.append(await here(*shared.of("retry")))
            for machine in ("one", "two"):
                done.append(await here(*shared.crawl(machine, "--resume")))
                counts.append(asked(server))
            await shared.pull()
            status = [await here(*shared.of("status")), await here(*shared.of("status", "--json"))]
            assert " pages, 4 failed, 0 URLs wait; done" in status[0].out
            assert json.loads(status[1].out)["failed"] == 4
            return done, counts

    done, counts = run(main)

    assert [each.code for each in done] == [1, 1, 0, 1, 1], done  # as one process ends where something failed
    failed = sum(len(rows(part, "failed.jsonl")) for part in folders_of(shared.pulled))
    assert failed == 4  # two broken links on each host
    assert {json.loads(done[number].out)["failed"] for number in (0, 1, 3, 4)} == {failed}
    robots = 2  # which a new run may ask for
    assert counts[1] == counts[0]
    assert failed <= counts[2] - counts[1] <= failed + robots
    assert counts[3] == counts[2]


def test_a_larger_bound_of_pages_goes_on(shared: Shared) -> None:
    async def main() -> tuple[list[Done], int]:
        async with site() as server:
            words = [server.url(host.name) for host in server.world.hosts[:3]]
            done = [await here(*shared.crawl("one", *words, "--max-pages", "10"))]
            done.append(await here(*shared.crawl("one", "--resume")))
            await shared.pull()
            return done, sum(len([*host.ends()]) for host in server.world.hosts[:3])

    assert_went_on(shared, *run(main))


def test_a_larger_bound_of_hosts_goes_on_with_a_retry(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> tuple[list[Done], int]:
        async with site() as server:
            words = [server.url(host.name) for host in server.world.hosts[:3]]
            monkeypatch.setenv("SANDERLING_PAGES_MAX_PER_HOST", "3")
            done = [await here(*shared.crawl("one", *words))]
            monkeypatch.delenv("SANDERLING_PAGES_MAX_PER_HOST")
            done.append(await here(*shared.of("retry")))
            done.append(await here(*shared.crawl("one", "--resume")))
            await shared.pull()
            return done, sum(len([*host.ends()]) for host in server.world.hosts[:3])

    assert_went_on(shared, *run(main))


def assert_went_on(shared: Shared, done: list[Done], known: int) -> None:
    assert {each.code for each in done} <= {0, 1}, done  # some links are broken
    assert json.loads(done[0].out)["pages"] < known / 2
    assert sum(len(rows(part)) + len(rows(part, "failed.jsonl")) for part in folders_of(shared.pulled)) == known
