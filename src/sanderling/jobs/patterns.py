"""Patterns of addresses: which function of a job reads which page."""

import re
from urllib.parse import urlsplit

_PART = re.compile(r"\*\*|\*|\{([^{}]*)\}|[^*{]+|\{")


class UrlPattern:
    """The addresses that a page function reads.

    `*` stands for any characters but a slash, `**` for any at all, `{name}` for one part of the path, which the
    function is given under that name. Without a `?` in it the query of an address does not count; a pattern that
    begins with `//` names the host, too.
    """

    def __init__(self, text: str) -> None:
        if not text.startswith("/"):
            raise ValueError(f"the pattern is {text!r}, expected one that begins with a slash, as in /shop/*")
        self.text = text
        self._query = "?" in text
        self._host = text.startswith("//")
        found = [_regex(part) for part in _PART.finditer(text)]
        self.names = tuple(name for name, _ in found if name)
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"the pattern {text} has a name twice, expected each once")
        self._regex = re.compile("".join(regex for _, regex in found), re.DOTALL)

    def match(self, url: str) -> dict[str, str] | None:
        """What stands for each name, if the address is one of these."""
        parts = urlsplit(url)
        path = f"//{parts.netloc}{parts.path}" if self._host else parts.path
        found = self._regex.fullmatch(f"{path}?{parts.query}" if self._query else path)
        return None if found is None else found.groupdict()

    def __repr__(self) -> str:
        return f"<UrlPattern {self.text}>"


def _regex(part: re.Match[str]) -> tuple[str, str]:
    """The name that a part of a pattern captures, and its regular expression. Raises ValueError."""
    text, name = part[0], part[1]
    if text == "**":
        return "", ".*"
    if text == "*":
        return "", "[^/]*"
    if name is None and text != "{":
        return "", re.escape(text)
    if name is None or not name.isidentifier():
        raise ValueError(f"the pattern {part.string} has {text!r}, expected a name in it, as in {{number}}")
    return name, f"(?P<{name}>[^/?&]+)"
