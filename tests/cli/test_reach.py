"""Reaching a service: who is waited for and for how long, what is said meanwhile, and what in the end."""

from collections.abc import Callable

import pytest
from looping import virtual

from sanderling.cli import reach
from sanderling.cli.command_error import CommandError
from sanderling.cli.reach import AGAIN, PATIENCE, explained, reached
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.instances import InstancesError, InstancesFault
from sanderling.stores.objects import ObjectError, ObjectFault
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.queue import QueueError
from sanderling.testing.virtual import LoopClock

SERVER, FILE = "amqp://me@host/", "sqlite:there"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> LoopClock:
    made = LoopClock()
    monkeypatch.setattr(reach, "SystemClock", lambda: made)
    return made


class Service:
    """One that is well after so many calls."""

    def __init__(self, error: Exception, failures: int = 1_000) -> None:
        self.asked = 0
        self._error, self._failures = error, failures

    async def __call__(self) -> str:
        self.asked += 1
        if self.asked <= self._failures:
            raise self._error
        return "here"


@virtual
async def test_a_server_that_comes_up_after_us_is_waited_for_and_that_is_said_once(clock: LoopClock) -> None:
    service, said = Service(QueueError("nobody answers."), failures=3), list[str]()

    found = await reached("--queue", SERVER, service, said.append)

    assert (found, clock.now()) == ("here", 3 * AGAIN)
    assert said == [f"--queue: nobody answers; trying for {PATIENCE:.0f} s"]


@virtual
async def test_after_a_while_it_is_given_up_with_exit_code_1(clock: LoopClock) -> None:
    with pytest.raises(CommandError, match=r"^--queue: nobody answers$") as raised:
        await reached("--queue", SERVER, Service(QueueError("nobody answers")), lambda _: None)

    assert (raised.value.code, clock.now()) == (1, PATIENCE)


@pytest.mark.parametrize(
    ("url", "say"), [(SERVER, None), (FILE, lambda _: None), (None, lambda _: None), ("", lambda _: None)]
)
def test_who_only_looks_and_a_file_are_not_waited_for(
    clock: LoopClock, url: str | None, say: Callable[[str], object] | None
) -> None:
    service = Service(QueueError("the disk is full"))

    @virtual
    async def main() -> None:
        with pytest.raises(CommandError) as raised:
            await reached("--queue", url, service, say)

        assert str(raised.value) == ("--queue: the disk is full" if url else "the disk is full")
        assert (raised.value.code, clock.now()) == (1, 0.0)

    main()
    assert service.asked == 1


@pytest.mark.parametrize(
    "error",
    [
        AnalyticsError("no", transient=False),
        PollingStoreError("no", transient=False),
        InstancesError("no", InstancesFault.REFUSED),
        ObjectError("no", fault=ObjectFault.MISSING),
    ],
)
def test_what_no_waiting_will_change_is_said_at_once_with_exit_code_2(error: Exception, clock: LoopClock) -> None:
    @virtual
    async def main() -> None:
        with pytest.raises(CommandError) as raised:
            await reached("--where", "postgresql://db/x", Service(error), lambda _: None)

        assert (raised.value.code, clock.now()) == (2, 0.0)

    main()


@virtual
async def test_a_url_that_is_of_no_kind_is_not_waited_for(clock: LoopClock) -> None:
    with pytest.raises(CommandError, match="--raw: 'mysql' is nothing") as raised:
        await reached("--raw", "mysql://x", Service(QueueError("'mysql' is nothing")), lambda _: None)

    assert (raised.value.code, clock.now()) == (2, 0.0)


@virtual
async def test_what_is_no_problem_of_a_service_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        await reached("--queue", SERVER, Service(ZeroDivisionError()), lambda _: None)


def test_a_command_that_ends_by_itself_says_what_is_not_to_be_had_without_moving_a_cursor() -> None:
    with pytest.raises(CommandError) as raised:
        explained(Service(QueueError("gone\x1b[2J"))())

    assert (str(raised.value), raised.value.code) == ("gone\N{REPLACEMENT CHARACTER}[2J", 1)
