"""What all tests share."""

import asyncio
import inspect
import os

import pytest
from hypothesis import settings

# Whoever lands a change sees its own faults; whoever looks for old ones types RANDOM=1 make quick.
settings.register_profile("same", derandomize=True)
if not os.environ.get("RANDOM"):
    settings.load_profile("same")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
