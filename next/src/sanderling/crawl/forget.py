"""`forget`: removes all that a folder has of pages or hosts, so that nobody takes it up again.

`forget.json` says in plain words what is being removed, until it is: whoever opens the folder after a kill ends it.
Files are rewritten beside the old ones; a commit of the ledger says which of both count, and those take their places.
"""

import asyncio
import os
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from sanderling.crawl.keep import index_lines, remove_bodies, rewrite_kept, write_index
from sanderling.crawl.repeats import Repeats, kind_of
from sanderling.crawl.request import keys_of, request_key
from sanderling.crawl.sink import CrawlState, write_failed
from sanderling.crawl.warc import read_index_line
from sanderling.files import DRAFT, Exit, FolderError, read_small, sync_folder, write_file
from sanderling.ids import HostError, UrlError, normalise_host, normalise_url
from sanderling.options import OptionError
from sanderling.records.rows import RowReader, rewrite_rows
from sanderling.stores import Batch, Ledger, RowFile

JOURNAL = "forget.json"
SUFFIX = ".forgetting"  # of files that take the place of others
_BODY = re.compile(rb"bodies/[0-9a-f]{2}/[0-9a-f]{64}")  # wherever a row or a record names it
_STATES = ("waiting", "failed", "refused", "left_out", "moved")


class Forgetting(msgspec.Struct, frozen=True):
    """What is to be forgotten: normal addresses, and hosts."""

    urls: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, words: Iterable[str]) -> "Forgetting":
        """What people typed. Raises OptionError."""
        urls, hosts = list[str](), list[str]()
        for word in words:
            try:
                if "//" in word:
                    urls.append(normalise_url(word))
                else:
                    hosts.append(normalise_host(word))
            except (UrlError, HostError) as error:
                raise OptionError(f"THING: {error}") from None
        return cls(tuple(urls), tuple(hosts))

    def names(self, url: str) -> bool:
        """Whether a normal address is meant."""
        return url in self.urls or url.split("/", 3)[2] in self.hosts

    def names_kind(self, kind: str) -> bool:
        """Whether a kind of pages tells of what is meant."""
        return kind in {kind_of(url) for url in self.urls} or kind.partition("/")[0] in self.hosts

    def merged(self, other: "Forgetting") -> "Forgetting":
        """Both."""
        return Forgetting(tuple({*self.urls, *other.urls}), tuple({*self.hosts, *other.hosts}))


def read_journal(folder: Path) -> Forgetting | None:
    """What was being forgotten when the process ended."""
    path = folder / JOURNAL
    return msgspec.json.decode(read_small(path, 1 << 30), type=Forgetting) if path.exists() else None


def check_journal(folder: Path) -> None:
    """Raise FolderError if something is half forgotten."""
    if (folder / JOURNAL).exists():
        raise FolderError(f"a sanderling forget of {folder} did not end", "run it again", Exit.LATER)


def begin_to_forget(folder: Path, wanted: Forgetting) -> Forgetting:
    """Note what is to be forgotten, with what an earlier process had not ended."""
    before = read_journal(folder)
    wanted = wanted if before is None else before.merged(wanted)
    write_file(folder / JOURNAL, msgspec.json.encode(wanted))
    return wanted


async def forget(folder: Path, name: str, notes: Path, ledger: Ledger, wanted: Forgetting) -> tuple[int, int]:
    """Forget what the journal says; how many addresses were removed, and how many are being requested.

    Nobody else writes rows meanwhile. If some are being requested it has to be called again once they have ended.
    """
    await asyncio.to_thread(_take_places, folder, await ledger.row_files())
    pairs = [(url.split("/", 3)[2], key) for url in wanted.urls for key in keys_of(url)]
    for state in _STATES:
        for host in {url.split("/", 3)[2] for url in wanted.urls}:
            pairs += [(host, each.key) async for each in ledger.tasks(state, host=host) if each.url in wanted.urls]
    pairs += [(host, b"") for host in wanted.hosts]
    done = await ledger.forget(dict.fromkeys(pairs))
    keys = {key for _, key in pairs if key}
    starts = {request_key(f"https://{host}/")[:5] for host in wanted.hosts}

    def gone(key: bytes) -> bool:
        return key in keys or key[:5] in starts

    files = await ledger.row_files()
    drafts = await asyncio.to_thread(_rewrite, folder, name, files, gone)
    await ledger.commit(Batch(files=drafts, state=_state_without(ledger.state, wanted)))
    files = await ledger.row_files()
    await asyncio.to_thread(_clean, folder, name, notes, files, wanted)
    await write_failed(folder, ledger)
    if not done.busy:
        (folder / JOURNAL).unlink()
        sync_folder(folder)
    return done.count, len(done.busy)


def _rewrite(folder: Path, name: str, files: Sequence[RowFile], gone: Callable[[bytes], bool]) -> list[RowFile]:
    drafts = rewrite_rows(folder, name, files, gone, SUFFIX) + rewrite_kept(folder, files, gone, SUFFIX)
    for place in {(folder / each.file).parent for each in drafts}:
        sync_folder(place)
    return drafts


def _take_places(folder: Path, files: Iterable[RowFile]) -> None:
    """Drafts that the ledger counts on take the place of the old files; others are of no use."""
    for each in files:
        draft = folder / f"{each.file}{SUFFIX}"
        if not draft.exists():
            continue
        if draft.stat().st_size == each.length and _crc(draft) == each.crc:
            os.replace(draft, folder / each.file)  # noqa: PTH105 - as in files.py
            sync_folder(draft.parent)
        else:
            draft.unlink()


def _crc(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            crc = zlib.crc32(piece, crc)
    return crc


def _clean(folder: Path, name: str, notes: Path, files: Sequence[RowFile], wanted: Forgetting) -> None:
    """Let drafts take their places, and remove what else names what is forgotten."""
    _take_places(folder, files)
    for draft in folder.rglob(f".*{DRAFT}"):  # of processes that were killed
        if not draft.name.startswith((".status.json", ".control.json")):  # others may be writing those
            draft.unlink(missing_ok=True)
    write_index(folder, files)
    here = [each for each in files if (folder / each.file).exists()]
    if (folder / "bodies").is_dir():
        named = set[str]()
        with RowReader(folder, name, here) as rows:
            for entry in rows.entries():
                named.update(text.decode() for text in _BODY.findall(entry.content))
        for line in index_lines(folder, here):
            named.add(read_index_line(line).filename)
        remove_bodies(folder, named)
    noted = msgspec.json.decode(read_small(notes, 1 << 30))
    starts = [url for url in noted["starts"] if not wanted.names(url)]
    if starts != noted["starts"]:
        content = msgspec.json.encode(noted | {"starts": starts})
        write_file(notes, msgspec.json.format(content) + b"\n")
    (folder / "status.json").unlink(missing_ok=True)  # a run that goes on writes it anew


def _state_without(state: bytes, wanted: Forgetting) -> bytes:
    """What the ledger keeps of the crawl, without what names what is forgotten."""
    if not state:
        return state
    known = msgspec.msgpack.decode(state, type=CrawlState)
    repeats = Repeats(1, known.repeats)
    repeats.forget(wanted.names_kind)
    hosts = tuple(host for host in known.hosts if host not in wanted.hosts)
    return msgspec.msgpack.encode(msgspec.structs.replace(known, hosts=hosts, repeats=repeats.saved()))
