"""What all tests share."""

import asyncio
import inspect
import os

import pytest
from hypothesis import settings

# Whoever lands a change sees its own faults; whoever looks for old ones types RANDOM=1 make quick.
# No deadline: a busy machine breaks no test.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("random" if os.environ.get("RANDOM") else "same")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
