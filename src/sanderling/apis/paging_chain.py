"""What a walk over pages remembers from page to page, and how it knows that it goes round in circles."""

from hashlib import blake2b

import msgspec

from sanderling.apis.json_paths import UNREADABLE

MOST_EMPTY = 100  # pages in a row without an item; a host that never stops sends them for ever
RECENT = 32  # tokens that are remembered one by one
DIGEST = 12  # hexadecimal digits of each


class Chain(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a walk remembers from page to page."""

    page: int = 0  # pages before this one
    recent: str = ""  # digests of the last tokens or addresses
    mark: str = ""  # digest of an earlier one, by which circles of any length are found
    items: str = ""  # digest of the last page's items
    start: str = ""  # and of the first page's
    empty: int = 0  # pages without items, in a row
    total: int = 0  # the largest that was seen

    def follow(self, token: str) -> "Chain":
        """The chain with one more token. Raises ValueError if it came before."""
        digest, page = digest_of(token.encode(errors="surrogatepass")), self.page + 1
        recent = [self.recent[at : at + DIGEST] for at in range(0, len(self.recent), DIGEST)]
        if digest in recent or digest == self.mark:
            when = "on the page before" if recent and recent[-1] == digest else "on an earlier page"
            raise ValueError(f"page {page + 1} has a token or address that came {when}: the pages go round in circles")
        # Brent: a mark that moves at every power of two meets any circle.
        mark = digest if page & (page - 1) == 0 else self.mark
        kept = "".join([*recent, digest][-RECENT:])
        return msgspec.structs.replace(self, page=page, recent=kept, mark=mark)

    def see(self, items: list[object] | None, body: bytes) -> "Chain":
        """The chain with what was on this page. Raises ValueError for the same page again, or too many empty ones."""
        if items is None:
            return self
        if not items:
            if self.empty + 1 >= MOST_EMPTY:
                raise ValueError(
                    f"{MOST_EMPTY} pages in a row without an item; set stop_after_empty_page to end at one"
                )
            return msgspec.structs.replace(self, items="", empty=self.empty + 1)
        try:
            digest = digest_of(msgspec.json.encode(items))
        except (*UNREADABLE, OverflowError):  # numbers too large to be written
            digest = digest_of(body)
        if digest in (self.items, self.start):
            which = "page before: the host ignores where we are" if digest == self.items else "first: they begin anew"
            raise ValueError(f"page {self.page + 1} has the same items as the {which}")
        return msgspec.structs.replace(self, items=digest, start=self.start or digest, empty=0)


def digest_of(data: bytes) -> str:
    """A few digits that tell one token from another."""
    return blake2b(data, digest_size=DIGEST // 2).hexdigest()
