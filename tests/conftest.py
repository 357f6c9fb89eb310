import gc
import os
import signal
from collections.abc import Generator, Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

# They assert too, and should say as much as a test when they fail.
pytest.register_assert_rewrite(
    "analytics_killed", "driven", "instances_contract", "letters", "probed_ids", "random_plays"
)

pytest_plugins = ["services.fixtures", "query_plans", "pytester"]

# What a shell starts in the background ignores Ctrl-C, and so would every command that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# To read the names of all authorities takes every process some time, and nobody outside is called.
os.environ.setdefault("SSL_CERT_FILE", os.devnull)

# No deadline, and nothing is too slow: the machine may be busy. The same examples every time where nobody watches.
settings.register_profile(
    "suite",
    deadline=None,
    max_examples=50,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("brief", settings.get_profile("suite"), max_examples=10)  # for what is run a second time
settings.load_profile("suite")

# Objects that are made before the collector looks for rings among them: by the usual 700 it looks all the time.
YOUNG = 50_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The file that takes longest comes first: begun last, it would keep all others waiting for a minute."""
    items.sort(key=lambda item: item.path.name != "test_tutorials.py")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: the collector need not walk millions of objects for it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(YOUNG)
        gc.enable()


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Every test begins with the log as a fresh process has it, and whatever it makes of it, ends with it.

    Before the test too: a fixture of a whole module may have run a command, which sets a level.
    """
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
