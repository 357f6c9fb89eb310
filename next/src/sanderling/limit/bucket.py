"""When the next request may leave: a token bucket that is kept as one instant."""


class Bucket:
    """Tokens that come back at `rate` a second, up to `depth`. Full at first.

    Instead of tokens it keeps when a whole token is there (`ready`), so that asking costs one comparison and a bucket
    that nobody looks at costs nothing.
    """

    __slots__ = ("depth", "rate", "ready")

    def __init__(self, rate: float, depth: float, now: float) -> None:
        self.rate = rate
        self.depth = depth
        self.ready = now - (depth - 1) / rate

    def tokens(self, now: float) -> float:
        """Requests that could leave at `now`; below 1 while the next is still to come due."""
        return min(self.depth, 1 + (now - self.ready) * self.rate)

    def take(self, now: float) -> None:
        """Book a request that leaves at `now`."""
        self.ready = max(self.ready, now - (self.depth - 1) / self.rate) + 1 / self.rate

    def put_back(self) -> None:
        """A request that was booked does not leave."""
        self.ready -= 1 / self.rate

    def set_rate(self, rate: float, depth: float, now: float) -> None:
        """Give tokens at `rate` from `now` on; those that are there stay."""
        tokens = self.tokens(now)
        self.rate, self.depth = rate, depth
        self.ready = now + (1 - min(tokens, depth)) / rate

    def empty(self, now: float) -> None:
        """Keep nothing saved up: the next request may leave at `now` and only that."""
        self.ready = max(self.ready, now)
