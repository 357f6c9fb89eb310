"""The hostile world by itself: what plain crawls do in it, and that cuts, clocks and databases are what they say."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import pytest
from fleet_clocks import clocks
from fleet_hosts import Manners, Web
from fleet_machines import NAME, crawl_of, hosts_at, wait_until
from fleet_network import Node, network
from fleet_oracle import asked_again, forbidden, read_rows, too_early, too_fast, two_senders, wrong_rows
from fleet_postgres import postgres_of_our_own, postgres_on_a_small_disk
from fleet_scene import LATE, LEASE, RPS, or_skip
from services.process import private_folder

WEB = Web((*(Manners(),) * 3, Manners(crawl_delay=0.25), Manners(quota=5, retry_after=1), Manners(slow=0.3)), 8)


def test_one_plain_crawl_of_the_hostile_hosts_breaks_no_promise(tmp_path: Path) -> None:
    with hosts_at(WEB, tmp_path) as hosts, crawl_of(hosts, tmp_path, "--rps", f"{RPS:g}") as crawl:
        machine = crawl.start("alone")

        assert crawl.finish() == {"alone": 0}
        log, rows = hosts.log(), read_rows(machine.folder / NAME)
    rates = {WEB.address(number): min(RPS, 1 / (each.crawl_delay or 1e-9)) for number, each in enumerate(WEB.manners)}
    assert two_senders(log, LEASE) == too_fast(log, rates, LATE) == too_early(log, LATE) == forbidden(log) == []
    assert asked_again(log) == {}
    assert wrong_rows(hosts.web.known(), rows) == []
    assert {each.status for each in log} == {200, 302, 404, 429}


def test_two_plain_crawls_that_do_not_know_of_each_other_are_found_out(tmp_path: Path) -> None:
    """The oracle turns red at each host, for each promise that two can break, with the rows of both as the output."""
    with hosts_at(Web(WEB.manners, 24), tmp_path) as hosts, crawl_of(hosts, tmp_path, "--rps", f"{RPS:g}") as crawl:
        machines = [crawl.start(name) for name in ("one", "other")]
        hosts.wait(200)
        log = hosts.log()
        crawl.end()
        rows = sum((read_rows(machine.folder / NAME) for machine in machines), start=Counter[str]())
    assert {each.partition(":")[0] for each in two_senders(log, LEASE)} == {WEB.address(number) for number in range(6)}
    assert any("by one, other" in each for each in too_fast(log, dict.fromkeys({each.host for each in log}, 4.0), 0.5))
    assert too_early(log, LATE) != []
    assert any(each.startswith("2 times") for each in wrong_rows(hosts.web.known(), rows))


def asks(url: str, node: Node, seconds: float = 1.0) -> bool:
    """Whether a machine gets an answer from a host."""
    code = f"import urllib.request as it; it.urlopen({url!r}, timeout={seconds}).read()"
    return not subprocess.run([*node.before, sys.executable, "-c", code], capture_output=True, check=False).returncode  # noqa: S603


def test_a_cut_loses_what_is_sent_one_way_between_two_machines_and_nothing_else(tmp_path: Path) -> None:
    with or_skip(network()) as net:
        town, one, other = net.node(serves_hosts=True), net.node(), net.node()
        web = Web((Manners(),) * 2, 8, f"10.{net.slot}", 8000)
        with hosts_at(web, tmp_path, town.before) as hosts:
            url = hosts.web.url(1, "/tree/0")
            assert asks(url, one, 10)

            net.cut(net.hosts, one.address)

            assert not asks(url, one)
            assert asks(url, other, 10)
            net.mend()
            net.cut(one.address, net.hosts)
            assert not asks(url, one)
            net.mend()
            assert asks(url, one, 10)
            assert {entry.sender for entry in hosts.log()} == {one.address, other.address}


READ = """
import json, sys, time
began = time.monotonic()
for line in sys.stdin:
    print(json.dumps([time.time(), time.monotonic() - began]), flush=True)
"""


def test_a_wrong_clock_is_ahead_runs_fast_and_can_be_set_back(tmp_path: Path) -> None:
    with ExitStack() as stack:
        clock = stack.enter_context(or_skip(clocks(tmp_path)))("wrong").set(3600.0, pace=2.0)
        environment = os.environ | dict(clock.environment)
        command, pipe = [sys.executable, "-c", READ], subprocess.PIPE
        reader = stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment))  # noqa: S603
        assert reader.stdin is not None
        assert reader.stdout is not None

        def read() -> tuple[float, float]:
            assert reader.stdin is not None
            assert reader.stdout is not None
            reader.stdin.write("\n")
            reader.stdin.flush()
            day, monotonic = json.loads(reader.stdout.readline())
            return day - time.time(), monotonic

        ahead, before = read()
        begun = time.monotonic()
        assert 3595 < ahead < 3660
        time.sleep(0.5)
        clock.set(-3600.0, pace=2.0)
        ahead, after = read()
        assert -3660 < ahead < -3540
        assert after - before == pytest.approx(2 * (time.monotonic() - begun), abs=0.3)
        reader.stdin.close()


def test_a_replica_takes_the_place_of_its_server_and_lacks_the_last_commits() -> None:
    with ExitStack() as stack:
        first, second = (Path(stack.enter_context(private_folder())) for _ in range(2))
        server = stack.enter_context(or_skip(postgres_of_our_own(first)))
        server.ask("CREATE TABLE kept (number int)")
        twin = stack.enter_context(server.replica(second))
        server.ask("INSERT INTO kept VALUES (1)")
        wait_until(lambda: twin.ask("SELECT number FROM kept") == [(1,)], "the row arrives at the replica")
        twin.starve()
        server.ask("INSERT INTO kept VALUES (2)")
        server.stop(signal.SIGKILL)
        twin.replace(server)

        assert twin.url == server.url
        assert twin.ask("SELECT number FROM kept") == [(1,)]
        twin.ask("INSERT INTO kept VALUES (3)")


def test_a_full_disk_refuses_rows_until_there_is_room() -> None:
    rows = "INSERT INTO kept SELECT repeat('x', 1000) FROM generate_series(1, 500)"
    with private_folder() as folder, or_skip(postgres_on_a_small_disk(Path(folder))) as server:
        server.ask("CREATE TABLE kept (text text)")
        server.fill()
        with pytest.raises(asyncpg.DiskFullError):
            server.ask(rows)
        server.empty()
        server.ask(rows)

        assert server.ask("SELECT count(*) FROM kept") == [(500,)]
