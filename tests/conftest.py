import os
import signal
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

# They assert too, and should say as much as a test when they fail.
pytest.register_assert_rewrite("driven", "instances_contract", "letters", "probed_ids", "random_plays")

pytest_plugins = ["services.fixtures", "pytester"]

# What a shell starts in the background ignores Ctrl-C, and so would every command that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the machine may be busy with something else. The same examples every time where nobody watches.
settings.register_profile("suite", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Whatever a test makes of the log, a level that it is set to for one, ends with it."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
