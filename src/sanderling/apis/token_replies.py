"""What a host says of a token, beside the token: how long it is good, or why there is none."""

from sanderling.apis.auth import OAuth2
from sanderling.apis.conditions import JsonReply, find_value
from sanderling.apis.json_paths import is_number
from sanderling.task import Reply


def error_name(answer: JsonReply) -> str:
    """The name of an OAuth error, which is one word; its description may repeat our secrets."""
    name = find_value("error", answer)
    return f" ({name})" if isinstance(name, str) and len(name) <= 60 and name.replace("_", "").isalpha() else ""


def lifetime(auth: OAuth2, answer: JsonReply) -> float:
    """Seconds that a token is good for. What cannot be true is ignored."""
    value = find_value("expires_in", answer)
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        value = int(value)
    return float(value) if is_number(value) and 1 <= value <= 366 * 86400 else auth.expires_in


def cookie_in(reply: Reply, name: str) -> str | None:
    """The value of a cookie that a reply sets."""
    for header, value in reply.headers:
        key, _, rest = value.partition("=")
        if header.lower() == "set-cookie" and key.strip() == name:
            return rest.partition(";")[0].strip().strip('"')
    return None
