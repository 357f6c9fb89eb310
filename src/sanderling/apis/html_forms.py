"""Forms of HTML pages: find the one with some fields, and fill it in as a browser would."""

import re
from collections.abc import Collection, Mapping
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit

from sanderling.apis.request_parts import FORM
from sanderling.task import SECRET_BODY, Reply, Task

MOST = 512 * 1024  # characters of a page that are looked at
MOST_FIELDS = 1000  # of one form
UNSENT = frozenset({"button", "file", "image", "reset", "submit"})  # unless it is the button that is pressed


_FORM = re.compile(rb"<form\b", re.IGNORECASE)


class FormError(ValueError):
    """A page has no form that could be sent. The message has no value of any field."""


class _Form:
    def __init__(self, attributes: Mapping[str, str | None]) -> None:
        self.action = attributes.get("action") or ""
        self.method = (attributes.get("method") or "get").upper()
        self.fields: list[tuple[str, str]] = []
        self.names: set[str] = set()  # all, with those of boxes that are not ticked
        self.button: tuple[str, str] | None = None  # the first, which Enter presses


class _Forms(HTMLParser):
    """All forms of a page. What stands outside of any form belongs to none."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self._form: _Form | None = None
        self._text: tuple[str, list[str]] | None = None  # of a textarea
        self._select: tuple[str, list[tuple[str, bool]]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "form":
            self._form = _Form(said)
            self.forms.append(self._form)
        elif self._form is None or len(self._form.fields) >= MOST_FIELDS:
            return
        elif tag == "option" and self._select is not None:
            self._select[1].append((said.get("value") or "", "selected" in said))
        elif said.get("name") and "disabled" not in said:
            self._field(self._form, tag, str(said["name"]), said)

    def _field(self, form: _Form, tag: str, name: str, said: Mapping[str, str | None]) -> None:
        kind = (said.get("type") or ("submit" if tag == "button" else "text")).lower()
        value = said.get("value")
        if tag in ("input", "button") and kind == "submit":
            form.button = form.button or (name, value or "")
        elif tag == "input" and kind in ("checkbox", "radio"):
            form.names.add(name)
            form.fields += [(name, "on" if value is None else value)] if "checked" in said else []
        elif tag == "input" and kind not in UNSENT:
            form.names.add(name)
            form.fields.append((name, value or ""))
        elif tag == "textarea":
            form.names.add(name)
            self._text = name, []
        elif tag == "select":
            form.names.add(name)
            self._select = name, []

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text[1].append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "textarea" and self._text is not None and self._form is not None:
            self._form.fields.append((self._text[0], "".join(self._text[1])))
            self._text = None
        elif tag == "select" and self._select is not None and self._form is not None:
            name, options = self._select
            chosen = [value for value, selected in options if selected] or [value for value, _ in options[:1]]
            self._form.fields += [(name, value) for value in chosen]
            self._select = None


def has_form(reply: Reply, names: Collection[str]) -> bool:
    """Whether a page has a form with fields of all these names. Few pages are parsed to find out."""
    if not _FORM.search(reply.body) or not all(name.encode() in reply.body for name in names):
        return False
    return any(form.names >= set(names) for form in _forms(reply))


def fill_form(reply: Reply, values: Mapping[str, str]) -> Task:
    """The request that sends the form with fields of all these names, with these values in it. Raises FormError.

    It goes to the host of the page and to no other. All other fields are sent as they stand there.
    """
    forms = _forms(reply)
    form = next((each for each in forms if each.names >= values.keys()), None)
    if form is None:
        known = sorted({name for each in forms for name in each.names})[:20]
        found = f"{len(forms)} forms with the fields {', '.join(known)}"[:120] if forms else "no form"
        raise FormError(f"the page has {found}, expected one with {', '.join(values)}"[:180])
    fields = [pair for pair in form.fields if pair[0] not in values]
    fields += [*values.items(), *([form.button] if form.button and form.button[0] not in values else [])]
    page = urlsplit(reply.url)
    if form.method != "POST":
        raise FormError(f"its form is sent by {form.method[:10]}, which would put a password into an address")
    try:
        target = urlunsplit(urlsplit(urljoin(reply.url, form.action.strip()))._replace(fragment=""))
        headers = ("Content-Type", FORM), ("Referer", urlunsplit(page._replace(query="", fragment="")))
        task = Task(target, "POST", headers, urlencode(fields).encode(), secrets=frozenset({SECRET_BODY}))
        home = Task(reply.url).host
    except ValueError:  # HostError is one
        raise FormError("the address that its form goes to is none") from None
    if task.host != home or (page.scheme == "https" and not target.startswith("https:")):
        raise FormError("its form goes to another host, or by plain http; name the page of that host instead")
    return task


def _forms(reply: Reply) -> list[_Form]:
    parser = _Forms()
    parser.feed(reply.body.decode(errors="replace")[:MOST])
    return parser.forms
