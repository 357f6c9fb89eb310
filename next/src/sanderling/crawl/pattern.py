"""Patterns of URLs: which page function reads which page, and what `--only` and `--skip` mean."""

import re
from urllib.parse import urlsplit

_PART = re.compile(r"\*\*|\*|\{([^{}]*)\}|[^*{]+|\{")


class UrlPattern:
    """`*` stands for any characters but a slash, `**` for any, `{name}` for one part of the path, which is captured.

    Without a `?` in it, the query of a URL does not count; a pattern that begins with `//` names the host, too.

    The URL is a stranger's. What follows a wildcard is taken where it fits first, and never elsewhere (`(?>…)`): that
    finds a match wherever there is one, and a URL of 2,000 characters costs at most its square.
    """

    def __init__(self, text: str) -> None:
        if not text.startswith("/"):
            raise ValueError(f"the pattern is {text!r}; expected one that begins with a slash, as in /shop/*")
        self.text = text
        self._has_query = "?" in text
        self._has_host = text.startswith("//")
        names: list[str] = []
        pieces: list[tuple[str, str]] = [("", "")]  # a wildcard, and the literal text behind it
        for part in _PART.finditer(text):
            if part[0].startswith("*"):
                pieces.append((r".*?" if part[0] == "**" else r"[^/]*?", ""))
            elif part[1] is not None and part[1].isidentifier():
                names.append(part[1])
                pieces.append((rf"(?P<{part[1]}>[^/?&]+?)", ""))
            elif part[0].startswith("{"):
                raise ValueError(f"the pattern {text} has {part[0]!r}; expected a name in it, as in {{number}}")
            else:
                pieces[-1] = (pieces[-1][0], pieces[-1][1] + re.escape(part[0]))
        self.names = tuple(names)
        if len(set(names)) < len(names):
            raise ValueError(f"the pattern {text} has a name twice; expected each once")
        self._regex = re.compile(_joined(pieces), re.DOTALL)

    def match(self, url: str) -> dict[str, str] | None:
        """What stands for each name, if the normal URL is one of these."""
        parts = urlsplit(url)
        path = f"//{parts.netloc}{parts.path}" if self._has_host else parts.path
        found = self._regex.fullmatch(f"{path}?{parts.query}" if self._has_query else path)
        return None if found is None else found.groupdict()

    def __repr__(self) -> str:
        return f"<UrlPattern {self.text}>"


def _joined(pieces: list[tuple[str, str]]) -> str:
    """The expression: pieces of one chunk (between two `**`) each where they fit first, and the chunk where it does."""
    chunks: list[list[tuple[str, str]]] = []
    for wildcard, literal in pieces:
        if wildcard == ".*?" or not chunks:
            chunks.append([(wildcard, literal)])
        else:
            chunks[-1].append((wildcard, literal))
    last = chunks[-1][-1]
    found = ""
    for chunk in chunks:
        inner = "".join(
            f"{wildcard}{literal}\\Z" if piece is last else f"(?>{wildcard}{literal})"
            for piece in chunk[1:]
            for wildcard, literal in [piece]
        )
        wildcard, literal = chunk[0]
        end = "\\Z" if chunk[0] is last else ""
        found += f"(?>{wildcard}{literal}{inner}{end})"
    return found
