"""What the limiter of whoever polls knows, in its database: for whoever polls next, on whatever machine."""

from collections.abc import Sequence
from contextlib import suppress

from sanderling.stores.limiter_file import Restores
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_lease import PollingDatabase

KEEP = """INSERT INTO polling_limiter (saved, news) VALUES (?, ?)
    ON CONFLICT (one) DO UPDATE SET saved = excluded.saved, news = excluded.news"""
ADD = "UPDATE polling_limiter SET news = news || ?::bytea WHERE one"
READ = "SELECT saved, news FROM polling_limiter WHERE one"


class PollingLimiterKeeper:
    """Keeps it, as far as the database is there."""

    def __init__(self, database: PollingDatabase) -> None:
        self._database = database

    async def keep(self, saved: Sequence[bytes], news: Sequence[bytes] = ()) -> None:
        """Keep all of it, and the news that it lacks."""
        with suppress(PollingStoreError):  # then there is what was kept last
            lines = b"".join(each + b"\n" for each in news)
            await self._database.write(lambda db: db.execute(KEEP, b"".join(saved), lines))

    async def add_news(self, news: bytes) -> None:
        """Keep what the limiter has learned since."""
        with suppress(PollingStoreError):
            await self._database.write(lambda db: db.execute(ADD, news + b"\n"))

    async def recall(self, limiter: Restores) -> None:
        """Have a limiter take up what was kept. Raises PollingStoreError."""
        for saved, news in await self._database.peek(lambda db: db.fetch(READ)):
            for line in (saved, *news.splitlines()):
                with suppress(ValueError):  # written by another release: what it knew is learned again
                    limiter.restore(line)
