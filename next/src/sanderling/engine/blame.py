"""Decides who is at fault for a failure, the item or its host. Pure: numbers and values in, a judgement out.

A failure is first the item's: it is tried again after a pause, and ends as failed when so many failures in a row are
improbable at that host. Different items that fail in a row with nothing good between, or failures that cannot be an
item's, show that the host is down (`HostEnds.is_down`); from then on only probes are sent. A good response leaves the
blame with the items; a bad probe takes it from all that failed since the host's last good response.
"""

from dataclasses import dataclass
from enum import Enum
from math import inf

from sanderling.engine.ends import Ended, HostEnds, Standing
from sanderling.engine.rules import BlameRules, RetryRule


class Verdict(Enum):
    """What becomes of the item."""

    END = "end"  # the host answered: this is the item's result
    FAIL = "fail"  # its last failure
    RETRY = "retry"  # it failed, and is tried again
    WAIT = "wait"  # it has not failed: the host limits us or is at fault, or nothing was sent


@dataclass(frozen=True, slots=True)
class Judgement:
    """What becomes of the item, its failures in a row from now on, and seconds until it may be tried again."""

    verdict: Verdict
    failures: int = 0
    wait: float = 0.0  # infinite: not in this run


END = Judgement(Verdict.END)


def judge(ended: Ended, host: HostEnds, rules: BlameRules) -> Judgement:
    """What becomes of an item whose request ended like this. `host` has not noted that yet."""
    match ended.standing:
        case Standing.ANSWERED:
            return END
        case Standing.UNSENT:
            return Judgement(Verdict.WAIT, ended.failures, ended.outcome.retry_after or 0.0)
        case Standing.REFUSED:
            times, since = host.refused.get(ended.key, (0, ended.at))
            # Some items are refused for ever while their host answers others: those wait for another run.
            for_ever = ended.at - since > rules.patience and (host.answered_at or -inf) > since
            wait = rules.pause(times) if times else 0.0
            return Judgement(Verdict.WAIT, ended.failures, inf if for_ever else wait)
        case Standing.FAILED:
            pass
    if ended.blames_host:
        return Judgement(Verdict.WAIT, ended.failures, rules.pause(1))
    failures = ended.failures + 1
    if failures < rules.limit(host.usual):
        return Judgement(Verdict.RETRY, failures, rules.pause(failures))
    answered_between = host.answered_at is not None and host.failing.get(ended.key, ended.failures) > 0
    if answered_between or ended.shows_life:
        return Judgement(Verdict.FAIL, failures)
    # All its failures are within one silence of the host, which proves nothing against the item.
    return Judgement(Verdict.WAIT, ended.failures, rules.pause(1))


def judge_by_retry(ended: Ended, retry: RetryRule | None, host: str) -> Judgement:
    """The same where a rule of retries decides, and nobody is blamed. Without one, every response is a result.

    What was not sent, and a Retry-After, use up no attempt.
    """
    if retry is None or ended.standing is Standing.ANSWERED:
        return END
    if ended.standing is Standing.UNSENT:
        return Judgement(Verdict.WAIT, ended.failures, ended.outcome.retry_after or 0.0)
    if ended.standing is Standing.REFUSED and ended.outcome.retry_after is not None:
        return Judgement(Verdict.WAIT, ended.failures, ended.outcome.retry_after)
    failures = ended.failures + 1
    wait = retry(host, failures, ended.outcome)
    return Judgement(Verdict.FAIL, failures) if wait is None else Judgement(Verdict.RETRY, failures, wait)
