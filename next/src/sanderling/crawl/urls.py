"""URLs with their parameters."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote_plus, urlencode

from sanderling.ids import normalise_url

LONGEST_URL = 20_000  # characters; servers refuse longer ones, and each is stored


def absolute(url: str, base: str | None) -> str:
    """The one spelling of an address that a response to `base` names. Raises UrlError."""
    return normalise_url(url, base, LONGEST_URL)


def with_params(url: str, params: Mapping[str, object]) -> str:
    """The URL with more parameters in its query."""
    page, mark, fragment = url.partition("#")
    pairs = encoded(params)
    return f"{page}{'&' if '?' in page else '?'}{pairs}{mark}{fragment}" if pairs else url


def param_of(url: str, name: str) -> str | None:
    """The first value of a parameter of the query."""
    query = url.partition("#")[0].partition("?")[2]
    return next((value for key, value in parse_qsl(query, keep_blank_values=True) if key == name), None)


def put_param(url: str, name: str, value: str) -> str:
    """The URL with one value for a parameter, in the place where it had one."""
    page, _, query = url.partition("#")[0].partition("?")
    pairs = [pair for pair in query.split("&") if pair]
    encoded = urlencode({name: value})
    places = [at for at, pair in enumerate(pairs) if unquote_plus(pair.partition("=")[0]) == name]
    if places:
        pairs[places[0]] = encoded
        pairs = [pair for at, pair in enumerate(pairs) if at not in places[1:]]
    else:
        pairs.append(encoded)
    return f"{page}?{'&'.join(pairs)}"


def encoded(values: Mapping[str, object]) -> str:
    """Names and values as a query and a form have them."""
    return urlencode([(name, _param(value)) for name, value in values.items() if value is not None], doseq=True)


def _param(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value
