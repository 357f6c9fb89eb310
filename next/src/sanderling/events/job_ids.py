"""Whose a job is: the project that its id names.

    fc5d5ffb-36cc-4c8d-a288-f5215af7fb80-competitor-Coca-Cola-0
    `-- project ----------------------'  `- kind -' `entity-' `- index

A UUID says where it ends; a name does not. Where hyphens could belong to the name as well as to what was searched for
(`north-star-coca-cola-0`), the project is not known: a row that is nobody's can be given to somebody later, one that
was shown to strangers cannot be taken back. What the message names counts where it agrees with one of the readings.
"""

import re

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # of any version
_WHOLE = re.compile(_UUID, re.ASCII | re.IGNORECASE)
_OWNED = re.compile(rf"({_UUID})-(.+)", re.ASCII | re.IGNORECASE | re.DOTALL)
_KINDS = frozenset({"brand", "competitor"})
_DRY_RUNS = frozenset({"dryrun", "dry_run"})


def extract_project_id(job_id: object) -> str | None:
    """The project of a job, to the letter of seed 002: what stands before the last two parts."""
    raw = job_id.strip() if isinstance(job_id, str) else ""
    if not raw or _WHOLE.fullmatch(raw):
        return None
    parts = raw.split("-")
    if len(parts) < 3 or not parts[-1].isdigit():
        return None
    return "-".join(parts[:-2]) or None


def as_uuid(value: str) -> str:
    """The UUID that a text is, in lower case; empty if it is none."""
    trimmed = value.strip()
    return trimmed.lower() if _WHOLE.fullmatch(trimmed) else ""


def readings(job_id: str) -> list[str]:
    """The projects that the id of a job may name; none for a dry run."""
    raw = job_id.strip()
    if owned := _OWNED.fullmatch(raw):
        described, _, index = owned[2].rpartition("-")
        rest = (described if _is_index(index) else owned[2]).lower()
        kind = rest.partition("-")[0]
        # Without a kind it takes an entity and an index to tell a project's job from a dry run that counts.
        named = kind in _KINDS or (described and _is_index(index) and rest not in _DRY_RUNS)
        return [owned[1].lower()] if named and not _WHOLE.search(rest) else []
    *parts, index = raw.split("-")
    lower = [part.lower() for part in parts]
    # A UUID further on may be the project's, or the job's.
    if _WHOLE.search(raw) or len(parts) < 2 or not _is_index(index) or _DRY_RUNS.intersection((lower[0], lower[-1])):
        return []
    if lower[-1] == "brand" and "competitor" not in lower:
        ends = [len(parts) - 1]
    elif "competitor" in lower and lower[-1] != "brand":
        ends = [place for place, part in enumerate(lower) if part == "competitor"]
    else:
        ends = list(range(1, len(parts)))
    found = ["-".join(parts[:end]).strip() for end in ends]
    return [each for each in found if each and each.lower() not in _KINDS]


def project_of(job_id: str, told: str, *, seed: bool) -> str | None:
    """The project of a job whose message names `told`; None where it is not known. `seed`: as the seed has it."""
    if seed:
        return extract_project_id(job_id) or told or None
    named, uuid = readings(job_id), as_uuid(told)
    if len(named) != 1:
        return uuid or (told if told in named else None)
    job = named[0]
    if as_uuid(job) or uuid:
        # A UUID is a statement, a name is a guess. Of two that differ, one is wrong, and nobody can tell which.
        return next(iter({as_uuid(job), uuid} - {""})) if "" in (as_uuid(job), uuid) or uuid == job else None
    return job if told in ("", job) else None


def _is_index(part: str) -> bool:
    return 0 < len(part) < 10 and part.isascii() and part.isdigit()
