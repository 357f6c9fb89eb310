"""The ids everyone speaks of, and the one spelling of a host.

A host is the key under which pace, breaker and budget are kept, so two spellings of one host would be called twice
as fast as it allows, and one spelling for two hosts would let either block the other. Host names come from strangers:
what different software could read differently is refused here, never guessed.
"""

import hashlib
import ipaddress
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NewType

import idna

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

Host = NewType("Host", str)
Did = NewType("Did", str)
InstanceId = NewType("InstanceId", int)
TargetId = NewType("TargetId", str)

DEFAULT_PORT = {"https": 443, "wss": 443, "http": 80, "ws": 80}

# Into so many parts all hosts are divided, wherever rows of theirs are stored; never to be changed.
PARTITIONS = 1024

# RFC 1035 as text, without the trailing dot.
LONGEST_NAME = 253
LONGEST_LABEL = 63
# Unicode may shrink when it is mapped (combining marks, soft hyphens), so more may come in than may go out. Twice the
# longest name with its port is generous, and bounds what IDNA, whose rules look at neighbours, is ever asked to read.
LONGEST_INPUT = 512

# Hyphens anywhere and underscores: names like `-a.example` and `_dmarc.example` resolve and are in use.
_PLAIN = re.compile(r"[a-z0-9_-]+")
# WHATWG's test for "this will be read as an IPv4 address": the last label is a number. No such top-level name exists.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# UTS 46 maps the full-width and the small commercial at to the plain one.
_AT = "@\uff20\ufe6b"
_REFUSED = (
    (re.compile(f"[{_AT}]"), "has user info, which is no part of a host"),
    (re.compile(r"[\x00-\x20\x7f-\x9f]"), "has a space or a control character inside"),
    (re.compile("%"), "has a percent escape or a zone id, which software reads differently"),
    (re.compile(r"[/\\?#]"), "is a URL or a path; expected a bare host"),
)
_URL = re.compile(r"(?P<scheme>https?|wss?)://(?P<authority>[^/?#]*)", re.IGNORECASE)


class HostError(ValueError):
    """A text is not a host that everyone would read alike."""


def normalise(host: str, *, scheme: str = "https") -> Host:
    """The one spelling of `host`: lower case, punycode, no trailing dot, no port that `scheme` implies."""
    return _normalise(host, scheme)


# A crawl asks the same hosts over and over; what was spelled once is remembered, what was refused is looked at again.
@lru_cache(maxsize=4096)
def _normalise(host: str, scheme: str) -> Host:
    if scheme not in DEFAULT_PORT:
        raise HostError(f"scheme {_shown(scheme)}: expected one of {', '.join(DEFAULT_PORT)}")
    if len(host) > LONGEST_INPUT:
        raise HostError(f"host {_shown(host)} has {len(host)} characters; expected at most {LONGEST_INPUT}")
    text = host.strip(" ")
    for pattern, fault in _REFUSED:
        if pattern.search(text):
            raise HostError(f"host {_shown(text)} {fault}")
    name, port = _split(text)
    canonical = _ipv6(name) if name.startswith("[") else _name(name)
    return Host(canonical + _port(port, name, DEFAULT_PORT[scheme]))


def host_of(url: str) -> Host:
    """The host that `url` would call; only http, https, ws and wss have one here.

    User info is refused, not stripped: a URL that names its password should not travel further unnoticed.
    """
    found = _URL.match(url.strip(" "))
    if not found:
        raise HostError(f"URL {_shown(url)} does not start with one of {', '.join(f'{s}://' for s in DEFAULT_PORT)}")
    scheme, authority = found.groups()
    return _normalise(authority, scheme.lower())


def partition_of(host: str) -> int:
    """The part of all hosts that this one belongs to, from 0: the last ten bits of what `b2sum` says of its name."""
    return int.from_bytes(hashlib.blake2b(host.encode(), digest_size=64).digest(), "big") % PARTITIONS


def domain_of(host: Host) -> str:
    """The domain someone registered to own `host`; the name itself where none is known (an address, a bare suffix)."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    name = host.partition(":")[0]
    return _suffixes().privatesuffix(name) or name


def is_public_suffix(name: str) -> bool:
    """Whether anybody may register names below `name`, as below co.uk: nothing is shared by those who do."""
    return "." not in name or _suffixes().publicsuffix(name) == name


@cache
def _suffixes() -> "PublicSuffixList":
    # Here and not at the top: the list takes some 40 ms to read, and most commands need none of it.
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415

    # The private section counts: alice.github.io and bob.github.io are two owners, who must not share a penalty.
    # Unknown suffixes do not: `db.internal` and `web.internal` have nothing in common that we know of.
    return PublicSuffixList(accept_unknown=False, only_icann=False)


def _split(text: str) -> tuple[str, str]:
    """Name and port, as text; the name of an IPv6 address is bracketed."""
    if text.startswith("["):
        name, bracket, rest = text.partition("]")
        if not bracket or rest[:1] not in ("", ":"):
            raise HostError(f"host {_shown(text)}: expected [address] or [address]:port")
        return name + "]", rest[1:]
    if text.count(":") > 1:
        return f"[{text}]", ""
    name, _, port = text.partition(":")
    return name, port


def _port(port: str, name: str, default: int) -> str:
    # RFC 3986, 3.2.3: a colon with nothing behind it means the default port.
    if not port:
        return ""
    # The port is not echoed: of `user:secret/…@host`, a badly escaped URL, it would be the password.
    if not (port.isascii() and port.isdigit()) or not 1 <= int(port) <= 65535:
        raise HostError(f"host {_shown(name)}: expected its port to be a number from 1 to 65535")
    return "" if int(port) == default else f":{int(port)}"


def _name(name: str) -> str:
    mapped = _mapped(name).removesuffix(".")
    if not mapped.strip("."):
        raise HostError(f"host {_shown(name)} is empty; expected a name or an address")
    # Checked before encoding, which is then bounded: punycode is never shorter than what it encodes.
    if len(mapped) > LONGEST_NAME:
        raise HostError(f"host {_shown(name)} has {len(mapped)} characters; expected at most {LONGEST_NAME}")
    labels = [_label(label, name) for label in mapped.split(".")]
    encoded = ".".join(labels)
    if len(encoded) > LONGEST_NAME:
        raise HostError(f"host {_shown(name)} has {len(encoded)} characters as punycode; expected {LONGEST_NAME}")
    return _ipv4(encoded) if _NUMBER.fullmatch(labels[-1]) else encoded


def _mapped(name: str) -> str:
    """UTS 46: lower case, full-width to plain, every Unicode dot to a dot."""
    try:
        return idna.uts46_remap(name, std3_rules=False)
    except idna.IDNAError as error:
        raise HostError(f"host {_shown(name)}: {_short(str(error))}") from None


def _label(label: str, name: str) -> str:
    if not label.isascii():
        return _encoded(label, name)
    if not _PLAIN.fullmatch(label):
        raise HostError(f"host {_shown(name)}: label {label[:20]!r}, expected letters, digits, hyphens, underscores")
    if len(label) > LONGEST_LABEL:
        raise HostError(f"host {_shown(name)}: a label of {len(label)} characters, expected at most {LONGEST_LABEL}")
    if label.startswith("xn--") and not _decodes(label):
        raise HostError(f"host {_shown(name)}: label {label[:20]!r} is not the punycode of anything")
    return label


def _encoded(label: str, name: str) -> str:
    """Strict IDNA 2008: what it and UTS 46 disagree about, some software looks up elsewhere and some not at all."""
    try:
        return idna.alabel(label).decode("ascii")
    except idna.IDNAError as error:
        raise HostError(f"host {_shown(name)}: {_short(str(error))}") from None


def _decodes(label: str) -> bool:
    """Whether some Unicode label is looked up as this one.

    More than IDNA 2008 allows, by intent: names such as xn--n3h (a snowman) are registered, and spelled like this there
    is only one way to look them up.
    """
    code = label.removeprefix("xn--")
    try:
        text = code.encode("ascii").decode("punycode")
        same = text.encode("punycode").decode("ascii") == code and idna.uts46_remap(text, std3_rules=False) == text
    except UnicodeError:
        return False
    return same and not text.isascii()


def _ipv4(name: str) -> str:
    try:
        return str(ipaddress.IPv4Address(name))
    except ValueError:
        # 127.1, 0177.0.0.1, 0x7f.1 and 2130706433 are loopback to some software and a name or nothing to other: a
        # check made by one and a call made by the other would not mean the same machine.
        raise HostError(f"host {_shown(name)} ends in a number; expected an address of four plain decimals") from None


def _ipv6(bracketed: str) -> str:
    try:
        address = ipaddress.IPv6Address(bracketed[1:-1])
    except ValueError:
        # Cut at the first colon for the same reason as a port: what follows may be half a password.
        first = bracketed.partition(":")[0]
        raise HostError(f"host {_shown(first)}… in brackets or with several colons: expected IPv6") from None
    # Spelled out because Python 3.13 began to print these with dots, and a stored key must outlive an upgrade.
    return f"[::ffff:{address.ipv4_mapped}]" if address.ipv4_mapped else f"[{address.compressed}]"


def _shown(text: str) -> str:
    """`text` for a message: no user info, no path, no query, and short."""
    at = max(text.rfind(sign) for sign in _AT)
    return ("…@" if at >= 0 else "") + _short(repr(re.split(r"[/\\?#]", text[at + 1 : at + 200], maxsplit=1)[0]))


def _short(text: str, longest: int = 80) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
