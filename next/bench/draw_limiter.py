"""Draws docs/limiter.svg: one host for five minutes, requested by `governor` and by `aimd`. On virtual time."""

import asyncio
import sys
from pathlib import Path
from random import Random

sys.path.append(str(Path(__file__).parents[1] / "simulators"))

from hosts import Changing, Outage, RefusesOnce, Server, bucket

from sanderling.clock import LoopClock, run_virtual
from sanderling.limit import CircuitOpen, Limiter
from sanderling.limit.permit import outcome_of

ROOT = Path(__file__).parents[1]
END, RISES, DOWN, UP, TOLD, WAIT = 300.0, 90.0, 170.0, 200.0, 250.0, 15.0
LOW, HIGH, TOP = 5.0, 10.0, 16.0
NAME = "host.example"
WIDTH, HEIGHT, LEFT, PANEL = 900, 540, 44, 190
COLOURS = {"limit": "#9aa5b1", "rate": "#0b6fa4", "refused": "#c0392b", "failed": "#e08e0b"}


async def play(policy: str) -> tuple[list[tuple[float, float]], list[tuple[float, int]]]:
    """The allowed rate by time, and when what did not succeed was sent."""
    random = Random(3)
    quota = Changing([(0.0, bucket(LOW, LOW)), (RISES, bucket(HIGH, HIGH))])
    host = Outage(Server(random, quota, network=0.08), DOWN, UP, 503)
    told = RefusesOnce(host, 1, WAIT)
    limiter = Limiter(policy=policy, clock=LoopClock(), random=random, max_rps=TOP)
    clock = LoopClock()
    rates: list[tuple[float, float]] = []
    bad: list[tuple[float, int]] = []

    async def work() -> None:
        while clock.now() < END:
            try:
                permit = await limiter.acquire(NAME)
            except CircuitOpen as error:
                await clock.sleep(error.until - clock.now())
                continue
            sent = clock.now()
            reply = (told if sent >= TOLD else host).request(sent)
            await clock.sleep(reply.latency)
            permit.report(outcome_of(reply.status, (), None, reply.retry_after, 0.0), latency=reply.latency)
            if reply.status != 200:
                bad.append((sent, reply.status))

    async def look() -> None:
        while clock.now() < END:
            await clock.sleep(0.5)
            figures = limiter.snapshot(1).hosts[0]
            silent = figures.state != "closed" or figures.next_earliest_ms > 0
            rates.append((clock.now(), 0.0 if silent else figures.fill_rate))

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        for _ in range(16):
            group.create_task(work())
    return rates, bad


def steps(points: list[tuple[float, float]], top: float) -> str:
    """A line that goes on at a level until it changes."""
    path, last = "", -1.0
    for at, rate in points:
        if rate != last:
            path += f"H{x(at)}V{y(rate, top)}" if path else f"M{x(at)} {y(rate, top)}"
        last = rate
    return path + f"H{x(END)}"


def x(seconds: float) -> str:
    return f"{LEFT + seconds / END * (WIDTH - LEFT - 12):.1f}"


def y(rate: float, top: float) -> str:
    return f"{top + PANEL * (1 - rate / TOP):.1f}"


def text(at: str, height: float | str, words: str, more: str = "") -> str:
    return f'<text x="{at}" y="{height}" {more}>{words}</text>'


def panel(policy: str, top: float) -> list[str]:
    rates, bad = run_virtual(play(policy))
    allowed = [(0.0, LOW), (RISES, HIGH), (DOWN, 0.0), (UP, HIGH), (TOLD, 0.0), (TOLD + WAIT, HIGH)]
    parts = [
        text(str(LEFT), top - 8, f"policy {policy}: requests per second", 'font-weight="bold"'),
        *(
            f'<path d="M{LEFT} {y(rate, top)}H{x(END)}" stroke="#eee"/>'
            + text(str(LEFT - 6), y(rate, top), f"{rate:g}", 'text-anchor="end"')
            for rate in (0, 5, 10, 15)
        ),
        f'<path d="{steps(allowed, top)}" fill="none" stroke="{COLOURS["limit"]}" stroke-width="5"/>',
        f'<path d="{steps(rates, top)}" fill="none" stroke="{COLOURS["rate"]}" stroke-width="1.5"/>',
    ]
    for status, name, height in ((429, "refused", 0), (503, "failed", 9)):
        marks = "".join(f"M{x(at)} {top + PANEL + 4 + height}v8" for at, found in bad if found == status)
        parts.append(f'<path d="{marks}" stroke="{COLOURS[name]}"/>')
    return parts


def main() -> None:
    parts = [*panel("governor", 60), *panel("aimd", 310)]
    for at, words in ((1, "new"), (RISES, "its limit doubles"), (DOWN, "down"), (TOLD, "Retry-After: 15")):
        parts.append(f'<path d="M{x(at)} 30V510" stroke="#ccc" stroke-dasharray="3 4"/>' + text(x(at), 26, words))
    legend = ("limit", "what the host allows"), ("rate", "allowed rate"), ("refused", "429"), ("failed", "503")
    for number, (name, words) in enumerate(legend):
        parts.append(text(str(LEFT + 190 * number), 534, f"■ {words}", f'fill="{COLOURS[name]}"'))
    style = 'font-family="sans-serif" font-size="12" fill="#222"'
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    body = '<rect width="100%" height="100%" fill="white"/>' + "\n".join(parts)
    (ROOT / "docs" / "limiter.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{body}</svg>\n')


if __name__ == "__main__":
    main()
