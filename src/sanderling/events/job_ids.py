"""Whose a job is: the project that an id names, or none.

    fc5d5ffb-36cc-4c8d-a288-f5215af7fb80-competitor-Coca-Cola-0
    `-- project ----------------------'  `- kind -' `entity-' `- index

| id | project |
|---|---|
| a UUID alone | none: a dry run |
| UUID, kind, perhaps an entity, perhaps an index | the UUID, in lower case |
| UUID, entity, index | the UUID, in lower case |
| UUID, index | none: it may be a dry run that counts |
| name, `brand` or `competitor`, index | the name, hyphens included |
| name, `competitor`, entity, index | the name, hyphens included |
| name, entity, index, without any other hyphen | the name |
| anything else | none |

Nothing is ever put down to a project that might be another's. A UUID says where it ends. A name does not: where hyphens
could belong to the name as well as to the entity (`north-star-coca-cola-0`), or a kind occurs twice, the project is not
known. A row without a project can be given one later; a row of the wrong project has been shown to strangers by then.
One thing is taken for granted: that nobody calls a project, or an entity without a kind, `brand` or `competitor`.
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["brand", "competitor", "other"]

LONGEST = 256
DRY_RUNS = frozenset({"dryrun", "dry_run"})
KINDS = frozenset({"brand", "competitor"})

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # of any version
_WHOLE_UUID = re.compile(_UUID, re.ASCII | re.IGNORECASE)
_OWNED = re.compile(rf"({_UUID})-(.*)", re.ASCII | re.IGNORECASE | re.DOTALL)
# Digits are ASCII: Python takes `²` and `٣` for digits as well.
_INDEXED = re.compile(r"(?:(.*)-)?([0-9]{1,9})", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class JobId:
    """What the id of a job says."""

    project: str | None
    entity: str  # whose name was searched for; empty if it has none
    kind: Kind
    index: int | None
    dry_run: bool
    raw: str  # as it came, without space around it

    @property
    def project_uuid(self) -> str | None:
        """The project, if it is a UUID."""
        return as_uuid(self.project)


def as_uuid(value: object) -> str | None:
    """The UUID that a value is, in lower case; None if it is none."""
    trimmed = value.strip() if isinstance(value, str) and len(value) < 100 else ""
    return trimmed.lower() if _WHOLE_UUID.fullmatch(trimmed) else None


def parse_job(job_id: object) -> JobId:
    """What the id of a job says. Never raises."""
    raw = job_id.strip() if isinstance(job_id, str) else ""
    if not raw or len(raw) > LONGEST or not raw.isprintable():
        return _without_project(raw)
    if _WHOLE_UUID.fullmatch(raw):
        return _without_project(raw, dry_run=True)
    if owned := _OWNED.fullmatch(raw):
        return _parse_owned(raw, owned[1].lower(), owned[2])
    # A UUID further on may be the project's, or the job's.
    return _without_project(raw) if _WHOLE_UUID.search(raw) else _parse_named(raw)


def _without_project(raw: str, *, dry_run: bool = False) -> JobId:
    return JobId(None, "", "other", None, dry_run, raw)


def _parse_owned(raw: str, project: str, rest: str) -> JobId:
    """A job whose id begins with a UUID."""
    indexed = _INDEXED.fullmatch(rest)
    described, index = (indexed[1] or "", int(indexed[2])) if indexed else (rest, None)
    kind, entity = _kind_of(described)
    if kind == "other" and entity.lower() in DRY_RUNS:
        return _without_project(raw, dry_run=True)
    # Without a kind it takes an entity and an index to tell a job of a project from a dry run.
    if kind == "other" and (not entity or index is None or _WHOLE_UUID.search(entity)):
        return _without_project(raw)
    return JobId(project, entity, kind, index, dry_run=False, raw=raw)


def _kind_of(described: str) -> tuple[Kind, str]:
    first, _, rest = described.partition("-")
    match first.lower():
        case "brand":
            return "brand", rest
        case "competitor":
            return "competitor", rest
    return "other", described


def _parse_named(raw: str) -> JobId:
    """A job whose project has a name, and not a UUID."""
    *parts, last = raw.split("-")
    index = _INDEXED.fullmatch(last)
    if not index or len(parts) < 2:
        return _without_project(raw)
    project, kind, entity = _split(parts)
    if not project or project.lower() in KINDS:
        return _without_project(raw)
    if project.lower() in DRY_RUNS or (kind == "other" and entity.lower() in DRY_RUNS):
        return _without_project(raw, dry_run=True)
    return JobId(project, entity, kind, int(index[2]), dry_run=False, raw=raw)


def _split(parts: list[str]) -> tuple[str, Kind, str]:
    """Project, kind and entity of the parts before the index; no project where they could be split in two ways."""
    lower = [part.lower() for part in parts]
    markers = [place for place, part in enumerate(lower) if part == "competitor"]
    if lower[-1] == "brand" and not markers:
        return "-".join(parts[:-1]).strip(), "brand", ""
    if len(markers) == 1 and lower[-1] != "brand":
        place = markers[0]
        return "-".join(parts[:place]).strip(), "competitor", "-".join(parts[place + 1 :])
    if len(parts) == 2 and parts[1] and not markers:
        return parts[0].strip(), "other", parts[1]
    return "", "other", ""
