"""One odd value in a document of the upstream: what it is in stays empty, people are told, and all else goes on."""

import json
from dataclasses import replace
from pathlib import Path

from race_polling import Polling, play, stored

from sanderling.polling.watch import PollingWatch
from sanderling.stores.polling import Query
from sanderling.task import Reply, Task
from sanderling.worlds.race import demo


def test_an_odd_date_in_the_event_costs_that_date_and_is_told(tmp_path: Path) -> None:
    polling = Polling(tmp_path, demo())
    send = polling.network.send
    odd = {polling.day.path("Event"): ("Start", "soon"), polling.day.path("Pilots"): ("PracticePilot", {"x": [1]})}

    async def oddly(task: Task) -> Reply:
        reply = await send(task)
        field, value = odd.get("/" + task.url.split("/", 3)[3], ("", None))
        if not field:
            return reply
        document = json.loads(reply.body)
        document[0][field] = value
        return replace(reply, body=json.dumps(document).encode())

    polling.network.send = oddly  # type: ignore[method-assign]

    async def script() -> None:
        await polling.open()

        async def look() -> None:
            await polling.clock.sleep(35.0)
            targets = {target.kind: target for target in await polling.store.list(Query(most=100))}
            assert set(targets) == {"event", "pilots", "rounds", "channels", "race", "results"}
            assert all(target.fetched and not target.failures for target in targets.values())
            assert targets["event"].status.startswith("ok, without $[0].Start: found 'soon', expected a date like")
            problems = PollingWatch(polling.system).report().facts.problems
            assert [problem.partition(" ")[0] for problem in problems] == ["discovery", "event", "pilots"]
            rows = await stored(polling)
            (event,) = rows["events"].values()
            assert (event["start_local"], event["name"] is not None) == (None, True)
            assert len(rows["pilots"]) == 6
            assert polling.asked(polling.day.race_path(polling.day.heats[0].id))[-1] > 34.0, "the race is live"

        await polling.during(look)
        await polling.store.close()

    play(script())
