"""URLs as they may be shown: in messages, in summaries, and in commands to type again."""

from sanderling.observe.logs import is_secret


def shown(url: str) -> str:
    """A URL as it may be shown: with the user, without the password, and without options that hold secrets."""
    if "://" not in url:
        return url
    scheme, _, rest = url.partition("://")
    where, query, options = rest.partition("?")
    login, at, host = where.rpartition("@")  # whatever is before the last one may belong to the password
    kept = [each for each in options.split("&") if not is_secret(each.partition("=")[0])]
    return f"{scheme}://{login.partition(':')[0]}{at}{host}{query if any(kept) else ''}{'&'.join(kept)}"
