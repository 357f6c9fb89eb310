"""The way of records from a source to a target: in batches, each with the mark behind it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from sanderling.records.selection import Selection
from sanderling.records.target import ExportTarget, Mark, TargetError
from sanderling.stores.record_source import RecordSource

# A batch is what is in memory at once, whichever comes first.
BATCH, BATCH_BYTES = 5_000, 8 << 20
LOOKED_AT = 50_000  # records without one that is wanted, after which the mark moves all the same


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export did."""

    read: int
    written: int
    records: int  # that the target holds now
    resumed: bool  # it went on with one that had not come to its end
    notes: list[str] = field(default_factory=list)


Watch = Callable[[int, int], None]  # is told how many records were read, and written


def export(source: RecordSource, target: ExportTarget, selection: Selection, *, new: bool, watch: Watch) -> Exported:
    """Write what the target does not hold yet. Raises TargetError and RecordsError; then try again."""
    mark = target.open()
    if mark is None:
        mark = Mark(origin=source.about.origin, position="", where=selection.where, fields=selection.fields)
        resumed = False
    else:
        _check(mark, source, target, selection, new=new)
        resumed = not mark.complete
    run = _Run(target, mark, watch)
    for record in source.read(mark.position or None):
        run.take(selection.select(record.json) if record.json else None, record.position, bool(record.json))
    mark = run.finish()
    return Exported(run.read, run.written, mark.records, resumed, [*source.about.notes, *target.notes])


class _Run:
    def __init__(self, target: ExportTarget, mark: Mark, watch: Watch) -> None:
        self.read = self.written = 0
        self._target = target
        self._mark = mark
        self._watch = watch
        self._position = mark.position
        self._batch: list[bytes] = []
        self._size = self._unmarked = 0

    def take(self, json: bytes | None, position: str, is_record: bool) -> None:  # noqa: FBT001 - one caller
        self._position = position
        self.read += is_record
        self._unmarked += 1
        if json is not None:
            self._batch.append(json)
            self._size += len(json)
        if len(self._batch) >= BATCH or self._size >= BATCH_BYTES or self._unmarked >= LOOKED_AT:
            self._target.write(self._batch, self._next(complete=False))

    def finish(self) -> Mark:
        if self._batch:
            self._target.write(self._batch, self._next(complete=False))
        mark = self._next(complete=True)
        self._target.finish(mark)
        return mark

    def _next(self, *, complete: bool) -> Mark:
        """The mark behind all that was read; the batch is the target's from now on."""
        written = len(self._batch)
        self.written += written
        self._mark = _moved(self._mark, self._position, self._mark.records + written, complete=complete)
        self._batch, self._size, self._unmarked = [], 0, 0
        self._watch(self.read, self.written)
        return self._mark


def _moved(mark: Mark, position: str, records: int, *, complete: bool) -> Mark:
    return Mark(
        origin=mark.origin,
        position=position,
        records=records,
        complete=complete,
        where=mark.where,
        fields=mark.fields,
    )


def _check(mark: Mark, source: RecordSource, target: ExportTarget, selection: Selection, *, new: bool) -> None:
    """Raise TargetError if what is there cannot be gone on with."""
    elsewhere = "Choose another target with --to, or with --table."
    if mark.origin != source.about.origin:
        raise TargetError(f"{target.place} holds the records of another folder. {elsewhere}")
    for flag, before, now in (("--where", mark.where, selection.where), ("--fields", mark.fields, selection.fields)):
        if before != now:
            was = before if isinstance(before, str) else ",".join(before)
            raise TargetError(
                f"{target.place} was exported {f'with {flag} {was!r}' if was else f'without {flag}'}. "
                f"Use the same again. {elsewhere}"
            )
    if mark.complete and not new:
        raise TargetError(
            f"{target.place} holds an export that is complete, of {mark.records:,} records. "
            f"To add what has come since: --new. {elsewhere}"
        )
