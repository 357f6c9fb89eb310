"""A frontier that knows why each URL was left out, so that exactly those wait again for which that has changed."""

from collections import Counter
from collections.abc import Collection, Mapping
from math import inf

import msgspec

from sanderling.outcome import Code
from sanderling.stores import frontier_file
from sanderling.stores.durable import plainly
from sanderling.stores.frontier_rows import End
from sanderling.stores.frontier_shared import SharedFrontier


class ReopeningFrontier(SharedFrontier):
    """A frontier in which reasons begin with a word that says what left a URL out: a host, or a budget."""

    def reopen_at(self, words: Collection[str]) -> int:
        """What was left out waits again if the first word of its reason is one of these; how many."""
        left_out = int(End.LEFT_OUT)
        with self._transaction() as tally:
            sql = "SELECT id, detail FROM failure WHERE id IN (SELECT id FROM url WHERE end = ?)"
            ids = [(each,) for each, why in self._db.execute(sql, (left_out,)) if why.partition(" ")[0] in words]
            codes = "SELECT url.host, name FROM code JOIN url ON code.id = url.code WHERE url.id = ?"
            waiting = Counter[int]()
            for each in ids:
                ((host, code),) = self._db.execute(codes, each)
                tally[End.LEFT_OUT, code] -= 1
                waiting[host] += 1
            frontier_file.shift_hosts(self._db, waiting, self.wall())
            self._db.executemany("DELETE FROM failure WHERE id = ?", ids)
            self._db.executemany("UPDATE url SET end = 0, code = 0 WHERE id = ?", ids)
            self._db.executemany(
                """INSERT INTO ranked SELECT url.host, request.priority, url.id
                FROM url JOIN request ON request.id = url.id WHERE url.id = ? AND request.priority <> 0""",
                ids,
            )
            tally[End.WAITING, ""] += len(ids)
        return len(ids)

    def cut_off(self) -> list[tuple[str, str]]:
        """Host and reason of what budgets have cut off, each pair once."""
        sql = """SELECT DISTINCT host.name, failure.detail FROM failure JOIN url ON url.id = failure.id
            JOIN host ON host.id = url.host WHERE url.end = 7 AND url.code = ?"""
        with plainly(self._path):
            return self._db.execute(sql, (self._codes[Code.CANCELLED],)).fetchall()

    @property
    def budgets(self) -> dict[str, float]:
        """The budgets of the last run, by the first word of the reason they give; infinity for none."""
        said = msgspec.json.decode(self.meta.budgets, type=dict[str, float | None])
        return {name: inf if bound is None else bound for name, bound in said.items()}

    def note_budgets(self, budgets: Mapping[str, float]) -> None:
        """These are in force from now on."""
        if dict(budgets) != self.budgets:
            said = {name: None if bound == inf else bound for name, bound in budgets.items()}
            self.note(budgets=msgspec.json.encode(said).decode())
