"""One table of scenarios: what is asked and reported, and what can be seen of the host afterwards. All policies."""

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from sanderling.clock import FakeClock
from sanderling.limit import Limiter, LimitOptions
from sanderling.limit.permit import Permit, outcome_of
from sanderling.outcome import Code, Outcome

HOST = "www.example.org"
ONE = {"token_bucket_capacity": 1.0}
MAPS = {"scopes": {"key/maps": LimitOptions(max_rps=0.5)}}
DOMAINS = {"scopes": {"domain/*": LimitOptions(max_rps=0.5)}}
HEADERS = "X-RateLimit-Limit: 100; X-RateLimit-Remaining: 40; X-RateLimit-Reset: 20"


@dataclass
class Row:
    """`script`: a word for each thing that happens, in order, of HOST unless another is named behind an @.

    `take`, or with scopes `take/key/maps`; a status ends the oldest permit, `429+30` with a Retry-After; so do
    `release`, `refused` (not sent), `cancelled` and `lost` (no response). `wait5`; `cap0.5`, `nocap`; `until9`.
    What follows: requests that were sent, seconds until the next, the rate, the circuit; None: not looked at.
    """

    what: str
    policy: str
    script: str
    sent: int
    wait: float | None = None
    rate: float | None = None
    state: str = "closed"
    more: Any = None


ROWS = [
    # The bucket.
    Row("a full bucket at once", "aimd", "take take take take take", 4, 0.5),
    Row("the governor sends one at a time", "governor", "take take take", 1, 0.5),
    Row("a fixed rate too, below 20 a second", "fixed", "take take", 1, 0.125, 8.0),
    Row("and what it gives in 50 ms above", "fixed", "take take take", 2, 0.01, 50.0, more={"max_rps": 50.0}),
    Row("none holds back nothing", "none", "take " * 99, 99, 0),
    Row("nor does enabled = false", "aimd", "take " * 9, 9, 0, more={"enabled": False}),
    # Permits that end without a response.
    Row("released: it counts as sent", "aimd", "take release take", 1, 0.5, more=ONE),
    Row("not sent: its place is the next one's", "aimd", "take refused take", 1, 0.5, more=ONE),
    Row("cancelled: it counts as sent", "aimd", "take cancelled take", 1, 0.5, more=ONE),
    Row("not sent, but another was after it", "aimd", "take take refused take", 2, 0.5,
        more={"token_bucket_capacity": 2.0}),
    Row("not sent, governor", "governor", "take refused take", 1, 0.5),
    Row("not sent, through a key", "fixed", "take/key/maps refused take/key/maps", 1, 0.125, more=MAPS),
    # Retry-After.
    Row("holds the host", "governor", "take 429+30 wait29.9 take", 1),
    Row("and no longer", "aimd", "take 429+30 wait30 take", 2, 0.0),
    Row("a shorter one does not shorten it", "aimd", "take take 429+30 503+5", 2, 30.0),
    Row("nor one of a success, which is heeded", "aimd", "take 200+9", 1, 9.0),
    Row("with policy none too", "none", "take 429+30 take", 1, 30.0),
    Row("longer than a year is a year", "aimd", "take 429+1e12", 1, 366 * 86400.0),
    Row("none opens a circuit", "governor", "take 429+1 wait999 " * 9, 9),
    Row("wait_until is the same order", "aimd", "take until9 until4 take", 1, 9.0),
    # Failures and refusals.
    Row("rows open it", "aimd", "take 500 take 503 take 429 take lost wait9 take 500", 5, 15.0, 0.25, "open"),
    Row("not those of other hosts", "aimd", "take " + "take@b 500@b wait9 " * 5, 1, 0, 2.0),
    Row("refusals open none with the governor", "governor", "take 429 wait999 " * 20, 20),
    Row("a fixed rate halves", "fixed", "take 429", 1, None, 4.0),
    Row("and comes back by twentieths", "fixed", "take 429 wait9 take 200 wait9 take 200", 3, None, 4.8),
    Row("to what was set and not beyond", "fixed", "take 429 wait9 " + "take 200 wait9 " * 20, 21, 0, 8.0),
    Row("not below a sixty-fourth", "fixed", "take 429 wait99 " * 9, 9, 0, 0.125),
    Row("one with a Retry-After leaves it", "fixed", "take 429+5", 1, 5.0, 8.0),
    Row("failures open a fixed host's circuit", "fixed", "take 500 wait9 " * 5, 5, None, 8.0, "open"),
    Row("and none with policy none", "none", "take 500 " * 30, 30, 0),
    # What somebody set.
    Row("a cap slows", "aimd", "take cap0.1 take", 1, 10.0, 0.1),
    Row("the last one holds", "aimd", "cap0.1 take cap0.5", 1, 2.0, 0.5),
    Row("and may be lifted", "aimd", "take cap0.1 nocap take", 2, 0.0, 2.0),
    Row("it makes none faster", "aimd", "cap99 take", 1, None, 2.0),
    Row("it gives no burst", "none", "cap1 take take take", 1, 1.0, 1.0),
    # What hosts share.
    Row("a key binds its hosts together", "aimd", "take/key/maps@b take/key/maps", 0, 0.0, more=MAPS),
    Row("who does not name it is free", "aimd", "take/key/maps@b take", 1, 0.0, more=MAPS),
    Row("a refusal is the key's", "aimd", "take/key/maps 429+40 take take@b take/key/maps@b", 2, 0.0, more=MAPS),
    Row("a failure the host's", "aimd", "take/key/maps 503 wait2 take/key/maps", 2, None, 1.0, more=MAPS),
    Row("an address too", "aimd", "take/address/192.0.2.7@b take/address/192.0.2.7", 0, 0.0,
        more={"scopes": {"address/*": LimitOptions(max_rps=0.5)}}),
    Row("a domain binds without being named", "aimd", "take@api.example.org take", 0, 2.0, more=DOMAINS),
    Row("not those of others", "aimd", "take@example.net take", 1, 2.0, more=DOMAINS),
    # Rate headers; 5 % are left to others.
    Row("what is left is spread", "governor", "take 200! take", 1, 1 / 1.9, 1.9, more={"initial_rps": 8.0}),
    Row("never faster than what is learned", "governor", "take 200! take", 1, 1.0, 1.0, more={"initial_rps": 1.0}),
    Row("aimd is the seed's and heeds none", "aimd", "take 200! take", 2, 0.0, None),
]  # fmt: skip


class Play:
    def __init__(self, row: Row) -> None:
        self.clock = FakeClock()
        self.limiter = Limiter(policy=row.policy, clock=self.clock, random=Random(1), **row.more or {})
        self.out: list[Permit] = []
        for word in row.script.split():
            what, _, name = word.partition("@")
            host = {"": HOST, "b": "b.example.net"}.get(name, name)
            if what.startswith("take"):
                scopes = [what.removeprefix("take/")] if "/" in what else []
                permit = self.limiter.try_acquire(host, *scopes)
                self.out += [permit] if permit else []
            elif what.startswith("wait"):
                self.clock.advance(float(what[4:]))
            elif what.startswith("cap"):
                self.limiter.set_cap(host, float(what[3:]))
            elif what == "nocap":
                self.limiter.set_cap(host, None)
            elif what.startswith("until"):
                self.limiter.wait_until(host, float(what[5:]))
            else:
                self.end(next(permit for permit in self.out if permit.live and permit.host == host), what)

    def end(self, permit: Permit, what: str) -> None:
        match what:
            case "release":
                permit.release()
            case "refused":
                permit.report(Outcome(Code.REFUSED, sent=False))
            case "cancelled":
                permit.report(Outcome(Code.CANCELLED))
            case "lost":
                permit.report(Outcome(Code.TIMEOUT))
            case _:
                status, _, retry_after = what.rstrip("!").partition("+")
                headers = [tuple(each.split(": ")) for each in HEADERS.split("; ")] if what.endswith("!") else []
                outcome = outcome_of(int(status), (), None, float(retry_after) if retry_after else None, 0.0)
                permit.report(outcome, headers=headers)  # type: ignore[arg-type]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.policy}: {row.what}")
def test_what_can_be_seen(row: Row) -> None:
    play = Play(row)

    wait = max(0.0, play.limiter.ready_at(HOST) - play.clock.now())

    figures = {each.host: each for each in play.limiter.snapshot(9).hosts}[HOST]
    assert (figures.requests, figures.state) == (row.sent, row.state)
    assert row.wait is None or wait == pytest.approx(row.wait)
    assert row.rate is None or figures.fill_rate == pytest.approx(row.rate)


WHY = [
    ("aimd", "", {}, "it began at 2"),
    ("aimd", "", {"initial_rps": 8.0}, "limited by --rps 8 (max_rps)"),
    ("aimd", "take 429", {}, "a refusal lowered"),
    ("aimd", "take 429+1 wait9", {}, "a Retry-After lowered"),
    ("aimd", "take 500", {}, "a failure lowered"),
    ("aimd", "take 500 wait9 " * 5, {}, "open for another 6.0 s"),
    ("aimd", "take 500 wait9 " * 5 + "wait6 take", {}, "half open"),
    ("aimd", "take 429+30 wait4", {}, "another 26.0 s"),
    ("aimd", "cap0.1", {}, "somebody asked for it"),
    ("aimd", "cap4", {}, "it began at 2"),
    ("none", "take", {}, "not paced"),
    ("fixed", "take", {}, "its rate was set to 8 a second"),
    ("fixed", "take 429", {}, "refused some"),
]


@pytest.mark.parametrize(("policy", "script", "more", "fragment"), WHY)
def test_why_names_what_holds_the_rate(policy: str, script: str, more: dict[str, Any], fragment: str) -> None:
    play = Play(Row("", policy, script, 0, more=more))
    play.limiter.ready_at(HOST)

    assert fragment in play.limiter.snapshot(9).hosts[0].why


def test_why_of_aimd_names_what_an_earlier_run_learned() -> None:
    play = Play(Row("", "aimd", "take 429", 0))
    saved = play.limiter.saved(HOST)
    assert saved is not None
    later = Limiter(policy="aimd", clock=FakeClock())

    later.restore(HOST, saved)
    later.ready_at(HOST)

    host = later.snapshot().hosts[0]
    assert (host.fill_rate, host.why.startswith("an earlier run")) == (1.0, True)
