"""A process that polls, and keeps one document after another until it is killed. Its rows differ by their numbers."""

import asyncio
import sys

from polling_play import SCHEMA, WALL, document, event, lap, race, round_, told, whole

from sanderling.stores.postgres_polling import open_postgres_polling

LAPS = 20


async def keep_on(url: str) -> None:
    store = await open_postgres_polling(url, SCHEMA, "race")
    await store.claim(WALL)
    number = (await store.span()).newest
    while True:
        number += 1
        # Some come, some change, and every tenth time the round goes with all that is in it.
        keys = [str(each) for each in range(number % 7, LAPS)]
        laps = [lap(key, "a", None, float(number)) for key in keys]
        if number % 10:
            said = document(event(), round_("r"), race("a", "r"), *laps, whole=[whole("laps", "race", "a", *keys)])
        else:
            said = document(event(), whole=[whole("rounds", "event", "e")])
        await store.keep(told(said))
        print("kept", flush=True)  # noqa: T201 - for whoever wants to kill it


if __name__ == "__main__":
    asyncio.run(keep_on(sys.argv[1]))
