"""`events dead show`: what our reader makes of a message. What else these commands do: `test_dead_letters.py`."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import called
from queue_commands import Queued

from sanderling.events.outbox import QUEUE
from sanderling.stores.queue import Letter

PROJECT = "0e2b7f4c-91d5-4c61-8b3a-5f5a3c6d7e80"
PAYLOAD = {
    "minio_path": "crawl-results/a/1.json.zst",
    "job_id": "spring-brand-0",
    "project_id": PROJECT,
    "platform": "web",
}
NEW = json.dumps({"event_id": "evt_1", "event_type": "data.collected", "payload": PAYLOAD}).encode()
GOOD = Letter("evt_1", NEW)


@pytest.fixture
def queued(tmp_path: Path) -> Queued:
    return Queued(f"sqlite:{tmp_path / 'out'}", QUEUE, (f"--out={tmp_path / 'out'}",))


def shown(queued: Queued, key: str) -> dict[str, Any]:
    done = called("dead", "show", *queued.named("events"), key, "--json")
    assert (done.code, done.err) == (0, "")
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_what_a_message_says_is_told_in_words(queued: Queued) -> None:
    queued.bury((GOOD, "the object is gone"))

    done = called("dead", "show", *queued.named("events"), "evt_1")

    lines = [line.split(maxsplit=1) for line in done.out.splitlines() if line.startswith(" ")]
    said = {line[0]: line[1] for line in lines if len(line) == 2}
    assert said["key"] == said["event"] == "evt_1"
    assert said["mode"] == "new"
    assert (said["job"], said["project"], said["platform"]) == ("spring-brand-0", PROJECT, "web")
    assert said["path"] == "crawl-results/a/1.json.zst"


def test_as_json_too_and_for_every_format(queued: Queued) -> None:
    legacy = Letter("old", b'{"data_ref": {"bucket": "b", "path": "p.json"}, "job_id": 5e400}')
    inline = Letter("in", b'{"meta": {"id": "7", "platform": "Web"}}')
    queued.bury((GOOD, "why"), (legacy, "why"), (inline, "why"))

    new, old, within = (shown(queued, key)["says"] for key in ("evt_1", "old", "in"))

    whose = {"event_id": "evt_1", "job_id": "spring-brand-0", "project_id": PROJECT, "platform": "web"}
    assert new == {"mode": "new", **whose, "path": PAYLOAD["minio_path"], "notes": new["notes"]}
    assert (old["mode"], old["bucket"], old["path"]) == ("legacy", "b", "p.json")
    assert old["notes"]
    assert (within["mode"], within["platform"]) == ("inline", "web")
    assert "path" not in within


def test_what_is_not_for_us_is_told_with_what_was_expected(queued: Queued) -> None:
    queued.bury((Letter("other", b'{"hello": "\xc3\xa9"}'), "why"))

    found = shown(queued, "other")

    assert found["unreadable"].startswith("message has 'hello'; expected payload.minio_path")
    assert "says" not in found
