"""The simulated hosts of repos, and the relay that lists them: who serves what, before the weather."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

from sanderling.apis.atproto import AtprotoCategory
from sanderling.worlds.pds_accounts import AccountCensus
from sanderling.worlds.pds_characters import PdsCharacter
from sanderling.worlds.pds_fates import RepoFate, complaint, json_page
from sanderling.worlds.pds_keys import SigningKey
from sanderling.worlds.site_pages import SitePage

XRPC = "/xrpc/"
GET_REPO = "com.atproto.sync.getRepo"
GET_LATEST_COMMIT = "com.atproto.sync.getLatestCommit"
LIST_REPOS = "com.atproto.sync.listRepos"
LIST_HOSTS = "com.atproto.sync.listHosts"
RESOLVE_HANDLE = "com.atproto.identity.resolveHandle"
WELL_KNOWN = "/.well-known/atproto-did"
DESCRIBE_SERVER = "com.atproto.server.describeServer"
LISTED, MOST_LISTED = 500, 1000  # rows of a page, and at most
# What a listing says of a repo that is not to be had. Of one that is not found it says nothing.
STATUSES = {
    AtprotoCategory.DEACTIVATED: "deactivated",
    AtprotoCategory.TAKENDOWN: "takendown",
    AtprotoCategory.SUSPENDED: "suspended",
}

Query = Mapping[str, str]


class Expected(NamedTuple):
    """What an honest archive ends with for a DID: the repo, or why there is none."""

    category: AtprotoCategory | None
    rev: str = ""
    collections: Mapping[str, int] = {}

    @property
    def archived(self) -> bool:
        """Whether it has the repo."""
        return self.category is None

    @property
    def records(self) -> int:
        """How many it has of it."""
        return sum(self.collections.values())


@dataclass(frozen=True, slots=True)
class FleetHost:
    """Something at an address."""

    name: str
    character: PdsCharacter
    origin: str  # as in http://healthy-1.example, or with an address and a port

    @property
    def listens(self) -> bool:
        """Whether anyone is there to connect to."""
        return self.character.listens

    def page(self, path: str) -> SitePage:
        """What is at a path, its query included."""
        raise NotImplementedError

    def expected(self) -> dict[str, Expected]:
        """For each DID whose repo it should have, what an honest archive ends with; the archive is patient."""
        return {}

    def forbids(self, _path: str) -> bool:
        """Whether a path is not to be asked for: none is, since nobody here has a robots.txt."""
        return False


@dataclass(frozen=True, slots=True)
class PdsHost(FleetHost):
    """A host of repos: the accounts from `first` on, `size` of them."""

    census: AccountCensus
    key: SigningKey
    first: int
    size: int
    signed: bool

    def fate(self, number: int) -> RepoFate:
        """What becomes of whoever asks for the repo of that account."""
        return self.character.fate(number - self.first)

    def expected(self) -> dict[str, Expected]:
        """For each DID of its own, what an honest archive ends with; the archive is patient."""
        return {self.census.did(number): self._end(number) for number in self.numbers}

    @property
    def numbers(self) -> range:
        """Its accounts."""
        return range(self.first, self.first + self.size)

    def page(self, path: str) -> SitePage:
        """What is at a path, its query included."""
        if path == WELL_KNOWN:
            return SitePage(200, (("Content-Type", "text/plain"),), self.census.did(self.first).encode())
        methods = {
            GET_REPO: self._repo,
            RESOLVE_HANDLE: self._resolved,
            GET_LATEST_COMMIT: self._latest_commit,
            LIST_REPOS: lambda query: listing("repos", self.size, lambda at: self.listed(self.first + at), query),
            DESCRIBE_SERVER: self._about,
        }
        return answer_xrpc(methods, path)

    def listed(self, number: int) -> dict[str, object] | None:
        """How a listing shows an account; None if it does not."""
        category = self.fate(number).category
        if category is AtprotoCategory.NOT_FOUND:
            return None
        account = self.census.account(number)
        row = {"did": account.did, "head": self._head(number), "rev": account.rev}
        return row | ({"active": False, "status": STATUSES[category]} if category in STATUSES else {"active": True})

    def _end(self, number: int) -> Expected:
        category = self.character.end or self.fate(number).category
        if category is not None:
            return Expected(category)
        account = self.census.account(number)
        return Expected(None, account.rev, account.collections())

    def _repo(self, query: Query) -> SitePage:
        number = self._number(query)
        if isinstance(number, SitePage):
            return number
        return self.fate(number).give(self.census.account(number, self._signer))

    def _latest_commit(self, query: Query) -> SitePage:
        number = self._number(query)
        if isinstance(number, SitePage):
            return number
        fate, account = self.fate(number), self.census.account(number)
        if fate.category is not None and fate.throughout:
            return fate.give(account)
        return json_page(200, {"cid": self._head(number), "rev": account.rev})

    def _resolved(self, query: Query) -> SitePage:
        """Who a handle is: u3.NAME is the account 3."""
        number, _, name = query.get("handle", "").removeprefix("u").partition(".")
        if name != self.name or not number.isdecimal() or int(number) not in self.numbers:
            return complaint("InvalidRequest", "Unable to resolve handle")
        return json_page(200, {"did": self.census.did(int(number))})

    def _about(self, _query: Query) -> SitePage:
        domain = f".{self.name}"
        return json_page(
            200, {"did": f"did:web:{self.name}", "availableUserDomains": [domain], "inviteCodeRequired": True}
        )

    def _number(self, query: Query) -> int | SitePage:
        did = query.get("did", "")
        if not did.startswith("did:"):
            return complaint("InvalidRequest", "Error: Params must have the property did, a DID")
        number = self.census.number(did)
        return number if number in self.numbers else complaint("RepoNotFound", f"Could not find repo for DID: {did}")

    def _head(self, number: int) -> str:
        return self.census.head(number, self._signer).text

    @property
    def _signer(self) -> SigningKey | None:
        return self.key if self.signed else None


@dataclass(frozen=True, slots=True)
class Relay(FleetHost):
    """Lists all hosts and all repos; asked for a repo it says where to go."""

    hosts: tuple[PdsHost, ...]

    def page(self, path: str) -> SitePage:
        """What is at a path, its query included."""
        total = sum(host.size for host in self.hosts)
        methods = {
            GET_REPO: self._repo,
            LIST_HOSTS: lambda query: listing("hosts", len(self.hosts), self._host, query),
            LIST_REPOS: lambda query: listing("repos", total, self._listed, query),
        }
        return answer_xrpc(methods, path)

    def _host(self, index: int) -> dict[str, object]:
        host = self.hosts[index]
        status = "active" if host.listens else "offline"
        name = host.origin.partition("//")[2]
        return {"hostname": name, "seq": 1000 * index, "accountCount": host.size, "status": status}

    def _listed(self, number: int) -> dict[str, object] | None:
        host = home(self.hosts, number)
        return host.listed(number) if host is not None else None

    def _repo(self, query: Query) -> SitePage:
        host = home(self.hosts, self.hosts[0].census.number(query.get("did", ""))) if self.hosts else None
        if host is None:
            return complaint("RepoNotFound", "account not found", 404)
        return SitePage(
            302, (("Location", f"{host.origin}{XRPC}{GET_REPO}?{urlencode({'did': query['did']}, safe=':')}"),)
        )


def home(hosts: tuple[PdsHost, ...], number: int) -> PdsHost | None:
    """The host of that account; None if it is nobody's."""
    at = bisect_right(hosts, number, key=lambda host: host.first) - 1
    return hosts[at] if at >= 0 and number in hosts[at].numbers else None


def answer_xrpc(methods: Mapping[str, Callable[[Query], SitePage]], path: str) -> SitePage:
    """What one of these methods of XRPC says; the path has the query in it."""
    where, _, query = path.partition("?")
    if not where.startswith(XRPC):
        return SitePage(404, (("Content-Type", "text/plain"),), b"Not here.\n")
    method = methods.get(where.removeprefix(XRPC))
    if method is None:
        return complaint("MethodNotImplemented", "Method Not Implemented", 501)
    return method(parse_query(query))


def parse_query(query: str) -> Query:
    """The parameters; of one that is there twice, the first."""
    return {name: values[0] for name, values in parse_qs(query).items()}


def listing(what: str, total: int, row: Callable[[int], object | None], query: Query) -> SitePage:
    """A page of a listing. It may have fewer rows than asked for and go on all the same: only the cursor tells."""
    limit, start = query.get("limit", str(LISTED)), query.get("cursor", "0")
    if not (_is_number(limit) and 1 <= int(limit) <= MOST_LISTED and _is_number(start)):
        return complaint("InvalidRequest", f"Error: limit must be 1 to {MOST_LISTED}, and cursor one of ours")
    end = min(total, int(start) + int(limit))
    rows = [found for at in range(int(start), end) if (found := row(at)) is not None]
    return json_page(200, {what: rows} | ({"cursor": str(end)} if end < total else {}))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 12
