"""Reports as they might be, for whatever makes, sends or draws them."""

import msgspec
from hypothesis import strategies as st

from sanderling.observe.report import (
    Activity,
    AtFault,
    Event,
    HostCondition,
    HostReport,
    Process,
    Progress,
    Report,
    Severity,
    Trouble,
    WorkCounts,
)


class Facts(msgspec.Struct, frozen=True):
    """What is special about some system."""

    depth: int
    by_name: dict[str, int]


TEXTS = st.text(max_size=30)
COUNTS = st.integers(0, 2**63 - 1)
VALUES = st.floats(allow_nan=False, allow_infinity=False)
WORK = st.builds(WorkCounts, asked=COUNTS, refused=COUNTS, kept=COUNTS, failed=COUNTS, waiting=COUNTS)
HOSTS = st.builds(
    HostReport,
    host=TEXTS,
    state=st.sampled_from(HostCondition),
    waiting=COUNTS,
    in_flight=COUNTS,
    trouble=TEXTS,
    at_fault=st.none() | st.sampled_from(AtFault),
    requests=COUNTS,
    refused=COUNTS,
    ceiling=st.none() | st.floats(0, 1e9),
    latency=st.none() | st.floats(0, 1e9),
    why=TEXTS,
)
PROCESSES = st.builds(
    Process,
    pid=COUNTS,
    started=st.floats(0, 1e9),
    wall=st.floats(1e9, 2e9),
    running=st.booleans(),
    paused=st.booleans(),
)
ACTIVITIES = st.builds(Activity, label=TEXTS, value=st.none() | VALUES, text=TEXTS, counts=st.booleans())
REPORTS = st.builds(
    Report[Facts],
    system=TEXTS,
    doing=TEXTS,
    process=PROCESSES,
    troubles=st.lists(st.builds(Trouble, st.sampled_from(Severity), TEXTS), max_size=3).map(tuple),
    time_left=st.none() | st.floats(0, 1e9),
    progress=st.none() | st.builds(Progress, done=COUNTS, whole=COUNTS, what=TEXTS, failed=COUNTS),
    work=WORK,
    set_aside=COUNTS,
    hosts=st.lists(HOSTS, max_size=8, unique_by=lambda host: host.host).map(tuple),
    hosts_known=COUNTS,
    classes=st.dictionaries(TEXTS, COUNTS, max_size=3),
    counters=st.dictionaries(TEXTS, VALUES, max_size=3),
    gauges=st.dictionaries(TEXTS, st.none() | VALUES, max_size=3),
    numbers=st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple),
    lines=st.lists(st.tuples(TEXTS, TEXTS), max_size=8).map(tuple),
    activity=st.lists(ACTIVITIES, max_size=3).map(tuple),
    events=st.lists(st.builds(Event, st.floats(0, 2e9), TEXTS), max_size=8).map(tuple),
    facts=st.builds(Facts, depth=COUNTS, by_name=st.dictionaries(TEXTS, COUNTS, max_size=3)),
)
