"""Do bad items and bad hosts cost only themselves? Hostile worlds, in virtual time and with the real command.

Some pages of a site are cut, late or never there; hosts hang, go away or come back; ids that were missed are overdue
by the thousand beside new ones. Hosts of repos refuse everything, are dead or fail half; an upstream that is polled is
slow or away, or the store is; three objects of a thousand are bad. `--only WORD` runs the parts that have the word in
their name (sites, hanging, gone, patience, ids, restart, command, repos, polling, events), `--seed N` makes others.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, pairwise, product
from math import inf, isfinite
from pathlib import Path

from harness import Report, at_least, at_most
from poisoned_drive import (
    EPOCH,
    FIRST_ID,
    RATE,
    IdsJob,
    IdsRun,
    PagesRun,
    crawl_ids,
    crawl_pages,
    make_state,
    read_rows,
    run_command,
)
from poisoned_events import EVENTS
from poisoned_polling import POLLING
from poisoned_repos import REPOS
from poisoned_table import Part, Table, count
from poisoned_worlds import (
    FAULTS,
    FITTING,
    Fault,
    Listener,
    Numbers,
    Site,
    Web,
    make_branching_site,
    make_site,
    make_slow_site,
)

SEED = 7_041
MOST_ASKED = 4  # requests that a bad page of a good host may cost
PAUSE = 19.5  # seconds; the longest that a breaker stays open at first, which doubles with each probe that fails
QUOTAS = (1.2, 1.5, 3.0)  # times RATE: what the head needs is one request for each new id
OVERDUE = 20_000
MISSED_THAT_EXIST = {0: "none", 3: "a third"}  # by every how-manieth


def sites(table: Table, folder: Path, seed: int) -> None:
    """One site of 120 pages, some of which are bad."""
    for each in range(seed, seed + 3):
        clean = crawl_pages(folder / f"clean {each}", web := plain_web(each), seeds := home(web))
        (site,) = web.sites.values()
        allowed = 1.5 * clean.asked.last(site.urls()) + 60
        table.report.figures[f"sites: clean, seed {each}, s"] = round(clean.asked.last(site.urls()), 1)
        for number, (fault, position, some) in enumerate(product(FAULTS, ("first", "middle", "last"), (2, 20))):
            (site,) = (web := plain_web(each)).sites.values()
            site.poison(fault, position, some)
            run = crawl_pages(folder / f"site {each} {number}", web, seeds)
            judge_site(table, f"seed {each}, {fault}, {position}, {some} of 120", site, run, allowed)


def plain_web(seed: int) -> Web:
    """One site that a seed has made."""
    return Web([make_site("http://site.example", seed)], seed)


def home(web: Web) -> list[str]:
    """The home page of each site."""
    return [site.url("/") for site in web.sites.values()]


def judge_site(table: Table, case: str, site: Site, run: PagesRun, allowed: float) -> None:
    """What bad pages may cost."""
    good, counts = site.good(), run.asked.counts()
    bad = {site.url(path): FITTING[fault] for path, fault in site.bad.items()}
    last = run.asked.last(good)
    rows = set(run.rows)
    table.judge(
        f"{case}; last good page after {last:.0f} s of {allowed:.0f}, all after {run.seconds:.0f}",
        count("sites: good pages not fetched", set(good) - rows),
        at_most("sites: last good page, in 1.5 x clean + 60 s", 1, last / allowed),
        at_most("sites: requests for a bad page", MOST_ASKED, max(counts[url] for url in bad)),
        count("sites: bad pages without a reason that fits", (u for u in bad if run.failed.get(u) not in bad[u])),
        count("sites: good pages with a reason", set(good) & run.failed.keys()),
        at_most("sites: pages set aside", 0, run.set_aside),
        at_most("sites: crawls not complete", 0, not run.complete),
    )


def hanging(table: Table, folder: Path, seed: int) -> None:
    """32 hosts that answer robots.txt and nothing else, beside 20 good ones."""
    good = [make_site(f"http://good{number}.example", seed + number, 60) for number in range(20)]
    wanted = [url for site in good for url in site.urls()]
    homes = [site.url("/") for site in good]
    alone = crawl_pages(folder / "alone", Web(good, seed), homes).asked.last(wanted)
    for way in ("seeds", "links"):
        bad = [Site(f"http://bad{number}.example", {}) for number in range(32)]
        lost = [site.url(f"/lost/{number}") for site in bad for number in range(20)]
        for site in bad:
            site.bad = {f"/lost/{number}": Fault.SILENT for number in range(20)}
        first, seeds, allow = list(good), [*lost, *homes], [site.origin.removeprefix("http://") for site in bad]
        if way == "links":
            links = "".join(f'<a href="{url}">lost</a>' for url in lost).encode()
            body = good[0].pages["/"].replace(b"<ul>", links + b"<ul>")
            first[0], seeds = Site(good[0].origin, {**good[0].pages, "/": body}), homes
        web = Web([*first, *bad], seed)
        run = crawl_pages(folder / f"beside by {way}", web, seeds, allow=allow if way == "links" else ())
        last, counts = run.asked.last(wanted), run.asked.counts()
        table.judge(
            f"32 hang, by {way}: last good page after {last:.0f} s, alone {alone:.0f}; all after {run.seconds:.0f}",
            count("hanging: good pages not fetched", set(wanted) - set(run.rows)),
            at_most("hanging: last good page, in times of the good hosts alone", 1.2, last / alone),
            count("hanging: pages never asked that have a reason", (url for url in run.failed if not counts[url])),
            count("hanging: good pages with a reason", set(wanted) & run.failed.keys()),
        )


def gone(table: Table, folder: Path, seed: int) -> None:
    """A host goes away for good after 40 pages, and is there again in the next run."""
    for fault in (Fault.REFUSED, Fault.SILENT, Fault.ERROR):
        site = make_branching_site("http://gone.example", seed)
        web = Web([site], seed)
        site.trouble = lambda _now, web=web, fault=fault: fault if len(web.asked.served) >= 40 else Fault.NONE  # type: ignore[misc]
        one = crawl_pages(folder / f"gone {fault}", web, home(web))
        waiting = [url for url in first_found(site) if url not in set(one.rows)]
        site.trouble = lambda _now: Fault.NONE
        epoch = EPOCH + one.seconds + 3600
        two = crawl_pages(folder / f"gone {fault}", web, home(web), epoch=epoch)
        order = list(dict.fromkeys(url for _, url in two.asked.requests if not url.endswith("/robots.txt")))
        others = [order.index(url) for url in order if url not in waiting]
        overtaken = sum(order.index(url) > min(others, default=len(order)) for url in waiting if url in order)
        twice = len(two.rows) - len(set(two.rows))
        table.judge(
            f"gone, {fault}: {len(one.rows)} pages in {one.seconds:.0f} s, then {len(two.rows)} in {two.seconds:.0f} s",
            count("gone: pages failed in the first run", one.failed),
            at_most("gone: first runs that call themselves complete", 0, one.complete),
            at_most("gone: waiting pages not counted as set aside", 0, len(waiting) - one.set_aside),
            at_most("gone: second runs not complete", 0, not two.complete),
            count("gone: pages not fetched after the second run", set(site.urls()) - set(two.rows)),
            at_most("gone: rows twice", 0, twice),
            at_most("gone: waiting pages asked behind newly found ones", 0, overtaken),
        )


def first_found(site: Site) -> list[str]:
    """What the home page of a branching site lists."""
    return [url for url in site.urls() if url.count("/") == 4]


def patience(table: Table, folder: Path, seed: int) -> None:
    """A host fails for a minute, of which --patience is a twelfth; another keeps the process running."""
    for fault in (Fault.ERROR, Fault.REFUSED, Fault.RESET):
        site = make_site("http://site.example", seed)
        site.trouble = lambda now, fault=fault: fault if 5 <= now < 65 else Fault.NONE  # type: ignore[misc]
        slow = make_slow_site("http://slow.example", 200, 2048, 3)
        run = crawl_pages(
            folder / f"patience {fault}", Web([site, slow], seed), [site.url("/"), slow.url("/slow/0")], patience=5.0
        )
        last = min(run.asked.last(site.urls()), run.seconds)
        times = [at for at, url in run.asked.requests if url.startswith(site.origin)]
        silences = [later - one for one, later in pairwise([*times, max(times[-1], last)]) if later - one > 5]
        silence = max(each / (PAUSE * 2**number) for number, each in enumerate(silences))
        table.judge(
            f"patience 5 s, {fault} for a minute: crawled after {last:.0f} s, all after {run.seconds:.0f}",
            at_most("patience: silence, in pauses of the breaker", 1.05, silence),
            count("patience: pages not fetched", set(site.urls()) - set(run.rows)),
            count("patience: slow pages not fetched", set(slow.urls()) - set(run.rows)),
            at_most("patience: crawls not complete", 0, not run.complete),
        )


def ids(table: Table, folder: Path, seed: int) -> None:
    """New ids beside 20,000 that are overdue, under three quotas."""
    jobs: dict[float, list[IdsJob]] = {}  # the first of each is that without missed ids
    for quota in QUOTAS:
        cap = quota * RATE
        fair = OVERDUE / (cap - RATE)  # seconds in which what new ids leave over is enough for all the others
        jobs[quota] = [
            IdsJob(seed, 0, cap, 0, fair + 600, fair + 600),
            *(IdsJob(seed, every, cap, OVERDUE, 600, 2 * fair + 600) for every in MISSED_THAT_EXIST),
        ]
    with ProcessPoolExecutor(2) as pool:
        runs = {job: pool.submit(crawl_ids, folder / f"{n}.db", job) for n, job in enumerate(chain(*jobs.values()))}
        for quota, (alone, *others) in jobs.items():
            for job in others:
                case = f"ids: {quota:g} x the head, {MISSED_THAT_EXIST[job.every]} of the missed exist"
                judge_ids(table, case, runs[job].result(), runs[alone].result(), job.cap)


def judge_ids(table: Table, case: str, run: IdsRun, alone: IdsRun, cap: float) -> None:
    """What overdue ids may cost new ones, and the other way round."""
    both = min(run.shared, run.seconds)
    lag, usual = run.lag(0.95, both), alone.lag(0.95, both)
    need = min(alone.new / alone.seconds, 0.9 * cap)
    share = run.missed / max(1, run.new + run.missed)
    table.judge(
        f"{case}: lag p95 {lag:.2f} s, alone {usual:.2f}; missed had {share:.0%} "
        f"until all were asked after {run.shared:.0f} s; new {run.new / both:.1f}/s, alone {need:.1f}",
        at_most("ids: lag p95 of new ids, in that without missed ones", 1.2, lag / usual),
        at_most("ids: overdue ids never asked", 0, run.unasked),
        at_least("ids: share of missed ids while both want", 0.05, share),
        at_least("ids: requests for new ids, in what these need", 0.97, run.new / both / need),
    )


def restart(table: Table, folder: Path, seed: int) -> None:
    """The first ten minutes after a start: with a million overdue ids, and with an API that takes a second."""
    for missed, latency in ((1_000_000, 0.1), (OVERDUE, 1.0)):
        jobs = [IdsJob(seed, 3, 1.5 * RATE, some, 600, 600, latency) for some in (missed, 0)]
        paths = [folder / f"{missed} {job.missed}.db" for job in jobs]
        with ProcessPoolExecutor(2) as pool:
            run, alone = pool.map(crawl_ids, paths, jobs)
        case = f"restart: {missed:,} overdue, answers in {latency:g} s"
        lag, usual, share = run.lag(0.95), alone.lag(0.95), run.missed / max(1, run.new + run.missed)
        table.report.figures |= {f"{case}: CPU s": round(run.cpu, 2), f"{case}: CPU s without": round(alone.cpu, 2)}
        table.judge(
            f"{case}: lag p95 {lag:.2f} s, alone {usual:.2f}; CPU {run.cpu:.1f} s, alone {alone.cpu:.1f}; "
            f"missed had {share:.0%}",
            at_most("restart: lag p95 of new ids, in that without missed ones", 1.2, lag / usual),
            at_least("restart: share of missed ids while both want", 0.05, share),
        )


async def command_cut(table: Table, folder: Path, seed: int) -> None:
    """Two pages that are cut short, the first of 30."""
    last = {}
    async with Listener(time.monotonic) as listener:
        for bad in (0, 2):
            site = make_site(listener.origin, seed, 30).poison(Fault.CUT, "first", bad)
            web, out = Web([site], seed), folder / f"cut {bad}"
            listener.world, began = web, time.monotonic()
            flags = ("--out", str(out), "--private", "--no-parquet", "--json")
            ended = await run_command("pages", "crawl", site.url("/"), *flags, limit=80)
            last[bad] = web.asked.last(site.good()) - began
    (rows, failed), counts = read_rows(out), web.asked.counts()
    cut = [site.url(path) for path in site.bad]
    table.judge(
        f"command: two of 30 cut short: last good page after {last[2]:.1f} s, without them {last[0]:.1f}; "
        f"ended after {ended.seconds:.0f} s with code {ended.code}",
        count("command, cut: good pages not fetched", set(site.good()) - set(rows)),
        at_most("command, cut: last good page, in times of the clean site", 1.5, last[2] / last[0]),
        at_most("command, cut: requests for a bad page", MOST_ASKED, max(counts[url] for url in cut)),
        count("command, cut: bad pages without a reason that fits", (u for u in cut if failed.get(u) != "TRUNCATED")),
        count("command, cut: good pages with a reason", set(site.good()) & failed.keys()),
        at_most("command, cut: seconds until it ends with code 1", 80, ended.seconds if ended.code == 1 else inf),
    )


async def command_hanging(table: Table, folder: Path, seed: int) -> None:
    """A host with 20 pages that never come, beside one of 40 good ones."""
    last = {}
    async with Listener(time.monotonic) as one, Listener(time.monotonic) as other:
        lost = [f"/lost/{number}" for number in range(20)]
        hangs = Web([Site(other.origin, {}, dict.fromkeys(lost, Fault.SILENT))], seed)
        other.world = hangs
        for beside in (False, True):
            site = make_site(one.origin, seed, 40)
            web = one.world = Web([site], seed)
            out, began = folder / f"hanging {beside}", time.monotonic()
            seeds = [*(other.origin + path for path in lost if beside), site.url("/")]
            flags = ("--out", str(out), "--private", "--no-parquet", "--json")
            done = partial(all_served, web, site.good())
            await run_command("pages", "crawl", *seeds, *flags, limit=80, enough=done)
            last[beside] = web.asked.last(site.good()) - began
    asked = sum(url.endswith(tuple(lost)) for _, url in hangs.asked.requests)
    table.judge(
        f"command: a host hangs ({asked} requests): last good page after {last[True]:.1f} s, alone {last[False]:.1f}",
        at_least("command, hanging: requests to the host that hangs", 1, asked),
        at_most("command, hanging: last good page, in times of the good host alone", 1.2, last[True] / last[False]),
    )


def all_served(web: Web, urls: Sequence[str]) -> bool:
    """Whether each of them was served."""
    return isfinite(web.asked.last(urls))


async def command_ids(table: Table, folder: Path, seed: int) -> None:
    """New ids beside 2,000 that are overdue, and without, at the same time: 40 seconds."""
    async with asyncio.TaskGroup() as both:
        with_them, without = (both.create_task(follow(folder / f"ids {some}", seed, some)) for some in (2000, 0))
    run, alone = with_them.result(), without.result()
    share = run.missed / max(1, run.new + run.missed)
    table.judge(
        f"command: 2,000 overdue ids: lag p95 {run.lag(0.95):.2f} s, alone {alone.lag(0.95):.2f}; "
        f"missed had {share:.0%}, new {run.new} requests, alone {alone.new}",
        at_most("command, ids: lag p95 of new ids, in that without missed ones", 1.2, run.lag(0.95) / alone.lag(0.95)),
        at_least("command, ids: share of missed ids while both want", 0.05, share),
        # Nine in ten while the rate is still to be found, and real time has its noise.
        at_least("command, ids: new ids served, in those without missed ones", 0.85, len(run.lags) / len(alone.lags)),
    )


async def follow(out: Path, seed: int, missed: int) -> IdsRun:
    """The real command on an API of its own, with so many ids overdue."""
    async with Listener(time.time) as listener:
        # A described API is called by its host.
        make_state(out / "sequence.db", missed, time.time(), f"127-0-0-1-{listener.origin.rpartition(':')[2]}")
        listener.world = world = Numbers(seed, FIRST_ID, time.time(), RATE, 3)
        described = ("--url", f"{listener.origin}/{{id}}", "--id-path", "id")
        flags = ("--out", str(out), "--private", "--json", "--rps", f"{1.5 * RATE:g}")
        os.environ["SANDERLING_SEQUENCE_CRAWL_TIMESTAMP"] = "made"
        ended = await run_command("sequence", "crawl", *described, *flags, limit=40)
    return IdsRun(ended.seconds, world.lags, new=world.sent[True], missed=world.sent[False])


def in_real_time(part: Callable[[Table, Path, int], Coroutine[None, None, None]]) -> Part:
    """A part that has sockets, as one that can be called."""
    return lambda table, folder, seed: asyncio.run(part(table, folder, seed))


PARTS: dict[str, Part] = {
    "sites": sites,
    "hanging": hanging,
    "gone": gone,
    "patience": patience,
    "ids": ids,
    "restart": restart,
    "command, cut": in_real_time(command_cut),
    "command, hanging": in_real_time(command_hanging),
    "command, ids": in_real_time(command_ids),
    **REPOS,
    **POLLING,
    **EVENTS,
}


def main() -> None:
    """Run the parts, and say whether the bars are met."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=SEED)
    given, sys.argv[1:] = parser.parse_known_args()  # the harness reads the rest
    report = Report("poisoned")
    table = Table(report)
    for name, part in PARTS.items():
        if given.only not in name:
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            part(table, Path(folder), given.seed)
        report.figures[f"{name}: took, s"] = round(time.monotonic() - started, 1)
        print(f"  {name} took {time.monotonic() - started:.0f} s", flush=True)
    table.finish()
    report.finish()


if __name__ == "__main__":
    main()
