"""The characters of simulated hosts of repos, one row each: what it is like, its weather, the fates of its repos."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from sanderling.apis.atproto import AtprotoCategory
from sanderling.worlds.hosts import SlidingWindowQuota, steps
from sanderling.worlds.pds_fates import GONE, HELD, LED_AWAY, LIES, WALLED, RepoFate
from sanderling.worlds.weather import Weather, announced_quota, fair, mute, queueing, weather, with_faults


@dataclass(frozen=True, slots=True, kw_only=True)
class PdsCharacter:
    """What a kind of host is like."""

    word: str
    sentence: str
    size: int = 40  # repos; those of healthy hosts are as many as the fleet says
    weather: Callable[[Random], Weather] = fair
    fates: tuple[RepoFate, ...] = (HELD,)
    every: int = 1  # so manieth repo has the next of these fates; the others are served
    listens: bool = True  # whether anyone is there to connect to
    named: bool = True  # whether its name leads to an address
    end: AtprotoCategory | None = None  # of all its repos, where nothing can be had

    def fate(self, index: int) -> RepoFate:
        """What becomes of whoever asks for the repo with that place in the host's own order."""
        turn, rest = divmod(index, self.every)
        return self.fates[turn % len(self.fates)] if rest == self.every - 1 else HELD


HEALTHY = PdsCharacter(
    word="healthy", sentence="one repo in twelve is gone, in one way or another", fates=GONE, every=12
)
SMALL = PdsCharacter(
    word="small", sentence="somebody's own: a handful of repos on a slow line", weather=weather(network=0.2)
)

OTHERS = (
    PdsCharacter(word="limited", sentence="allows 30 in 10 s, and says what is left", size=90, weather=announced_quota),
    PdsCharacter(
        word="silent",
        sentence="allows 15 in 5 s; then 429 and not a word",
        size=60,
        weather=weather(lambda: SlidingWindowQuota(15, 5.0)),
    ),
    PdsCharacter(word="slow", sentence="serves 5 a second; who asks faster waits in its queue", weather=queueing),
    PdsCharacter(
        word="failing",
        sentence="503 for its first 20 seconds",
        weather=weather(failing=steps([(0.0, 1.0), (20.0, 0.0)]), failure=503),
    ),
    PdsCharacter(
        word="cutting",
        sentence="cuts one connection in four, most in mid-body",
        weather=with_faults(reset=0.05, cut=0.1, truncated=0.1),
    ),
    PdsCharacter(word="walled", sentence="pages for people instead of repos: 502, 403 and 200", size=18, fates=WALLED),
    PdsCharacter(word="lying", sentence="others' repos, broken hashes, rings, bombs", size=20, fates=LIES),
    PdsCharacter(word="gone", sentence="has lost its repos in seven ways", size=14, fates=GONE),
    PdsCharacter(word="leading", sentence="redirects to 169.254.169.254", size=4, fates=LED_AWAY),
    # Few repos: a crawl that gives up a host after ten failures has asked for each of these.
    PdsCharacter(word="mute", sentence="takes an hour to answer", size=4, weather=mute, end=AtprotoCategory.TIMEOUT),
    PdsCharacter(word="dead", sentence="nobody listens", size=4, listens=False, end=AtprotoCategory.CONNECTION_ERROR),
    PdsCharacter(
        word="nameless",
        sentence="its name leads nowhere; at its address nobody listens",
        size=4,
        listens=False,
        named=False,
        end=AtprotoCategory.DNS_ERROR,
    ),
)
RELAY = PdsCharacter(word="relay", sentence="lists all hosts and repos, and knows where each is", size=0)
DIRECTORY = PdsCharacter(word="plc", sentence="the directory: exports what made each identity", size=0)
