"""`sanderling try FILE`: requests ten ids, says what each response is taken for, and refuses what is ambiguous."""

import asyncio
from datetime import UTC, datetime
from typing import Protocol

from sanderling.fetch.client import Client
from sanderling.fetch.messages import HttpRequest, HttpResponse
from sanderling.fetch.options import RequestOptions
from sanderling.files import Exit
from sanderling.observe.report import clean_text
from sanderling.options import OptionError
from sanderling.sequence.description import IdAnswer, IdApi, Meaning
from sanderling.sequence.opening import key_headers, read_description
from sanderling.sequence.store_command import HasPrint

TRIED = 8  # ids that should exist, some of them
# Two that cannot: no API is near the largest whole number of JavaScript.
IMPOSSIBLE = (2**53 - 2, 2**53 - 1)
SHOWN = 60  # characters of a record
ERRORS = ("error", "errors")


class FileToTry(Protocol):
    """What was typed."""

    base: str
    begin: int | None


def try_description(file: str, typed: FileToTry, options: RequestOptions, context: HasPrint) -> Exit:
    """Request ten ids; FAILED if a response may be taken for something that it is not."""
    api = IdApi(read_description(file, typed.base))
    answers, statuses = asyncio.run(_request(api, typed.begin, options))
    for answer in answers:
        made = "" if answer.time is None else datetime.fromtimestamp(answer.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        said = answer.line.decode(errors="replace") if answer.line else answer.detail
        row = (
            api.spelled(answer.number),
            str(statuses[answer.number]),
            answer.meaning.name.lower(),
            made,
            said[:SHOWN],
        )
        context.print(clean_text("  ".join(filter(None, row))))
    faults = find_faults(api, answers)
    for each in faults:
        context.print(f"refused: {clean_text(each)}")
    if not faults:
        base = f" --base {typed.base}" if typed.base else ""
        context.print(f"follow it: sanderling sequence crawl {file}{base} --begin {answers[0].number} --out FOLDER")
    return Exit.FAILED if faults else Exit.DONE


async def _request(api: IdApi, begin: int | None, options: RequestOptions) -> tuple[list[IdAnswer], dict[int, int]]:
    headers = key_headers(api.description)
    answers: list[IdAnswer] = []
    statuses: dict[int, int] = {}
    async with Client(options) as client:
        if begin is None and (head := api.description.head) is not None:
            newest = api.head_of(await client.send(HttpRequest(head.url, headers=headers)))
            begin = None if newest is None else max(0, newest - TRIED + 1)
        if begin is None:
            raise OptionError("--begin is missing; expected an id that exists")
        ids = [*range(begin, begin + TRIED * api.description.stride, api.description.stride), *IMPOSSIBLE]
        step = TRIED if api.several else 1
        for start in range(0, len(ids), step):
            numbers = ids[start : start + step]
            response: HttpResponse = await client.send(HttpRequest(api.url(numbers), headers=headers))
            answers += api.read(numbers, response)
            statuses |= dict.fromkeys(numbers, response.status)
    return answers, statuses


def find_faults(api: IdApi, answers: list[IdAnswer]) -> list[str]:
    """What in these answers is ambiguous, with what to write instead."""
    faults = []
    found = [each for each in answers if each.meaning is Meaning.FOUND]
    if ghosts := [each.number for each in answers if each.number in IMPOSSIBLE and each.meaning.exists]:
        faults.append(f"id {ghosts[0]} cannot exist, and its response is taken for a record: set id, missing or error")
    if not api.description.id:
        named = [(each.number, name) for each in found for name in ERRORS if f'"{name}"'.encode() in each.line[:1000]]
        if named:
            faults.append(
                f"the response to id {named[0][0]} is taken for a record and has {named[0][1]}: set id or error"
            )
        if len({each.line for each in found}) < len(found):
            faults.append("several ids have the same record: set id, the path of the id in a record")
    if not any(each.meaning.exists for each in answers):
        faults.append("no response is taken for a record: look at record, id and --begin")
    if api.description.time and found and all(each.time is None for each in found):
        faults.append(f"no record has a time at {api.description.time}: correct time, or leave it out")
    return faults
