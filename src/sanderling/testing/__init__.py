"""Fakes that behave: a clock that is moved by hand, and an event loop whose hours pass in milliseconds."""

from sanderling.testing.clock import FakeClock
from sanderling.testing.virtual import LoopClock, run_virtual

__all__ = ["FakeClock", "LoopClock", "run_virtual"]
