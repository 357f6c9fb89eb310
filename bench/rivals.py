"""Other people's rate control, written down as published, for comparison in the simulation."""

from math import inf

from sanderling.worlds.hosts import HostAnswer


class PlainAimd:
    """The textbook limiter: a bucket of 10, +0.1 per fast success, x0.5 per trouble, an unguarded breaker."""

    def __init__(self) -> None:
        self._rate, self._tokens, self._asof = 5.0, 10.0, 0.0
        self._mean = 0.5
        self._fails, self._open_until, self._good, self._half = 0, 0.0, 0, False
        self._not_before = 0.0

    def ready_at(self, now: float) -> float:
        """Tokens, Retry-After and the open breaker; half-open lets everyone through."""
        self._refill(now)
        wait = max(0.0, (1 - self._tokens) / self._rate)
        return max(now + wait, self._not_before, self._open_until)

    def send(self, now: float) -> object:
        """Take a token."""
        self._refill(now)
        self._tokens -= 1
        return None

    def done(self, _token: object, now: float, answer: HostAnswer) -> None:
        """Each answer moves the rate and the breaker."""
        self._refill(now)
        slow = answer.latency >= 2 * 0.5
        trouble = answer.status == 429 or answer.status >= 500 or answer.error is not None
        if trouble or slow:
            self._rate = max(0.25, self._rate * 0.5)
        elif answer.latency < self._mean:
            self._rate = min(1000.0, self._rate + 0.1)
        self._mean += 0.2 * (answer.latency - self._mean)
        self._not_before = max(self._not_before, now + (answer.retry_after or 0.0))
        self._breaker(now, trouble=trouble)

    def _breaker(self, now: float, *, trouble: bool) -> None:
        self._fails = self._fails + 1 if trouble else 0
        if self._half and now >= self._open_until:
            self._good = 0 if trouble else self._good + 1
            self._half = self._good < 3
        if self._fails >= 5 or (self._half and trouble):
            self._open_until, self._half, self._fails, self._good = now + 10.0, True, 0, 0

    def _refill(self, now: float) -> None:
        self._tokens = min(10.0, self._tokens + (now - self._asof) * self._rate)
        self._asof = now


class AwsAdaptive:
    """The AWS SDKs' adaptive mode: no limit until the first throttle, then a cubic law around the last good rate."""

    def __init__(self) -> None:
        self._rate, self._ready, self._on = inf, 0.0, False
        self._most, self._since, self._k = 0.0, 0.0, 0.0
        self._measured, self._bucket, self._sent = 0.0, 0.0, 0

    def ready_at(self, now: float) -> float:
        """An even pace once throttled."""
        return max(now, self._ready) if self._on else now

    def send(self, now: float) -> object:
        """Measure what is sent, in half-second buckets, smoothed."""
        half = int(2 * now) / 2
        if half > self._bucket:
            self._measured += 0.8 * (self._sent / (half - self._bucket) - self._measured)
            self._bucket, self._sent = half, 0
        self._sent += 1
        if self._on:
            self._ready = max(self._ready, now - 1.0) + 1 / self._rate
        return None

    def done(self, _token: object, now: float, answer: HostAnswer) -> None:
        """Beta 0.7 on a throttle, cubic growth otherwise, never above twice the measured rate."""
        if answer.status in (429, 503):
            self._most = min(self._measured, self._rate) if self._on else self._measured
            self._k, self._since, self._on = (self._most * 0.3 / 0.4) ** (1 / 3), now, True
            self._rate = max(0.5, 0.7 * self._most)
        elif self._on:
            cubic = 0.4 * (now - self._since - self._k) ** 3 + self._most
            self._rate = max(0.5, min(cubic, 2 * self._measured))


class AutoThrottle:
    """Scrapy's: a delay that follows latency divided by a target concurrency; refusals merely do not shorten it."""

    def __init__(self, target: float) -> None:
        self._target, self._delay, self._ready = target, 5.0, 0.0

    def ready_at(self, now: float) -> float:
        """One request per delay."""
        return max(now, self._ready)

    def send(self, now: float) -> object:
        """The next one a delay later."""
        self._ready = now + self._delay
        return None

    def done(self, _token: object, _now: float, answer: HostAnswer) -> None:
        """Halfway to latency / target, at once if that is longer."""
        goal = answer.latency / self._target
        delay = max(goal, (self._delay + goal) / 2)
        if answer.status == 200 or delay > self._delay:
            self._delay = min(60.0, delay)


class Gradient2:
    """Netflix' concurrency limit by the ratio of long-term to short-term latency; it does not see errors."""

    def __init__(self) -> None:
        self._limit, self._inflight, self._long = 20.0, 0, 0.0

    def ready_at(self, now: float) -> float:
        """Any time the limit has room."""
        return now if self._inflight < self._limit else inf

    def send(self, _now: float) -> object:
        """One more in flight."""
        self._inflight += 1
        return None

    def done(self, _token: object, _now: float, answer: HostAnswer) -> None:
        """New limit = 0.8 old + 0.2 (gradient x old + 4)."""
        inflight = self._inflight
        self._inflight -= 1
        self._long = self._long or answer.latency
        self._long += (answer.latency - self._long) * 2 / 601
        if self._long / answer.latency > 2:
            self._long *= 0.9
        if inflight >= self._limit / 2:
            gradient = max(0.5, min(1.0, self._long / answer.latency))
            self._limit = min(200.0, max(20.0, 0.8 * self._limit + 0.2 * (gradient * self._limit + 4)))
