"""The hostile site, crawled by the command as anybody would, and compared URL by URL and field by field."""

import itertools
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hostile_site as site
import pytest
from hostile_web import Web

from sanderling.systems import SYSTEMS

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif("pages" not in {system.name for system in SYSTEMS}, reason="there are no pages yet"),
]
PROGRAM = [sys.executable, "-m", "sanderling"]
# What differs from the expectation in the table, and why it is better so. The target, or where it begins.
DIFFERENCES = {
    "/charset/replacement": "browsers show nothing of it against attacks by script; we run none: it is read as UTF-8",
    "/decoy/replacement": "as above: its link is followed",
}


@dataclass(frozen=True, slots=True)
class Crawled:
    code: int
    said: str
    rows: dict[str, list[dict[str, Any]]]  # by URL, each with `end` and `file`


def crawl(folder: Path, addresses: list[str], *flags: str, seconds: float = 120) -> Crawled:
    """Crawl from these addresses; what was said, and every row."""
    folder.mkdir(exist_ok=True)
    seeds, out = folder / "seeds.txt", folder / "out"
    seeds.write_text("\n".join(addresses) + "\n")
    words = [*PROGRAM, "pages", "crawl", "--seeds", str(seeds), "--out", str(out), "--private", *flags]
    environment = {**os.environ, "HOME": str(folder), "NO_COLOR": "1"}
    with (folder / "said.txt").open("wb") as sink:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, env=environment
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    rows = defaultdict(list)
    for name in ("pages.jsonl", "failed.jsonl"):
        path = out / name
        for line in path.read_text().splitlines() if path.exists() else ():
            row = json.loads(line)
            row["end"] = row.get("end") or ("moved" if row.get("moved_to") else "fetched")
            rows[row["url"]].append(row)
    return Crawled(process.returncode, (folder / "said.txt").read_text(errors="replace"), dict(rows))


def differences(case: site.Case, base: str, crawled: Crawled) -> list[str]:
    """What became of a case otherwise than its row of the table says."""
    rows = crawled.rows.get(base + case.target, [])
    if not rows and "no row" in case.end:
        return []
    if len(rows) != 1:
        return [f"{case.target} has {len(rows)} rows"]
    (row,) = rows
    if row["end"] not in case.end:
        return [f"{case.target} ended {row['end']} ({row.get('outcome')} {row.get('detail', '')}), not {case.end}"]
    wrong = []
    if row["end"] == "failed" and not row.get("outcome"):
        wrong.append(f"{case.target} has no reason")
    for name, expected in case.row.items():
        found = row.get(name)
        if name == "text" and expected is not None:
            good = " ".join(str(expected).split()) in " ".join((found or "").replace("\\", "").split())
        elif isinstance(expected, tuple):
            good = found in expected
        else:
            good = found == expected or (expected is None and not found)
        if not good:
            wrong.append(f"{case.target}: {name} is {str(found)[:90]!r}, not {expected!r}")
    led = {link.partition("#")[0] for link in row.get("links") or ()}
    return wrong + [f"{case.target}: no link {link}" for link in case.links if link not in led]


def unexplained(wrong: list[str]) -> list[str]:
    return [each for each in wrong if not any(each.startswith(known) for known in DIFFERENCES)]


def test_every_url_ends_as_the_standards_say(tmp_path: Path) -> None:
    with Web(2) as web:
        base, other = web.base(0), web.base(1)
        cases = site.protocol(base, other)
        web.answers[0].update(site.answers(cases, base))
        web.otherwise[1] = lambda asked: site.leaf(asked.target)

        crawled = crawl(tmp_path, [base + "/", other + "/"], "--rps", "500", "--timeout", "5")

        asked, elsewhere = Counter(each.target for each in web.asked(0)), {each.target for each in web.asked(1)}
    wrong = [each for case in cases for each in differences(case, base, crawled)]
    for case in cases:
        wrong += [f"{case.target} did not lead to {target}" for target in case.asks if not asked[target]]
        wrong += [f"{target} has no row" for target in case.asks if asked[target] and base + target not in crawled.rows]
    known = (
        {case.target for case in cases}
        | {target for case in cases for target in case.asks}
        | {"/", *site.MAPS, *site.LOST}
    )
    wrong += [f"{target} was requested" for target in asked if target not in known]
    wrong += [f"{target} was refused and requested" for target in asked if target.startswith(("/private", "/map/priv"))]
    wrong += [f"{target} was requested {times} times" for target, times in asked.items() if times > 12]
    wrong += [
        f"{target} of the other host was not requested"
        for target in ("/from-a-link", "/from-a-redirect")
        if target not in elsewhere
    ]
    twice = [target for target in asked if asked[target] > 1 and len(crawled.rows.get(base + target, ())) > 1]

    assert unexplained(wrong) == []
    assert not twice
    assert crawled.code == 1, crawled.said


def test_lies_cost_themselves_only(tmp_path: Path) -> None:
    with Web(len(site.LIES)) as web:
        worlds = {}
        for number, name in enumerate(site.LIES):
            worlds[name], answers = site.liar(name)
            web.answers[number].update(answers)
        starts = [web.base(number) + "/" for number in range(web.hosts)]

        crawled = crawl(tmp_path, starts, "--rps", "100", "--timeout", "2")

        bases = [web.base(number) for number in range(web.hosts)]
    wrong = [
        f"{name}: {each}"
        for (name, cases), base in zip(worlds.items(), bases, strict=True)
        for case in cases
        for each in differences(case, base, crawled)
    ]

    assert unexplained(wrong) == []
    assert crawled.code == 1, crawled.said


def test_each_robots_txt_is_obeyed(tmp_path: Path) -> None:
    hosts = site.ROBOTS_HOSTS
    with Web(len(hosts) + 1) as web:
        starts = []
        for number, (name, (_, allowed, refused)) in enumerate(hosts.items()):
            web.answers[number].update(site.robots_host(name))
            starts += [web.base(number) + target for target in (*allowed, *refused)]
        slow = len(hosts)
        delayed = [f"/{at}" for at in range(4)]
        web.answers[slow].update({target: site.leaf(target) for target in delayed})
        web.answers[slow]["/robots.txt"] = site.rules(f"{site.ALL}Crawl-delay: {site.DELAY}\n")
        starts += [web.base(slow) + target for target in delayed]

        crawled = crawl(tmp_path, starts, "--rps", "100")

        asked = [[each.target for each in web.asked(number)] for number in range(len(hosts))]
        times = sorted(each.at for each in web.asked(slow) if each.target in delayed)
        bases = [web.base(number) for number in range(len(hosts))]
    wrong = []
    for (name, (_, allowed, refused)), requested, base in zip(hosts.items(), asked, bases, strict=True):
        wrong += [f"{name}: {target} was not requested" for target in allowed if requested.count(target) != 1]
        wrong += [f"{name}: {target} was requested" for target in refused if target in requested]
        for target, end in [*((each, "fetched") for each in allowed), *((each, "refused") for each in refused)]:
            ends = [row["end"] for row in crawled.rows.get(base + target, ())]
            wrong += [f"{name}: {target} ended {ends}"] if ends != [end] else []

    assert unexplained(wrong) == []
    assert len(times) == 4
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) > site.DELAY - 0.1
    assert crawled.code in (0, 1), crawled.said


def test_where_robots_txt_cannot_be_read_nothing_else_is_requested(tmp_path: Path) -> None:
    with Web(len(site.SHUT)) as web:
        for number, answer in enumerate(site.SHUT.values()):
            web.answers[number].update({"/robots.txt": answer, "/a": site.leaf("/a")})

        crawled = crawl(tmp_path, [web.base(number) + "/a" for number in range(web.hosts)], "--patience", "3")

        asked = {each.target for each in web.log}
    assert asked == {"/robots.txt"}
    assert not [row for rows in crawled.rows.values() for row in rows if row["end"] == "fetched"]
    assert crawled.code == 3, crawled.said


@pytest.mark.parametrize("name", site.TRAPS)
def test_a_trap_is_left_and_the_site_around_it_is_fetched_whole(tmp_path: Path, name: str) -> None:
    trap = site.TRAPS[name]
    with Web(1) as web:
        web.otherwise[0] = trap.answer

        crawled = crawl(tmp_path, [web.base(0) + "/"], "--rps", "2000", "--depth", "1000", seconds=100)

        asked = Counter(each.target for each in web.log)
    assert trap.honest <= asked.keys()
    assert trap.most is not None
    assert asked.total() <= trap.most
    # What was cut off waits, and is said.
    assert crawled.code == 3, crawled.said
    assert "--max-same-text" in crawled.said.splitlines()[-1], crawled.said


@pytest.mark.parametrize(
    ("name", "trap"),
    [("facets", site.shop_of_facets(600)), ("register", site.register(700)), ("tables", site.tables(500))],
)
def test_an_honest_site_that_looks_like_a_trap_is_fetched_whole(tmp_path: Path, name: str, trap: site.Trap) -> None:
    with Web(1) as web:
        web.otherwise[0] = trap.answer

        crawled = crawl(tmp_path, [web.base(0) + "/"], "--rps", "2000", "--depth", "1000", seconds=100)

        asked = Counter(each.target for each in web.log)
    fetched = {url.removeprefix(web.base(0)) for url, rows in crawled.rows.items() if rows[0]["end"] == "fetched"}
    assert sorted(trap.honest - fetched)[:5] == []
    assert asked.total() <= (trap.most or len(asked))
    assert crawled.code == (3 if trap.most else 0), crawled.said
