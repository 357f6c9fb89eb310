"""Forms of HTML pages: find the one with some fields, and fill it in as a browser would."""

from collections.abc import Mapping
from html.parser import HTMLParser
from urllib.parse import urlencode

from sanderling.crawl.request import FORM
from sanderling.crawl.urls import absolute
from sanderling.fetch.messages import HttpRequest, HttpResponse
from sanderling.ids import UrlError, origin_of

LARGEST = 512 * 1024  # bytes of a page that are looked at
MOST_FIELDS = 1000
_UNSENT = frozenset({"button", "file", "image", "reset"})


class FormError(ValueError):
    """A page has no form that could be sent. The message has no value of any field."""


class _Form:
    def __init__(self, said: Mapping[str, str | None]) -> None:
        self.action = said.get("action") or ""
        self.method = (said.get("method") or "get").upper()
        self.names: set[str] = set()
        self.fields: list[tuple[str, str]] = []
        self.button: tuple[str, str] | None = None  # the first, which Enter presses


class _Forms(HTMLParser):
    """All forms of a page, without texts that people would type into large fields."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self._open = False
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "form":
            self.forms.append(_Form(said))
            self._open = True
        if not self._open or len(self.forms[-1].fields) >= MOST_FIELDS:
            return
        form, name, value = self.forms[-1], said.get("name") or "", said.get("value")
        kind = (said.get("type") or ("submit" if tag == "button" else "text")).lower()
        if (
            tag == "option"
            and self._select
            and ("selected" in said or self._select not in {field for field, _ in form.fields})
        ):
            form.fields = [pair for pair in form.fields if pair[0] != self._select] + [(self._select, value or "")]
        if not name or "disabled" in said:
            return
        if tag in ("input", "button") and kind == "submit":
            form.button = form.button or (name, value or "")
        elif tag in ("input", "select", "textarea") and kind not in _UNSENT:
            form.names.add(name)
            is_box = kind in ("checkbox", "radio")
            self._select = name if tag == "select" else self._select
            if tag != "select" and (not is_box or "checked" in said):
                form.fields.append((name, ("on" if is_box else "") if value is None else value))

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag != "form"
        self._select = "" if tag in ("form", "select") else self._select


def _forms(body: bytes) -> list[_Form]:
    reader = _Forms()
    reader.feed(body[:LARGEST].decode(errors="replace"))
    return reader.forms


def has_form(body: bytes, names: Mapping[str, str]) -> bool:
    """Whether a page has a form with fields of all these names; few pages are read to find out."""
    if b"<form" not in body[:LARGEST].lower() or not all(name.encode() in body for name in names):
        return False
    return any(form.names >= set(names) for form in _forms(body))


def fill_form(page: HttpResponse, values: Mapping[str, str]) -> HttpRequest:
    """The request that sends the form of a page with these values; it goes to that page's origin. Raises FormError."""
    forms = _forms(page.body)
    form = next((each for each in forms if each.names >= values.keys()), None)
    if form is None:
        known = ", ".join(sorted({name for each in forms for name in each.names})[:20])
        raise FormError(f"the page has {f'forms with {known}' if known else 'no form'}; expected {', '.join(values)}")
    if form.method != "POST":
        raise FormError("its form is sent by GET, which would put a password into an address")
    fields = [pair for pair in form.fields if pair[0] not in values]
    fields += [*values.items(), *([form.button] if form.button and form.button[0] not in values else [])]
    try:
        target = absolute(form.action.strip() or page.url, page.url)
    except UrlError:
        raise FormError("the address that its form goes to is none") from None
    if origin_of(target) != origin_of(page.url):
        raise FormError("its form goes to another host; name the page of that host instead")
    headers = (("Content-Type", FORM), ("Referer", page.url.partition("?")[0]))
    return HttpRequest(target, "POST", headers, urlencode(fields).encode(), largest=LARGEST, cut=True)
