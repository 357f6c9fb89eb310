"""What the hosts' log and the rows of a crawl prove: pure functions that give a sentence for each broken promise."""

import json
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from fleet_hosts import Entry

CLOSE = 0.05  # seconds: a Retry-After that is kept to a twentieth of a second is kept


@dataclass(frozen=True, slots=True)
class Use:
    """The time from a sender's first request of a host to its last answer, without a silence that is long enough."""

    sender: str
    begun: float
    ended: float


def by_host(log: Iterable[Entry]) -> dict[str, list[Entry]]:
    """The requests of each host, by when they came."""
    found = defaultdict[str, list[Entry]](list)
    for entry in sorted(log, key=lambda entry: entry.asked):
        found[entry.host].append(entry)
    return dict(found)


def uses(log: Iterable[Entry], silence: float) -> list[Use]:
    """When each sender used one host. It goes on using it until it was silent for so many seconds, or never came again.

    An owner that has lost its lease and asks once more has not been silent, so its use covers that of who came next.
    """
    found = dict[str, list[Use]]()
    for entry in sorted(log, key=lambda entry: entry.asked):
        mine = found.setdefault(entry.sender, [])
        if mine and entry.asked - mine[-1].ended < silence:
            mine[-1] = Use(entry.sender, mine[-1].begun, max(mine[-1].ended, entry.done))
        else:
            mine.append(Use(entry.sender, entry.asked, entry.done))
    return sorted((use for each in found.values() for use in each), key=lambda use: use.begun)


def two_senders(log: Iterable[Entry], silence: float) -> list[str]:
    """Hosts that two senders used at a time: a sentence for each pair of uses that overlap."""
    return [
        f"{host}: {one.sender} used it from {one.begun:.2f} to {one.ended:.2f}, {other.sender} from {other.begun:.2f}"
        for host, entries in by_host(log).items()
        for one, other in _overlapping(uses(entries, silence))
    ]


def _overlapping(found: Sequence[Use]) -> Iterator[tuple[Use, Use]]:
    """Pairs of uses by different senders that overlap: each with the one before it that ends last."""
    last: list[Use] = []  # the one that ends last of each sender
    for use in found:
        for earlier in last:
            if earlier.sender != use.sender and use.begun < earlier.ended:
                yield earlier, use
        last = [each for each in last if each.sender != use.sender] + [use]


def too_fast(log: Iterable[Entry], rates: Mapping[str, float], late: float) -> list[str]:
    """Hosts that were asked faster than allowed, whoever asked, in whatever window: a sentence for the worst of each.

    `rates` has the requests a second of each host. A request may come up to `late` seconds after the moment it had
    leave for, as the machine is busy; so a window may hold what belongs into one that is so much longer, no more.
    """
    found = list[str]()
    for host, entries in by_host(log).items():
        rate, times = rates[host], [entry.asked for entry in entries]
        lowest, begin, worst = times[0] * -rate, 0, (0.0, 0, 0)
        for number, time in enumerate(times):
            level = number - rate * time
            worst = max(worst, (level - lowest - rate * late, begin, number))
            if level < lowest:
                lowest, begin = level, number
        over, begin, end = worst
        if over > 1e-6:
            seconds = times[end] - times[begin]
            senders = sorted({entry.sender for entry in entries[begin : end + 1]})
            said = f"{end - begin + 1} requests within {seconds:.2f} s from {times[begin]:.2f}, by {', '.join(senders)}"
            found.append(f"{host}: {said}; allowed are {rate:g} a second")
    return found


def too_early(log: Iterable[Entry], late: float, pace: float = 1.0) -> list[str]:
    """Requests that came before a Retry-After was over, whoever had heard it: a sentence for each.

    What its sender asks for within `late` seconds was sent before it heard of the refusal; nobody else has that excuse.
    A clock that runs `pace` times as fast as it should waits for so much less.
    """
    found = list[str]()
    for host, entries in by_host(log).items():
        times = [entry.asked for entry in entries]
        for refused in (entry for entry in entries if entry.retry_after):
            until = refused.done + refused.retry_after / pace - CLOSE
            for entry in entries[bisect_right(times, refused.done) : bisect_left(times, until)]:
                if entry.sender != refused.sender or entry.asked > refused.done + late:
                    said = f"{entry.sender} asked for {entry.path} {until - entry.asked:.2f} s before"
                    found.append(f"{host}: {said} the Retry-After of {refused.retry_after} s told to {refused.sender}")
    return found


def forbidden(log: Iterable[Entry], path: str = "/closed") -> list[str]:
    """Requests for what robots.txt forbids."""
    return [f"{entry.host}: {entry.sender} asked for {path}" for entry in log if entry.path == path]


def asked_again(log: Iterable[Entry]) -> dict[str, int]:
    """How often each page was asked for once more after it was answered; lost answers count, refusals do not."""
    answered = Counter(f"{entry.host}{entry.path}" for entry in log if entry.status in {0, 200, 302})
    return {page: times - 1 for page, times in answered.items() if times > 1 and not page.endswith("/robots.txt")}


def taken_over(log: Sequence[Entry], lost: str, at: float) -> dict[str, float]:
    """How long after a moment each host that a sender had was asked by another, if it ever was."""
    found = dict[str, float]()
    for host, entries in by_host(log).items():
        before = [entry for entry in entries if entry.asked <= at]
        after = [entry for entry in entries if entry.asked > at and entry.sender != lost]
        if before and after and before[-1].sender == lost:
            found[host] = after[0].asked - at
    return found


def longest_silence(log: Iterable[Entry], begin: float, end: float) -> float:
    """The longest time between `begin` and `end` in which no host was asked."""
    times = [begin, *sorted(entry.asked for entry in log if begin < entry.asked < end), end]
    return max(after - before for before, after in pairwise(times))


def wrong_rows(expected: Collection[str], rows: Counter[str]) -> list[str]:
    """URLs that the output lacks, has twice, or should not have."""
    wanted = set(expected)
    missing, strange = wanted - rows.keys(), rows.keys() - wanted
    return [
        *(f"missing: {url}" for url in sorted(missing)),
        *(f"{times} times: {url}" for url, times in sorted(rows.items()) if times > 1),
        *(f"not of the site: {url}" for url in sorted(strange)),
    ]


def read_rows(folder: Path, name: str = "pages.jsonl") -> Counter[str]:
    """How many rows each URL has, in all parts of a folder of a crawl."""
    files = (path for path in folder.rglob(name) if "earlier" not in path.relative_to(folder).parts)
    return Counter(json.loads(line)["url"] for path in files for line in path.read_bytes().splitlines())
