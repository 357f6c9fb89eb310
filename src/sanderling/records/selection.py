"""Which records are wanted, and what of them: a condition and paths, in the language of `apis/`."""

from dataclasses import dataclass
from typing import Any, Self

from sanderling.apis.conditions import Condition
from sanderling.apis.json_paths import UNREADABLE, Path
from sanderling.formats.exact_json import decode_exact, decode_plain, encode_exact
from sanderling.stores.record_source import RecordsError


class SelectionError(ValueError):
    """A condition or a path is none. The message says where."""


@dataclass(frozen=True, slots=True)
class Selection:
    """All records as they are, unless more is said."""

    where: str = ""
    fields: tuple[str, ...] = ()
    condition: Condition | None = None
    paths: tuple[Path, ...] = ()

    @classmethod
    def parse(cls, where: str = "", fields: tuple[str, ...] = ()) -> Self:
        """What these texts say. Raises SelectionError."""
        try:
            condition = Condition.parse(where) if where else None
        except ValueError as error:
            raise SelectionError(f"where: {error}") from None
        try:
            paths = tuple(Path.parse(field) for field in fields)
        except ValueError as error:
            raise SelectionError(f"fields: {error}") from None
        return cls(where, fields, condition, paths)

    def select(self, json: bytes) -> bytes | None:
        """What is wanted of a record, as JSON; None if it is not wanted."""
        if not self.wants(json):
            return None
        return encode_exact(self.pick(json)) if self.paths else json

    def wants(self, json: bytes) -> bool:
        """Whether a record is wanted."""
        return self.condition is None or self.condition.holds(_decoded(decode_plain, json))

    def pick(self, json: bytes) -> dict[str, Any]:
        """What is wanted of a record."""
        record: dict[str, Any] = _decoded(decode_exact, json)
        if not self.paths:
            return record
        return {field: path.find(record) for field, path in zip(self.fields, self.paths, strict=True)}


def _decoded(decode: Any, json: bytes) -> Any:  # noqa: ANN401 - of `exact_json`
    try:
        return decode(json)
    except UNREADABLE as error:
        raise RecordsError(f"a record cannot be read: {error}: {json[:80]!r}") from None
