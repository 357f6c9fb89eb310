"""A site of some 300 addresses that each go wrong in their own way, and what a standard says must become of each.

A row names the page, the answer, and what the standard expects: its end, fields of its row, the targets that must be
requested because of it. Whatever begins with /decoy must never be requested, and nothing that robots.txt refuses.
"""
# ruff: noqa: RUF001 - dashes are a part of the pages

import gzip
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import brotli  # type: ignore[import-untyped]
from hostile_web import HTML, Answer, Asked, Headers, Reply

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

WORDS = (
    "amber basalt cedar dune ember fjord granite heather indigo juniper kelp lichen marble nettle opal pebble quartz"
    " reed slate thistle umber violet willow yarrow zinc anchor beacon causeway delta estuary flint glade heron inlet"
).split()
GET = ("fetched",)
FAIL = ("failed",)
MOVE = ("moved",)
ANY = ("fetched", "failed", "moved")
NO_TYPE: Headers = ()


def words(seed: object, number: int = 40) -> str:
    random = Random(str(seed))
    return " ".join(random.choice(WORDS) for _ in range(number))


def html(title: str, body: str = "", head: str = "", language: str = "en") -> str:
    """A plain page whose text nobody else has."""
    paragraph = f"<p>{words(title)}.</p>"
    return (
        f'<!doctype html><html lang="{language}"><head><title>{title}</title>{head}</head>'
        f"<body><main><h1>{title}</h1>{paragraph}{body}</main></body></html>"
    )


def leaf(target: str) -> Reply:
    return Reply(html(f"Leaf {target}").encode())


def typed(content_type: str, *more: tuple[str, str]) -> Headers:
    return (("Content-Type", content_type), *more)


def moved(status: int, location: str, *more: tuple[str, str]) -> Reply:
    return Reply(b"", status, (("Location", location), *more))


@dataclass(frozen=True, slots=True)
class Case:
    """A target, what is answered, and what must become of it: how it ends, what its row says, what it leads to."""

    target: str
    answer: Answer
    end: tuple[str, ...] = GET
    asks: tuple[str, ...] = ()  # targets of this host that must be requested, exactly so; each is a page of its own
    links: tuple[str, ...] = ()  # addresses that its row has among its links
    row: dict[str, object] = field(default_factory=dict)  # fields; `text` is a part of the text, None: empty or away
    linked: bool = True  # whether the front page leads there


def page(name: str, body: str = "", head: str = "", **more: object) -> Case:
    """A page in UTF-8 with that body."""
    extra = {key: more.pop(key) for key in ("end", "asks", "links", "row") if key in more}
    headers: Headers = more.pop("headers", HTML)  # type: ignore[assignment]
    assert not more
    return Case(name, Reply(html(f"Page {name}", body, head).encode(), 200, headers), **extra)  # type: ignore[arg-type]


# Charsets: the Encoding Standard's labels, and the HTML Standard's order (BOM, transport, prescan, guess).

TEXTS = {
    "iso-8859-2": "Zażółć gęślą jaźń i dźwięk",
    "shift_jis": "日本語のページです。東京は晴れ",
    "windows-1251": "Съешь ещё этих мягких французских булок",
    "euc-kr": "한국어 문서입니다 서울은 맑음",
    "gb18030": "中文网页标题和正文内容",
    "koi8-r": "Широкая электрификация южных губерний",
    "windows-1252": "Größe “Übermaß” – 5 € für déjà",
    "utf-8": "Naïve café ☕ Ελλάδα 東京",
    "big5": "繁體中文網頁的標題",
    "euc-jp": "日本語の文書、京都は雨",
    "iso-8859-7": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "iso-2022-jp": "日本語の手紙",
    "windows-1254": "Pijamalı hasta yağız şoföre çabucak güvendi",
    "windows-874": "ภาษาไทยในหน้าเว็บ",
    "utf-16-le": "Sechzehn Ūnits",
    "utf-16-be": "Großer Anfang",
}


def charset_cases() -> Iterator[Case]:
    def case(
        name: str, text: str, codec: str, header: str = "", head: str = "", before: bytes = b"", read: str = ""
    ) -> Case:
        source = html(text, f"<p>{text}. {text}!</p>", head, "")
        content_type = typed(f"text/html{header}")
        body = before + source.encode(codec, "xmlcharrefreplace")
        row: dict[str, object] = {"title": text, "text": text}
        return Case(f"/charset/{name}", Reply(body, 200, content_type), row=row | ({"charset": read} if read else {}))

    for codec in ("iso-8859-2 shift_jis windows-1251 euc-kr gb18030 koi8-r windows-1252 utf-8 big5 euc-jp").split():
        yield case(f"header-{codec}", TEXTS[codec], codec, f"; charset={codec}", read=codec)
        yield case(f"meta-{codec}", TEXTS[codec], codec, head=f"<meta charset={codec}>", read=codec)
    yield case("header-iso-2022-jp", TEXTS["iso-2022-jp"], "iso-2022-jp", "; charset=iso-2022-jp")
    old = '<META HTTP-EQUIV="content-type" CONTENT="text/html;charset=ISO-8859-7">'
    yield case("meta-http-equiv", TEXTS["iso-8859-7"], "iso-8859-7", head=old)
    for label, codec, real in (
        ("latin1", "windows-1252", "windows-1252"),
        ("iso-8859-1", "windows-1252", "windows-1252"),
        ("us-ascii", "windows-1252", "windows-1252"),
        ("iso-8859-9", "windows-1254", "windows-1254"),
        ("gb2312", "gb18030", "gb18030"),
        ("ks_c_5601-1987", "euc-kr", "euc-kr"),
        ("x-sjis", "shift_jis", "shift_jis"),
        ("tis-620", "windows-874", "windows-874"),
        ("big5-hkscs", "big5", "big5"),
        ("utf8", "utf-8", "utf-8"),
        ("unicode-1-1-utf-8", "utf-8", "utf-8"),
        ("x-user-defined", "windows-1252", ""),
    ):
        text, where = TEXTS[codec], "meta" if label == "x-user-defined" else "header"
        declared = ("", f"<meta charset={label}>") if where == "meta" else (f"; charset={label}", "")
        yield case(f"label-{label}", text, "cp874" if real == "windows-874" else codec, *declared, read="")
    russian, polish, greek = TEXTS["windows-1251"], TEXTS["iso-8859-2"], TEXTS["iso-8859-7"]
    yield case("quoted", russian, "windows-1251", '; charset="windows-1251"')
    yield case("upper", russian, "windows-1251", "; CHARSET=WINDOWS-1251")
    yield case("more-parameters", russian, "windows-1251", '; a="b;charset=utf-8"; charset=windows-1251')
    yield case("header-wins", russian, "windows-1251", "; charset=windows-1251", "<meta charset=utf-8>")
    yield case("label-unknown", polish, "iso-8859-2", "; charset=klingon", "<meta charset=iso-8859-2>")
    yield case("label-utf-7", "a+AGI-c", "utf-8", "; charset=utf-7", "<meta charset=utf-8>")
    yield case("bom-wins", TEXTS["utf-8"], "utf-8", "; charset=koi8-r", before=b"\xef\xbb\xbf")
    yield case("bom-16-le", TEXTS["utf-16-le"], "utf-16-le", before=b"\xff\xfe")
    yield case("bom-16-be", TEXTS["utf-16-be"], "utf-16-be", "; charset=utf-8", before=b"\xfe\xff")
    yield case("header-16-le", TEXTS["utf-16-le"] + " zwei", "utf-16-le", "; charset=utf-16le")
    yield case("meta-16-is-8", TEXTS["utf-8"] + " acht", "utf-8", head="<meta charset=utf-16>")
    comment = "<!-- <meta charset=shift_jis> --><meta charset=windows-1251>"
    yield case("meta-in-comment", russian + " раз", "windows-1251", head=comment)
    yield case("meta-late", greek + " δύο", "iso-8859-7", head=f"<!--{'x' * 700}--><meta charset=iso-8859-7>")
    yield case("meta-first-wins", polish + " dwa", "iso-8859-2", head="<meta charset=iso-8859-2><meta charset=utf-8>")
    yield case("none-utf-8", TEXTS["utf-8"] + " neuf", "utf-8")
    yield case("none-ascii", "Plain words and nothing else", "ascii")
    guess = "Широкая электрификация южных губерний даст мощный толчок подъёму сельского хозяйства"
    yield case("guess-cyrillic", guess, "windows-1251")
    yield case("guess-japanese", "東京は今日も晴れていますが、明日は雨が降るでしょう。京都はどうですか", "shift_jis")
    yield case("guess-korean", "서울은 오늘도 맑지만 내일은 비가 올 것입니다 부산은 어떻습니까", "euc-kr")
    xml = b'<?xml version="1.0" encoding="windows-1251"?>'
    yield case("xml-declared", russian + " три", "windows-1251", before=xml)
    source = html("Broken bytes", "<p>before \udcff\udce2 after</p>").encode("utf-8", "surrogateescape")
    broken: dict[str, object] = {"title": "Broken bytes", "text": "before \ufffd\ufffd after"}
    yield Case("/charset/broken", Reply(source, 200, HTML), row=broken)
    source = html("Cut bytes").encode() + "<p>é".encode()[:-1]
    yield Case("/charset/cut", Reply(source, 200, HTML), row={"title": "Cut bytes"})
    # "Replacement": labels that hide scripts read as one U+FFFD, so nothing of the page may be believed.
    source = html("Hidden", '<a href="/decoy/replacement">x</a>').encode()
    replaced: dict[str, object] = {"title": None}
    yield Case("/charset/replacement", Reply(source, 200, typed("text/html; charset=iso-2022-kr")), ANY, row=replaced)


# Redirects: the Fetch Standard's five codes, RFC 9110, and addresses as in the URL Standard.


def redirect_cases(base: str, other: str) -> Iterator[Case]:
    def to(name: str, location: str, target: str, status: int = 302, *more: tuple[str, str]) -> Case:
        row: dict[str, object] = {"moved_to": base + target, "status": status}
        return Case(f"/move/{name}", moved(status, location, *more), MOVE, (target,), row=row)

    for status in (301, 302, 303, 307, 308):
        yield to(f"code-{status}", f"/new/{status}", f"/new/{status}", status)
    yield to("absolute", f"{base}/new/absolute", "/new/absolute")
    yield to("relative", "new/relative", "/move/new/relative")
    yield to("up", "../../new/up", "/new/up")
    yield to("no-scheme", f"//{base.partition('//')[2]}/new/no-scheme", "/new/no-scheme")
    yield to("scheme-case", f"{base.replace('http', 'HtTp')}/new/scheme-case", "/new/scheme-case")
    yield to("query-only", "?x=1", "/move/query-only?x=1")
    yield to("fragment", "/new/fragment#part", "/new/fragment")
    yield to("space", "/new/a b", "/new/a%20b")
    yield to("letters", "/new/größe", "/new/gr%C3%B6%C3%9Fe")
    yield to("backslash", "\\new\\backslash", "/new/backslash")
    yield to("blanks", "  /new/blanks  ", "/new/blanks")
    yield to("tracked", "/new/tracked?utm_source=x&id=1", "/new/tracked?id=1")
    yield to("cookie", "/new/cookie", "/new/cookie", 302, ("Set-Cookie", "moved=1"))
    body = Reply(
        html("Moved", '<a href="/decoy/in-a-redirect">x</a>').encode(),
        301,
        typed("text/html", ("Location", "/new/body")),
    )
    yield Case("/move/body", body, MOVE, ("/new/body",))
    for at in range(12):
        yield Case(f"/chain/{at}", moved(302, f"/chain/{at + 1}"), MOVE, linked=at == 0)
    yield page("/chain/12", row={"title": "Page /chain/12"})
    for at in range(40):
        ends = MOVE if at < 20 else FAIL if at == 20 else ("no row",)
        yield Case(f"/endless/{at}", moved(302, f"/endless/{at + 1}"), ends, linked=at == 0)
    yield Case(
        "/move/other-host", moved(301, f"{other}/from-a-redirect"), MOVE, row={"moved_to": f"{other}/from-a-redirect"}
    )
    yield Case("/move/away", moved(302, "http://elsewhere.invalid/decoy"), MOVE)
    for number, location in enumerate(
        (
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,<a href=x>",
            "ftp://127.0.0.1/decoy",
            "http://[::bad/",
            "http://a b/",
        )
    ):
        # Fetch, "HTTP-redirect fetch": where the scheme is neither http nor https there is a network error.
        yield Case(f"/move/nowhere-{number}", moved(302, location), FAIL)
    # Fetch: without a Location it is the response, whose status is no success. RFC 9110, 15.4.6 and 15.4.7: 305 and 306
    # are never followed.
    yield Case("/move/no-location", Reply(b"", 301, ()), FAIL, row={"status": 301})
    yield Case("/move/empty", moved(302, ""), FAIL)
    yield Case("/move/itself", moved(302, "/move/itself"), FAIL)
    # Each is a page that the other leads to, and is known: neither is requested twice.
    yield Case("/move/round-a", moved(302, "/move/round-b"), MOVE)
    yield Case("/move/round-b", moved(302, "/move/round-a"), MOVE, linked=False)
    yield Case("/move/proxy-305", Reply(b"", 305, (("Location", "/decoy/305"),)), FAIL)
    yield Case("/move/unused-306", Reply(b"", 306, (("Location", "/decoy/306"),)), FAIL)
    yield Case(
        "/move/created",
        Reply(html("Created").encode(), 201, typed("text/html", ("Location", "/decoy/201"))),
        row={"title": "Created"},
    )

    def gated(asked: Asked) -> Reply:
        if "gate=open" in asked.headers.get("cookie", ""):
            return Reply(html("Behind the gate").encode())
        return moved(302, "/move/gate", ("Set-Cookie", "gate=open; Path=/move"))

    yield Case("/move/gate", gated, row={"title": "Behind the gate"})

    def walled(asked: Asked) -> Reply:
        if "consent=yes" in asked.headers.get("cookie", ""):
            return Reply(html("Behind the wall").encode())
        return moved(302, "/wall/consent?back=/wall/page")

    yield Case("/wall/page", walled, row={"title": "Behind the wall"})
    yes = moved(302, "/wall/page", ("Set-Cookie", "consent=yes; Path=/wall"))
    yield Case("/wall/consent?back=/wall/page", yes, (*ANY, "no row"), linked=False)
    yield Case("/move/refused", moved(302, "/private/page"), MOVE)


# Links: the URL Standard, the HTML Standard's elements, and rel=nofollow as in Google's text.


def link_cases(base: str, other: str) -> Iterator[Case]:
    def link(name: str, markup: str, *asks: str, head: str = "", links: tuple[str, ...] = ()) -> Case:
        return page(f"/links/{name}/page", markup, head, asks=asks, links=links)

    def href(name: str, value: str, *asks: str) -> Case:
        return link(name, f'<a href="{value}">x</a>', *asks)

    yield href("plain", "leaf", "/links/plain/leaf")
    yield href("dot", "./leaf", "/links/dot/leaf")
    yield href("up", "../up-leaf", "/links/up-leaf")
    yield href("far-up", "../../../../../far-leaf", "/far-leaf")
    yield href("root", "/t/root", "/t/root")
    yield href("no-scheme", f"//{base.partition('//')[2]}/t/no-scheme", "/t/no-scheme")
    yield href("scheme-only", "http:leaf", "/links/scheme-only/leaf")
    yield href("slashes", f"http:////{base.partition('//')[2]}/t/slashes", "/t/slashes")
    yield href("scheme-case", f"HTTP://{base.partition('//')[2]}/t/scheme-case", "/t/scheme-case")
    yield href("query", "?page=2", "/links/query/page?page=2")
    yield href("fragment", "#here")
    yield href("empty", "")
    yield href("fragments", "leaf#a", "/links/fragments/leaf")
    yield href("bang", "leaf#!/state", "/links/bang/leaf")
    yield href("dots-inside", "/t/x/../dots", "/t/dots")
    yield href("dots-escaped", "/t/x/%2e%2E/dots-escaped", "/t/dots-escaped")
    yield href("backslash", "\\t\\backslash", "/t/backslash")
    yield href("tab", "/t/t\ta\nb", "/t/tab")
    yield href("trimmed", " \n /t/trimmed \t ", "/t/trimmed")
    yield href("space", "/t/a b", "/t/a%20b")
    yield href("letters", "/t/größe?q=ü", "/t/gr%C3%B6%C3%9Fe?q=%C3%BC")
    yield href("escapes-case", "/t/%c3%a9", "/t/%C3%A9")
    yield href("escapes-plain", "/t/%61%7e", "/t/a~")
    yield href("escaped-slash", "/t/a%2fb", "/t/a%2Fb")
    yield href("bare-percent", "/t/100%", "/t/100%25")
    yield href("plus", "/t/plus?a=1+2", "/t/plus?a=1+2")
    yield href("entity", "/t/entity?a=1&amp;b=2", "/t/entity?a=1&b=2")
    yield href("entity-twice", "/t/twice?a=1&amp;amp;b=2", "/t/twice?a=1&amp;b=2")
    yield href("entity-name", "/t/copy?a=1&copy=2", "/t/copy?a=1&copy=2")
    yield href("entity-number", "&#47;t&#x2f;number", "/t/number")
    yield link("upper", "<A HREF='/t/upper'>x</A>", "/t/upper")
    yield link("unquoted", "<a href=/t/unquoted>x</a>", "/t/unquoted")
    yield link("twice", '<a href="/t/first" href="/decoy/second">x</a>', "/t/first")
    yield link("unclosed", '<a href="/t/unclosed">x', "/t/unclosed")
    yield link("area", '<map><area href="/t/area"></map>', "/t/area")
    yield link("noscript", '<noscript><a href="/t/noscript">x</a></noscript>', "/t/noscript")
    yield link("in-table", '<table><a href="/t/fostered">x</a><tr><td></table>', "/t/fostered")
    yield link("in-svg", '<svg><a href="/t/svg"><text>x</text></a></svg>', "/t/svg")
    yield link("next", '<a rel="next" href="/t/next">x</a>', "/t/next")
    yield href("path-case", "/t/Case", "/t/Case")
    yield href("path-case-2", "/t/case", "/t/case")
    yield link("slash", '<a href="/t/slash">x</a><a href="/t/slash/">x</a>', "/t/slash", "/t/slash/")
    yield href("double-slash", "/t//double", "/t//double")
    yield link(
        "order",
        '<a href="/t/order?a=1&amp;b=2">x</a><a href="/t/order?b=2&amp;a=1">x</a>',
        "/t/order?a=1&b=2",
        "/t/order?b=2&a=1",
    )
    yield href("empty-query", "/t/empty-query?", "/t/empty-query")
    yield href("empty-value", "/t/value?a=&b", "/t/value?a=&b")
    for name in ("utm_source", "UTM_medium", "gclid", "fbclid", "msclkid", "PHPSESSID", "jsessionid"):
        yield href(f"tracked-{name}", f"/t/tracked-{name}?{name}=abc&id=1", f"/t/tracked-{name}?id=1")
    yield href("session-path", "/t/session;jsessionid=A1B2?x=1", "/t/session?x=1")
    yield href("not-tracking", "/t/not?source=utm_x&ref=1", "/t/not?source=utm_x&ref=1")
    yield href("long", "/t/" + "l" * 1500, "/t/" + "l" * 1500)
    yield href("too-long", "/decoy/" + "l" * 9000)
    yield link("many", "".join(f'<a href="/t/many#{at}">x</a>' for at in range(3000)), "/t/many")
    ill = (
        "mailto:a@b.example tel:+1 javascript:void(0) data:text/html,x ftp://127.0.0.1/decoy about:blank blob:x"
        " file:///etc/passwd ws://127.0.0.1/decoy http: http:// http://% http://[::1 http://a:99999999/"
        " http://user@/decoy view-source:http://127.0.0.1/decoy"
    ).split()
    yield link("schemes", "".join(f'<a href="{each}">x</a>' for each in ill))
    for number, inert in enumerate(
        (
            '<!-- <a href="/decoy/comment">x</a> -->',
            '<script>"<a href=/decoy/script>"</script>',
            '<style>a{content:"<a href=/decoy/style>"; background: url(/decoy/css)}</style>',
            '<textarea><a href="/decoy/textarea">x</a></textarea>',
            '<template><a href="/decoy/template">x</a></template>',
            '<xmp><a href="/decoy/xmp">x</a></xmp>',
            '<form action="/decoy/form"><input name=q><button formaction="/decoy/button">x</button></form>',
            '<img src="/decoy/img.png" srcset="/decoy/img-2.png 2x"><video src="/decoy/video"></video>',
            '<a ping="/decoy/ping" name="x">x</a><blockquote cite="/decoy/cite">x</blockquote>',
            '<span href="/decoy/span" data-href="/decoy/data" onclick="location=\'/decoy/click\'">x</span>',
        )
    ):
        yield link(f"inert-{number}", inert)
    kinds = "stylesheet icon preload prefetch dns-prefetch preconnect manifest modulepreload pingback search".split()
    yield link("resources", "", head="".join(f'<link rel="{kind}" href="/decoy/link-{kind}">' for kind in kinds))
    for number, rel in enumerate(("nofollow", "NOFOLLOW", "noopener nofollow", "external\nnofollow\tx")):
        yield link(f"nofollow-{number}", f'<a rel="{rel}" href="/decoy/nofollow-{number}">x</a>')
    yield link("not-nofollow", '<a rel="no-follow notnofollow" href="/t/not-nofollow">x</a>', "/t/not-nofollow")
    both = '<a rel="nofollow" href="/t/both-ways">x</a><a href="/t/both-ways">x</a>'
    yield link("nofollow-and-not", both, "/t/both-ways")
    # base
    yield link("base", '<a href="leaf">x</a>', "/t/base/leaf", head='<base href="/t/base/">')
    yield link("base-relative", '<a href="leaf">x</a>', "/links/base-relative/sub/leaf", head='<base href="sub/">')
    yield link(
        "base-first", '<a href="leaf">x</a>', "/t/one/leaf", head='<base href="/t/one/"><base href="/decoy/two/">'
    )
    yield link("base-target", '<a href="leaf">x</a>', "/t/aim/leaf", head='<base target=_top><base href="/t/aim/">')
    yield link("base-late", '<a href="leaf">x</a><base href="/t/late/">', "/t/late/leaf")
    yield link("base-broken", '<a href="leaf">x</a>', "/links/base-broken/leaf", head='<base href="http://[::bad/">')
    yield link("base-data", '<a href="leaf">x</a>', "/links/base-data/leaf", head='<base href="data:text/html,x">')
    yield link("base-query", '<a href="?x=1">x</a>', "/t/bq/?x=1", head='<base href="/t/bq/">')
    away = link(
        "base-away",
        '<a href="decoy">x</a>',
        head='<base href="http://elsewhere.invalid/x/">',
        links=("http://elsewhere.invalid/x/decoy",),
    )
    yield away
    # hosts
    spelled = '<a href="HTTP://ELSEWHERE.Invalid:80/A">x</a><a href="http://bücher.invalid/ü">x</a><a href="https://elsewhere.invalid:443/s">x</a>'
    absolute = ("http://elsewhere.invalid/A", "http://xn--bcher-kva.invalid/%C3%BC", "https://elsewhere.invalid/s")
    yield link("hosts", spelled, links=absolute)
    yield link("user", f'<a href="{base.replace("//", "//me:secret@")}/t/user">x</a>', "/t/user")
    yield Case(
        "/links/other-host",
        Reply(html("Other host", f'<a href="{other}/from-a-link">x</a>').encode()),
        links=(f"{other}/from-a-link",),
    )
    # A legacy page's query is sent in its own charset (URL Standard, "percent-encode after encoding"); its path is not.
    legacy = html("Legacy query", '<a href="/t/путь?q=тест">x</a>').encode("windows-1251")
    yield Case(
        "/links/legacy",
        Reply(legacy, 200, typed("text/html; charset=windows-1251")),
        asks=("/t/%D0%BF%D1%83%D1%82%D1%8C?q=%F2%E5%F1%F2",),
    )
    # Sites that write links differently on each page lead to one page: what is requested is requested once.
    for number in range(4):
        markup = f'<a href="/t/once?utm_campaign={number}#{number}">x</a><a href="/t/./once">y</a>'
        yield page(f"/links/once-{number}", markup, asks=("/t/once",))


# What a page says to robots: Google's text on the robots meta tag and X-Robots-Tag, which is the only one there is.

HIDDEN: dict[str, object] = {"title": None, "text": None, "description": None, "language": None}


def robots_cases() -> Iterator[Case]:
    def case(name: str, head: str = "", header: tuple[str, ...] = (), follow: bool = True, shown: bool = True) -> Case:
        target = f"/t/robots-{name}" if follow else f"/decoy/robots-{name}"
        title = f"Robots {name}"
        source = html(title, f'<a href="{target}">x</a>', head + '<meta name="description" content="Says all.">')
        more = tuple(("X-Robots-Tag", value) for value in header)
        row: dict[str, object] = {"title": title, "description": "Says all."} if shown else HIDDEN
        return Case(
            f"/robots/{name}", Reply(source.encode(), 200, HTML + more), asks=(target,) if follow else (), row=row
        )

    yield case("all", '<meta name="robots" content="all">')
    yield case("index-follow", '<meta name="robots" content="index, follow">')
    yield case("nofollow", '<meta name="robots" content="nofollow">', follow=False)
    yield case("upper", '<META NAME="ROBOTS" CONTENT="NOFOLLOW">', follow=False)
    yield case("noindex", '<meta name="robots" content="noindex">', shown=False)
    yield case("both", '<meta name="robots" content="noindex,nofollow">', follow=False, shown=False)
    yield case("none", '<meta name="robots" content=" None ">', follow=False, shown=False)
    yield case(
        "summed",
        '<meta name="robots" content="noindex"><meta name="robots" content="nofollow">',
        follow=False,
        shown=False,
    )
    yield case("ours", '<meta name="sanderling" content="nofollow">', follow=False)
    yield case(
        "ours-softer", '<meta name="robots" content="noindex"><meta name="sanderling" content="index">', shown=False
    )
    yield case("others", '<meta name="googlebot" content="noindex, nofollow"><meta name="bingbot" content="none">')
    yield case("property", '<meta property="robots" content="noindex">')
    yield case("snippets", '<meta name="robots" content="max-snippet:-1, noarchive, nosnippet, noimageindex">')
    yield case("comment", '<!-- <meta name="robots" content="none"> -->')
    yield case("header", header=("nofollow",), follow=False)
    yield case("header-noindex", header=("NoIndex",), shown=False)
    yield case("header-none", header=("none",), follow=False, shown=False)
    yield case("header-list", header=("noarchive, nofollow",), follow=False)
    yield case("header-two", header=("noindex", "nofollow"), follow=False, shown=False)
    yield case("header-ours", header=("sanderling: nofollow",), follow=False)
    yield case("header-ours-list", header=("Sanderling: noindex, nofollow",), follow=False, shown=False)
    yield case("header-others", header=("googlebot: noindex, nofollow",))
    yield case("header-others-two", header=("otherbot: noindex", "googlebot: nofollow"))
    yield case("header-mixed", header=("otherbot: noindex", "nofollow"), follow=False)
    yield case("header-past", header=("unavailable_after: 25 Jun 2010 15:00:00 PST",), shown=False)
    yield case("header-future", header=("unavailable_after: 25 Jun 2090 15:00:00 GMT",))
    data = Reply(b'{"a": 1}', 200, typed("application/json", ("X-Robots-Tag", "noindex")))
    yield Case("/robots/json", data, row={"json": None})


# Statuses.


def status_cases() -> Iterator[Case]:
    for status in (200, 201, 202, 203):
        yield Case(
            f"/status/{status}",
            Reply(html(f"Status {status}").encode(), status),
            row={"status": status, "title": f"Status {status}"},
        )
    for status in (400, 402, 404, 405, 406, 409, 410, 411, 414, 418, 422, 451):
        body = html(f"No {status}", '<a href="/decoy/of-an-error">x</a>').encode()
        outcome = {404: "CONTENT_NOT_FOUND", 410: "CONTENT_REMOVED"}.get(status)
        yield Case(
            f"/status/{status}",
            Reply(body, status),
            FAIL,
            row={"status": status} | ({"outcome": outcome} if outcome else {}),
        )
    for status in (204, 205):
        yield Case(
            f"/status/{status}",
            Reply(raw=(b"HTTP/1.1 %d None\r\n\r\n" % status,)),
            row={"status": status, "title": None, "text": None},
        )
    # RFC 9110, 15.3.7: a part is an answer to Range, which was not sent.
    yield Case("/status/206", Reply(html("A part").encode(), 206), FAIL, row={"outcome": "TRUNCATED"})
    yield Case("/status/304", Reply(raw=(b"HTTP/1.1 304 Not Modified\r\n\r\n",)), FAIL, row={"status": 304})
    whole = html("After a hint").encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(whole)
    yield Case(
        "/status/100",
        Reply(raw=(b"HTTP/1.1 100 Continue\r\n\r\n" + head + whole,)),
        row={"title": "After a hint", "status": 200},
    )
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </decoy/hint>; rel=preload\r\n\r\n"
    yield Case("/status/103", Reply(raw=(hints * 3 + head + whole,)), row={"title": "After a hint", "status": 200})

    def second(status: int, *more: tuple[str, str]) -> Callable[[Asked], Reply]:
        return lambda asked: Reply(html(f"Then {status}").encode()) if asked.times else Reply(b"later", status, more)

    yield Case("/status/503-once", second(503), row={"title": "Then 503"})
    yield Case("/status/429-once", second(429, ("Retry-After", "1")), row={"title": "Then 429"})
    yield Case("/status/503-told", second(503, ("Retry-After", "1")), row={"title": "Then 503"})
    yield Case("/status/500", Reply(b"always", 500), FAIL, row={"status": 500})
    yield Case("/status/599", Reply(b"always", 599), FAIL, row={"status": 599})
    yield Case("/status/999", Reply(b"denied", 999), FAIL, row={"status": 999})
    soft = html("Page not found", "<p>The page that you look for does not exist.</p>").encode()
    yield Case("/status/soft-404", Reply(soft), row={"status": 200, "title": "Page not found"})


# Content types: RFC 9110 and the MIME Sniffing Standard.


def type_cases() -> Iterator[Case]:
    source = "<!doctype html><title>{0}</title><p>" + words("types") + ' of {0}.</p><a href="/t/type-{0}">x</a>'

    def case(name: str, headers: Headers, body: bytes | None = None, **row: object) -> Case:
        body = source.format(name).encode() if body is None else body
        return Case(f"/type/{name}", Reply(body, 200, headers), row=row)

    def read(name: str, headers: Headers, before: bytes = b"") -> Case:
        body = before + source.format(name).encode()
        return Case(f"/type/{name}", Reply(body, 200, headers), asks=(f"/t/type-{name}",), row={"title": name})

    yield read("html", typed("text/html"))
    yield read("upper", typed("TEXT/HTML;CHARSET=UTF-8"))
    yield read("parameters", typed('text/html; profile="a;b"; charset=utf-8; x'))
    yield read("xhtml", typed("application/xhtml+xml"), b'<?xml version="1.0" encoding="utf-8"?>')
    yield read("untyped", NO_TYPE)
    yield read("untyped-blanks", NO_TYPE, b" \r\n\t")
    yield read("untyped-comment", NO_TYPE, b"<!-- first -->")
    yield read("empty-type", typed(""))
    yield read("nonsense-type", typed("nonsense"))
    yield read("two-types", (("Content-Type", "text/plain"), ("Content-Type", "text/html")))
    yield case("plain", typed("text/plain"), title=None, text="<!doctype html>")
    yield case("octets", typed("application/octet-stream"), b"GIF89a" + bytes(range(256)), title=None, text=None)
    yield case("script", typed("text/javascript"), title=None)
    yield case("css", typed("text/css"), title=None)
    yield case("untyped-text", NO_TYPE, b"Only words, none of them marked up.", title=None, text="Only words")
    yield case("untyped-png", NO_TYPE, b"\x89PNG\r\n\x1a\n" + bytes(range(256)), title=None, text=None)
    yield case("png", typed("image/png"), b"\x89PNG\r\n\x1a\n" + bytes(range(256)), text=None)
    yield case("pdf", typed("application/pdf"), b"%PDF-1.7\n" + bytes(range(256)) * 20, text=None)
    yield case("markdown", typed("text/markdown; charset=utf-8"), "# Über uns".encode(), text="# Über uns")
    yield case("json", typed("application/json"), '{"a": [1, {"b": "ż"}]}'.encode(), json={"a": [1, {"b": "ż"}]})
    yield case("json-suffix", typed("application/problem+json"), b'{"title": "x"}', json={"title": "x"})
    yield case("json-old", typed("text/json; charset=utf-8"), b"[1, 2]", json=[1, 2])
    yield case("json-bom", typed("application/json"), b'\xef\xbb\xbf{"a": 1}', json={"a": 1})
    yield case(
        "json-number", typed("application/json"), b"[12345678901234567890, 0.1]", json=[12345678901234567890, 0.1]
    )
    yield case("json-broken", typed("application/json"), b'{"a": ', json=None)
    yield case("json-links", typed("application/json"), b'{"next": "/decoy/json"}', json={"next": "/decoy/json"})
    yield case("empty", typed("text/html"), b"", title=None, text=None)
    yield case("blank", typed("text/html"), b" " * 5000, title=None, text=None)


# Content codings: RFC 9110 8.4, and what browsers make of broken ones.


def coding_cases() -> Iterator[Case]:
    def case(name: str, coding: str, body: bytes, end: tuple[str, ...] = GET, chunked: bool = False) -> Case:
        row: dict[str, object] = {"title": f"Page {name}"} if end == GET else {}
        headers = HTML + ((("Content-Encoding", coding),) if coding else ())
        return Case(f"/coding/{name}", Reply(body, 200, headers, chunked=chunked), end, row=row)

    def plain(name: str) -> bytes:
        return html(f"Page {name}").encode()

    raw = zlib.compressobj(wbits=-15)
    bare = raw.compress(plain("deflate-raw")) + raw.flush()
    yield case("gzip", "gzip", gzip.compress(plain("gzip")))
    yield case("x-gzip", "x-gzip", gzip.compress(plain("x-gzip")))
    yield case("upper", "GZIP", gzip.compress(plain("upper")))
    yield case("deflate", "deflate", zlib.compress(plain("deflate")))
    yield case("deflate-raw", "deflate", bare)
    yield case("br", "br", brotli.compress(plain("br")))
    yield case("zstd", "zstd", zstd.compress(plain("zstd")))
    yield case("identity", "identity", plain("identity"))
    yield case("twice", "gzip, gzip", gzip.compress(gzip.compress(plain("twice"))))
    yield case("mixed", "deflate, br", brotli.compress(zlib.compress(plain("mixed"))))
    half = len(plain("members")) // 2
    yield case("members", "gzip", gzip.compress(plain("members")[:half]) + gzip.compress(plain("members")[half:]))
    yield case("gzip-chunked", "gzip", gzip.compress(plain("gzip-chunked")), chunked=True)
    yield case("chunked", "", plain("chunked"), chunked=True)
    yield case("trailing", "gzip", gzip.compress(plain("trailing")) + b"\0" * 9)
    yield case("cut", "gzip", gzip.compress(plain("cut"))[:-20], FAIL)
    yield case("cut-br", "br", brotli.compress(plain("cut-br"))[:-20], FAIL)
    yield case("cut-zstd", "zstd", zstd.compress(plain("cut-zstd"))[:-20], FAIL)
    yield case("not-gzip", "gzip", plain("not-gzip"), FAIL)
    yield case("not-br", "br", b"\xff" * 900, FAIL)
    yield case("unknown", "sdch", plain("unknown"), FAIL)
    yield case("bomb", "gzip", BOMB, FAIL)
    yield Case("/coding/empty", Reply(b"", 200, (*HTML, ("Content-Encoding", "gzip"))), row={"title": None, "bytes": 0})
    missing = Reply(gzip.compress(b"gone"), 404, (*HTML, ("Content-Encoding", "gzip")))
    yield Case("/coding/404", missing, FAIL, row={"status": 404})


def bomb(mebibytes: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(mebibytes)) + packer.flush()


BOMB = bomb(200)


# Titles, descriptions and languages: document.title of the HTML Standard.


def title_cases() -> Iterator[Case]:
    def case(name: str, head: str, title: str | None, body: str = "") -> Case:
        source = f"<!doctype html><html><head>{head}</head><body><p>{words(name)} {name}</p>{body}</body></html>"
        return Case(f"/title/{name}", Reply(source.encode()), row={"title": title})

    yield case("plain", "<title>A title</title>", "A title")
    yield case("none", "", None)
    yield case("empty", "<title></title>", None)
    yield case("blank", "<title> \n\t </title>", None)
    yield case("spaces", "<title>\n  A \t long\n   title  </title>", "A long title")
    yield case("entities", "<title>A &amp; B &lt;b&gt; &eacute; &#8211; &#x2013;</title>", "A & B <b> é – –")
    yield case("old-numbers", "<title>&#150; &#x80; &#0;</title>", "– € \ufffd")
    yield case("bare-ampersand", "<title>A & B &nosuch; C&D</title>", "A & B &nosuch; C&D")
    yield case("tags", "<title>A <b>bold</b> title</title>", "A <b>bold</b> title")
    yield case("comment", "<title>A <!-- b --> title</title>", "A <!-- b --> title")
    yield case("two", "<title>First</title><title>Second</title>", "First")
    yield case("upper", "<TITLE>Upper</TITLE>", "Upper")
    yield case("in-body", "", "In the body", "<title>In the body</title>")
    yield case("svg-first", "", "The page's own", "<svg><title>A picture</title></svg><title>The page's own</title>")
    yield case("svg-only", "", None, "<svg><title>A picture</title></svg>")
    yield case("in-comment", "<!-- <title>No</title> --><title>Yes</title>", "Yes")
    yield case("in-script", "<script>'<title>No</title>'</script><title>Yes</title>", "Yes")
    yield case("emoji", "<title>Zürich 🏔 \u202e</title>", "Zürich 🏔 \u202e")
    described = '<meta name="Description" content=" What  it\nsays ">'
    yield page("/title/description", head=described, row={"description": "What it says"})
    for language, text in (
        ("de", "Das Wetter wird morgen schön, und wir gehen mit den Kindern an den See, wenn es nicht regnet."),
        ("fr", "Le temps sera beau demain et nous irons au lac avec les enfants, s'il ne pleut pas trop."),
    ):
        source = f"<!doctype html><title>{language}</title><p>{text}</p>"
        yield Case(f"/language/guessed-{language}", Reply(source.encode()), row={"language": language})
    declared = html("Declared", language="pt-BR").encode()
    yield Case("/language/declared", Reply(declared), row={"language": ("pt-BR", "pt-br", "pt")})


# Canonical addresses, refreshes, other languages.


def pointer_cases(base: str) -> Iterator[Case]:
    def case(name: str, head: str, *asks: str, headers: Headers = HTML, row: dict[str, object] | None = None) -> Case:
        return page(f"/point/{name}", "", head, asks=asks, headers=headers, row=row or {"title": f"Page /point/{name}"})

    yield case("canonical", '<link rel="canonical" href="/t/canonical">', "/t/canonical")
    yield case("canonical-self", f'<link rel="canonical" href="{base}/point/canonical-self">')
    yield case("canonical-case", '<LINK REL="Canonical" HREF="/t/canonical-case">', "/t/canonical-case")
    yield case(
        "canonical-header",
        "",
        "/t/canonical-header",
        headers=(*HTML, ("Link", '</t/canonical-header>; rel="canonical"')),
    )
    yield case("hreflang", '<link rel="alternate" hreflang="de" href="/t/hreflang-de">', "/t/hreflang-de")
    yield case("refresh", '<meta http-equiv="refresh" content="0; url=/t/refresh">', "/t/refresh")
    yield case(
        "refresh-quoted", """<meta http-equiv="Refresh" content="5;URL='/t/refresh-quoted'">""", "/t/refresh-quoted"
    )
    yield case("refresh-bare", '<meta http-equiv="refresh" content="0, /t/refresh-bare">', "/t/refresh-bare")
    yield case("refresh-header", "", "/t/refresh-header", headers=(*HTML, ("Refresh", "0; url=/t/refresh-header")))
    yield case("refresh-self", '<meta http-equiv="refresh" content="30">')
    yield case("refresh-script", '<meta http-equiv="refresh" content="0; url=javascript:alert(1)">')
    yield case(
        "refresh-nofollow",
        '<meta name="robots" content="nofollow"><meta http-equiv="refresh" content="0; url=/decoy/refresh">',
    )


# Cookies: RFC 6265bis, which the log of the server judges.


def cookie_cases() -> Iterator[Case]:
    sent = (
        ("plain", "plain=1", True),
        ("path", "inside=1; Path=/cookie/back", True),
        ("other-path", "outside=1; Path=/elsewhere", False),
        ("secure", "secure=1; Secure", False),
        ("expired", "expired=1; Max-Age=0", False),
        ("past", "past=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", False),
        ("foreign", "foreign=1; Domain=elsewhere.invalid", False),
        ("max-age-wins", "wins=1; Max-Age=3600; Expires=Thu, 01 Jan 1970 00:00:00 GMT", True),
    )
    for name, cookie, comes_back in sent:
        key = cookie.partition("=")[0]

        def back(asked: Asked, key: str = key, comes_back: bool = comes_back) -> Reply:
            good = (f"{key}=1" in asked.headers.get("cookie", "")) == comes_back
            return Reply(html(f"Cookie {key}").encode()) if good else Reply(b"not as it should be", 400)

        first = html(f"Sets {name}", f'<a href="/cookie/back/{name}">x</a>').encode()
        yield Case(
            f"/cookie/{name}",
            Reply(first, 200, (*HTML, ("Set-Cookie", f"{cookie}" + ("" if "Path" in cookie else "; Path=/cookie")))),
        )
        yield Case(f"/cookie/back/{name}", back, row={"title": f"Cookie {key}"}, linked=False)


# Sitemaps: sitemaps.org's protocol and Google's text. They are named in robots.txt; their pages are linked nowhere.

MAP = '<?xml version="1.0" encoding="UTF-8"?><{0} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{1}</{0}>'
MAPS = (
    "/map/index.xml",
    "/map/list.txt",
    "/map/feed.rss",
    "/map/atom.xml",
    "/map/gone.xml",
    "/map/html.xml",
    "/map/bomb.xml",
    "/map/moved.xml",
    "/map/16.xml",
    "/map/private/refused.xml",
)


def sitemap_cases(base: str) -> Iterator[Case]:
    def urls(*targets: str) -> str:
        return "".join(f"<url><loc>{base}{target}</loc></url>" for target in targets)

    def answer(target: str, text: str | bytes, content_type: str = "application/xml", *pages: str) -> Case:
        body = text.encode() if isinstance(text, str) else text
        return Case(target, Reply(body, 200, typed(content_type)), ("no row", "refused", *ANY), pages, linked=False)

    inside = (
        "plain.xml",
        "packed.xml.gz",
        "cut.xml",
        "odd.xml",
        "index.xml",
        "missing.xml",
        "nested.xml",
        "images.xml",
    )
    index = "".join(f"<sitemap><loc>{base}/map/{name}</loc></sitemap>" for name in inside)
    yield answer("/map/index.xml", MAP.format("sitemapindex", index))
    yield answer(
        "/map/plain.xml",
        MAP.format("urlset", urls("/m/a", "/m/b?x=1&amp;y=2", "/m/private-not")),
        "text/xml",
        "/m/a",
        "/m/b?x=1&y=2",
        "/m/private-not",
    )
    yield answer(
        "/map/packed.xml.gz",
        gzip.compress(MAP.format("urlset", urls("/m/packed")).encode()),
        "application/x-gzip",
        "/m/packed",
    )
    cut = MAP.format("urlset", urls("/m/before-the-cut", "/m/gone"))
    yield answer("/map/cut.xml", cut[: cut.index("/m/gone")], "application/xml", "/m/before-the-cut")
    odd = (
        f"<url>\n<loc>\n  {base}/m/blanks  \n</loc></url><url><loc><![CDATA[{base}/m/cdata?a=1&b=2]]></loc></url>"
        f"<url><lastmod>never</lastmod><priority>9</priority><loc>{base}/m/odd-values</loc></url>"
        f"<URL><LOC>x</LOC></URL><url></url><url><loc></loc></url><url><loc>javascript:x</loc></url>"
        f"<url><!-- <loc>{base}/decoy/map-comment</loc> --><loc>{base}/m/after-a-comment</loc></url>"
    )
    yield answer(
        "/map/odd.xml",
        "\ufeff" + MAP.format("urlset", odd),
        "text/plain",
        "/m/blanks",
        "/m/cdata?a=1&b=2",
        "/m/odd-values",
        "/m/after-a-comment",
    )
    prefixed = f'<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9"><s:url><s:loc>{base}/m/prefixed</s:loc></s:url></s:urlset>'
    yield answer(
        "/map/nested.xml", MAP.format("sitemapindex", f"<sitemap><loc>{base}/map/prefixed.xml</loc></sitemap>")
    )
    yield answer("/map/prefixed.xml", prefixed, "application/xml", "/m/prefixed")
    images = f'<url><loc>{base}/m/pictured</loc><image:image xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><image:loc>{base}/decoy/picture.png</image:loc></image:image></url>'
    yield answer("/map/images.xml", MAP.format("urlset", images), "application/xml", "/m/pictured")
    yield answer(
        "/map/list.txt",
        f"{base}/m/listed\r\n\r\n{base}/m/listed-too#x\nnonsense\n",
        "text/plain",
        "/m/listed",
        "/m/listed-too",
    )
    item = f"<item><title>x</title><link>{base}/m/rss</link></item>"
    yield answer(
        "/map/feed.rss",
        f'<?xml version="1.0"?><rss version="2.0"><channel>{item}</channel></rss>',
        "application/rss+xml",
        "/m/rss",
    )
    entry = f'<entry><link href="{base}/m/atom"/><link rel="edit" href="{base}/decoy/edit"/></entry>'
    yield answer(
        "/map/atom.xml", f'<feed xmlns="http://www.w3.org/2005/Atom">{entry}</feed>', "application/atom+xml", "/m/atom"
    )
    yield answer("/map/html.xml", html("Not a map"), "text/html")
    entities = '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + at)} "{f"&{chr(97 + at)};" * 10}">' for at in range(9)
    )
    dtd = f'<?xml version="1.0"?><!DOCTYPE x [{entities}<!ENTITY e SYSTEM "{base}/decoy/entity">]>'
    yield answer(
        "/map/bomb.xml",
        f"{dtd}<urlset><url><loc>&j;&e;</loc></url><url><loc>{base}/m/beside-a-bomb</loc></url></urlset>",
    )
    yield Case("/map/moved.xml", moved(301, "/map/moved-here.xml"), ("no row", "refused", *ANY), linked=False)
    yield answer("/map/moved-here.xml", MAP.format("urlset", urls("/m/moved-map")), "application/xml", "/m/moved-map")
    wide = MAP.replace("UTF-8", "UTF-16").format("urlset", urls("/m/wide"))
    yield answer("/map/16.xml", b"\xff\xfe" + wide.encode("utf-16-le"), "application/xml", "/m/wide")
    yield answer("/map/private/refused.xml", MAP.format("urlset", urls("/decoy/refused-map")))


LOST = ("/robots.txt", "/map/missing.xml")
ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /map/private/\nDisallow: /*.cgi$\n\n"


def protocol(base: str, other: str) -> list[Case]:
    """The first host: everything that a well-meant site does wrong."""
    refused = ("/private/page", "/private/", "/x/run.cgi")
    return [
        *charset_cases(),
        *redirect_cases(base, other),
        *link_cases(base, other),
        *robots_cases(),
        *status_cases(),
        *type_cases(),
        *coding_cases(),
        *title_cases(),
        *pointer_cases(base),
        *cookie_cases(),
        *sitemap_cases(base),
        *(Case(target, Reply(b"never", 500), ("refused",)) for target in refused),
        page("/x/run.cgi?a=1"),
    ]


def answers(cases: list[Case], base: str, robots: str = ROBOTS, maps: tuple[str, ...] = MAPS) -> dict[str, Answer]:
    """What the first host answers: its cases, the pages that these lead to, a front page, robots.txt."""
    named = "".join(f"Sitemap: {base}{path}\n" for path in maps)
    found: dict[str, Answer] = {"/robots.txt": Reply((robots + named).encode(), 200, typed("text/plain"))}
    for case in cases:
        found.update({target: leaf(target) for target in case.asks})
    found |= {case.target: case.answer for case in cases}
    escaped = [case.target.replace("&", "&amp;") for case in cases if case.linked]
    front = "".join(f'<a href="{target}">{number}</a>\n' for number, target in enumerate(escaped))
    found["/"] = Reply(html("Front", front).encode())
    return found


# Bodies that lie: each at its own host, beside honest pages. RFC 9112 says which are no messages.

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
WHOLE = html("Whole").encode()


def sized(body: bytes, more: bytes = b"") -> bytes:
    return OK + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


LIES: dict[str, tuple[tuple[str, ...], tuple[bytes | float, ...]]] = {
    "cut": (FAIL, (OK + b"Content-Length: 5000\r\n\r\n" + WHOLE,)),
    "cut-chunk": (FAIL, (CHUNKED + b"500\r\n" + WHOLE,)),
    "no-last-chunk": (FAIL, (CHUNKED + chunk(WHOLE),)),
    "bad-chunk": (FAIL, (CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n",)),
    "negative-chunk": (FAIL, (CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",)),
    "huge-chunk": (FAIL, (CHUNKED + b"FFFFFFFFFFFFFFFFFF\r\nhello",)),
    "nothing": (FAIL, (b"",)),
    "half-a-head": (FAIL, (b"HTTP/1.1 200 OK\r\nContent-Ty",)),
    "no-http": (FAIL, (b"SSH-2.0-OpenSSH_9.6\r\n",)),
    "http-0.9": (FAIL, (WHOLE,)),
    "status-letters": (FAIL, (b"HTTP/1.1 abc What\r\n\r\n",)),
    "status-1": (FAIL, (b"HTTP/1.1 1 What\r\n\r\n",)),
    "negative-length": (FAIL, (OK + b"Content-Length: -7\r\n\r\n" + WHOLE,)),
    "two-lengths": (FAIL, (OK + b"Content-Length: 7\r\nContent-Length: 70\r\n\r\n" + WHOLE,)),
    "length-letters": (FAIL, (OK + b"Content-Length: 0x10\r\n\r\n" + WHOLE,)),
    "huge-header": (("failed", "fetched"), (OK + b"X-Long: " + b"x" * 300_000 + b"\r\n\r\n" + WHOLE,)),
    "many-headers": (
        ("failed", "fetched"),
        (OK + b"".join(b"X-%d: y\r\n" % at for at in range(20_000)) + b"\r\n" + WHOLE,),
    ),
    "same-lengths": (
        ("failed", "fetched"),
        (OK + b"Content-Length: %d\r\nContent-Length: %d\r\n\r\n" % (len(WHOLE), len(WHOLE)) + WHOLE,),
    ),
    "length-and-chunks": (
        ("failed", "fetched"),
        (OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(WHOLE) + b"0\r\n\r\n",),
    ),
    "too-much": (("fetched", "failed"), (sized(WHOLE) + b"and something more than was said" * 9,)),
    "until-close": (GET, (OK + b"Connection: close\r\n\r\n" + WHOLE,)),
    "http-1.0": (GET, (b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + WHOLE,)),
    "no-reason": (GET, (sized(WHOLE).replace(b"200 OK", b"200 ", 1),)),
    "bytewise": (GET, tuple(part for byte in sized(b"<title>Whole</title>" + b"x") for part in (bytes([byte]), 0.001))),
    "paused": (GET, (sized(WHOLE)[:200], 0.5, sized(WHOLE)[200:])),
    "trailers": (GET, (CHUNKED + chunk(WHOLE) + b"0\r\nX-Sum: 1\r\n\r\n",)),
    "one-byte-chunks": (GET, (CHUNKED + b"".join(chunk(bytes([byte])) for byte in WHOLE) + b"0\r\n\r\n",)),
    "silent": (FAIL, (30.0,)),
    "stalled": (FAIL, (OK + b"Content-Length: 900\r\n\r\n<title>", 30.0)),
}
HONEST = 5


def liar(name: str) -> tuple[list[Case], dict[str, Answer]]:
    """A host of honest pages, and a page that lies."""
    end, raw = LIES[name]
    row: dict[str, object] = {"title": "Whole"} if end == GET else {}
    cases = [Case("/lie", Reply(raw=raw), end, row=row)]
    cases += [page(f"/honest/{at}", row={"title": f"Page /honest/{at}"}) for at in range(HONEST)]
    return cases, {"/": leaf("/"), **answers(cases, "", "", ())}


# robots.txt of every kind: RFC 9309, and Google's text and its parser's tests where the RFC is silent.
# name: (answers, allowed, refused). Paths of neither are not tried.

Rules = tuple[Answer | dict[str, Answer], tuple[str, ...], tuple[str, ...]]


def rules(text: str | bytes, status: int = 200, content_type: str = "text/plain", *more: tuple[str, str]) -> Reply:
    return Reply(text if isinstance(text, bytes) else text.encode(), status, typed(content_type, *more))


ALL = "User-agent: *\n"
OURS = "User-agent: sanderling\n"
CLOSED = ALL + "Disallow: /\n"
ROBOTS_HOSTS: dict[str, Rules] = {
    "404": (rules("no", 404), ("/", "/a"), ()),
    "401": (rules("no", 401), ("/", "/a"), ()),
    "403": (rules("no", 403), ("/", "/a"), ()),
    "410": (rules("no", 410), ("/", "/a"), ()),
    "empty": (rules(""), ("/", "/a"), ()),
    "html": (rules(html("Welcome"), 200, "text/html"), ("/", "/a"), ()),
    "html-typed rules": (rules(CLOSED + "Allow: /a\n", 200, "text/html"), ("/a",), ("/b",)),
    "binary": (rules(bytes(range(256)) * 40), ("/", "/a"), ()),
    "closed": (rules(CLOSED), (), ("/", "/a")),
    "open": (rules(ALL + "Disallow:\n"), ("/", "/a"), ()),
    "ours": (rules(CLOSED + "\n" + OURS + "Disallow: /b\n"), ("/a",), ("/b",)),
    "ours open": (rules(CLOSED + "\n" + OURS + "Disallow:\n"), ("/a", "/b"), ()),
    "ours only": (rules(OURS + "Disallow: /a\n"), ("/b",), ("/a",)),
    "others": (rules("User-agent: googlebot\nDisallow: /\n"), ("/", "/a"), ()),
    "case of the name": (rules("USER-AGENT: SanderLing\nDISALLOW: /a\n"), ("/b", "/A"), ("/a",)),
    "version": (rules("User-agent: sanderling/9.0\nDisallow: /a\n\n" + ALL + "Disallow: /b\n"), ("/b",), ("/a",)),
    "longer name": (rules("User-agent: sanderlings\nDisallow: /a\n"), ("/a",), ()),
    "shorter name": (rules("User-agent: sand\nDisallow: /a\n"), ("/a",), ()),
    "groups are one": (
        rules(OURS + "Disallow: /a\n\n" + CLOSED + "\n" + OURS + "Disallow: /b\n"),
        ("/c",),
        ("/a", "/b"),
    ),
    "shared group": (rules("User-agent: x\n" + OURS + "User-agent: y\nDisallow: /a\n\n" + CLOSED), ("/b",), ("/a",)),
    "blank line inside": (rules(ALL + "\n\nDisallow: /a\n"), ("/b",), ("/a",)),
    "sitemap inside": (
        rules("User-agent: x\nSitemap: http://a.invalid/\n" + OURS + "Disallow: /a\n"),
        ("/b",),
        ("/a",),
    ),
    "rule before names": (rules("Disallow: /a\n" + ALL + "Disallow: /b\n"), ("/a",), ("/b",)),
    "comments": (rules("# x\nUser-agent: * # all\nDisallow: /a # yes\n#Disallow: /b\n"), ("/b",), ("/a",)),
    "spaces": (rules("  User-agent  :  *  \n\tDisallow\t:\t/a\t\n"), ("/b",), ("/a",)),
    "bom": (rules(b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /a\r\n"), ("/b",), ("/a",)),
    "returns only": (rules("User-agent: *\rDisallow: /a\rDisallow: /b"), ("/c",), ("/a", "/b")),
    "no colon": (rules(ALL + "Disallow /a\n"), ("/b",), ("/a",)),
    "misspelt": (rules(ALL + "Dissallow: /a\nDisalow: /b\n"), ("/c",), ("/a", "/b")),
    "nonsense between": (rules("User-agent: *\nHost: x\nNoindex: /b\n<b>\nDisallow: /a\n"), ("/b",), ("/a",)),
    "longest wins": (rules(CLOSED + "Allow: /p\n"), ("/p", "/page"), ("/a", "/")),
    "allow wins a tie": (rules(ALL + "Disallow: /folder\nAllow: /folder\n"), ("/folder/page",), ()),
    "longer disallow": (rules(ALL + "Allow: /page\nDisallow: /*.htm\n"), ("/page",), ("/page.htm",)),
    "only the root": (rules(CLOSED + "Allow: /$\n"), ("/",), ("/page.htm",)),
    "fish": (
        rules(ALL + "Disallow: /fish\n"),
        ("/Fish.asp", "/catfish", "/?id=fish"),
        ("/fish", "/fish.html", "/fish/salmon", "/fishheads", "/fish?id=1"),
    ),
    "fish/": (
        rules(ALL + "Disallow: /fish/\n"),
        ("/fish", "/fish.html", "/Fish/x"),
        ("/fish/", "/fish/salmon.htm", "/fish/?id=1"),
    ),
    "*.php": (
        rules(ALL + "Disallow: /*.php\n"),
        ("/", "/windows.PHP"),
        ("/index.php", "/folder/any.php?x=1", "/filename.php5"),
    ),
    "*.php$": (
        rules(ALL + "Disallow: /*.php$\n"),
        ("/filename.php?x=1", "/filename.php/", "/filename.php5"),
        ("/filename.php", "/folder/x.php"),
    ),
    "fish*.php": (rules(ALL + "Disallow: /fish*.php\n"), ("/Fish.PHP",), ("/fish.php", "/fishheads/catfish.php?x=1")),
    "query": (rules(ALL + "Disallow: /*?\n"), ("/a",), ("/a?x=1",)),
    "escapes": (
        rules(ALL + "Disallow: /a%3cd.html\nDisallow: /%62%61%7A\nDisallow: /x/ツ\nDisallow: /s%2Ft\n"),
        ("/s/t",),
        ("/a%3Cd.html", "/baz", "/x/%E3%83%84", "/s%2Ft"),
    ),
    "dollar inside": (rules(ALL + "Disallow: /a$b\n"), ("/a",), ("/a$b",)),
    "many stars": (rules(ALL + "Disallow: /" + "*a" * 60 + "$\n"), ("/" + "a" * 50 + "b",), ("/" + "a" * 70,)),
    "long": (rules(ALL + "# padding\n" * 40_000 + "Disallow: /a\n"), ("/b",), ("/a",)),
    "packed": (rules(gzip.compress(CLOSED.encode()), 200, "text/plain", ("Content-Encoding", "gzip")), (), ("/a",)),
    "moved": ({"/robots.txt": moved(301, "/rules"), "/rules": rules(ALL + "Disallow: /a\n")}, ("/b",), ("/a",)),
    "moved five times": (
        {
            "/robots.txt": moved(302, "/r/1"),
            **{f"/r/{at}": moved(302, f"/r/{at + 1}") for at in range(1, 5)},
            "/r/5": rules(ALL + "Disallow: /a\n"),
        },
        ("/b",),
        ("/a",),
    ),
    "its own address": (rules(CLOSED), (), ("/robots.txt/", "/robots.txt?x=1")),
}
SHUT: dict[str, Answer] = {
    "500": rules("down", 500),
    "503": rules("down", 503),
    "429": rules("slow", 429),
    "cut": Reply(raw=(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nUser-agent: *\n",)),
    "dropped": Reply(raw=(b"",)),
}
DELAY = 0.6


def robots_host(name: str) -> dict[str, Answer]:
    """A host with that robots.txt."""
    files, allowed, refused = ROBOTS_HOSTS[name]
    found = dict(files) if isinstance(files, dict) else {"/robots.txt": files}
    return {target: leaf(f"{target[:40]} of {name}") for target in (*allowed, *refused)} | found


# Traps, and honest sites that look like them. Each is a host of its own; `honest` has to be fetched whole.


@dataclass(frozen=True, slots=True)
class Trap:
    answer: Callable[[Asked], Reply]
    honest: frozenset[str]
    most: int | None = None  # requests that are still reasonable; None: this one is honest from end to end


def front(*more: str) -> tuple[frozenset[str], str]:
    honest = frozenset(f"/page/{at}" for at in range(60))
    return honest, "".join(f'<a href="{target}">x</a>' for target in (*more, *sorted(honest)))


def _site(begin: tuple[str, ...], trap: Callable[[Asked], str | None]) -> Callable[[Asked], Reply]:
    honest, links = front(*begin)

    def answer(asked: Asked) -> Reply:
        if asked.target == "/":
            return Reply(html("Front", links).encode())
        if asked.target in honest:
            return leaf(asked.target)
        source = trap(asked)
        return Reply(source.encode()) if source else Reply(b"no", 404)

    return answer


def calendar(asked: Asked) -> str | None:
    """Months for ever, none of which has an event."""
    if not asked.path.startswith("/calendar/"):
        return None
    month = int(asked.path.rpartition("/")[2])
    name = f"{1970 + month // 12}-{month % 12 + 1:02}"
    days = "".join(f"<td>{day}</td>" for day in range(1, 29))
    links = f'<a href="/calendar/{month + 1}">next</a><a href="/calendar/{max(0, month - 1)}">before</a>'
    return f"<title>Calendar {name}</title><p>There is no event in {name}.</p><table><tr>{days}</table>{links}"


def facets(asked: Asked) -> str | None:
    """Eight filters that multiply, whose lists all say the same."""
    if not asked.path.startswith("/find"):
        return None
    chosen = dict(part.split("=", 1) for part in asked.target.partition("?")[2].split("&") if "=" in part)
    names = "colour size sort brand rating shop year kind".split()
    links = "".join(
        '<a href="/find?{}">x</a>'.format(
            "&amp;".join(f"{key}={text}" for key, text in {**chosen, name: value}.items())
        )
        for name in names
        for value in "abcde"
    )
    return f"<title>Find</title><p>{words('facets', 60)}</p>{links}"


def soft(asked: Asked) -> str | None:
    """Any address is a page that says there is none, and leads to others."""
    random = Random(asked.target)
    links = "".join(f'<a href="/{random.randrange(10**9):x}/{random.choice(WORDS)}">x</a>' for _ in range(5))
    return f"<title>Oops</title><p>The page that you look for is not here. {words('soft', 30)}</p>{links}"


def sessions(asked: Asked) -> str | None:
    """The same twenty pages under an id that changes with every request."""
    number = int(asked.target.rpartition("=")[2]) if asked.path == "/shop" else None
    if number is None:
        return None
    sid = f"{Random(f'{asked.target}{asked.at}').randrange(10**12):012x}"
    links = "".join(f'<a href="/shop?sid={sid}&amp;p={at}">x</a>' for at in range(20))
    return f"<title>Shop {number % 20}</title><p>{words(f'shop {number % 20}', 60)}</p>{links}"


def loop(asked: Asked) -> str | None:
    """A relative link that makes the path longer and longer."""
    return (
        f'<title>About</title><p>{words("about", 60)}</p><a href="about/us/">x</a>' if "about" in asked.path else None
    )


def shop_of_facets(items: int) -> Trap:
    """Items that pages of ten lead to, beside eight filters that multiply."""

    def answer(asked: Asked) -> Reply:
        if asked.target == "/":
            return Reply(html("Shop", '<a href="/find?year=a">x</a><a href="/list?page=1">x</a>').encode())
        if asked.path == "/list" and (at := int(asked.target.rpartition("=")[2])) <= items // 10:
            links = "".join(f'<a href="/item/{item}">x</a>' for item in range(at * 10 - 10, at * 10))
            return Reply(
                f'<title>All, {at}</title><p>All of our items.</p>{links}<a href="/list?page={at + 1}">x</a>'.encode()
            )
        if asked.path.startswith("/item/"):
            return leaf(asked.target)
        source = facets(asked)
        return Reply(source.encode()) if source else Reply(b"no", 404)

    return Trap(answer, frozenset(f"/item/{item}" for item in range(items)), items * 5)


def register(entries: int) -> Trap:
    """Entries that begin with the same thousand characters; what is an entry's own comes after."""
    same = " ".join(
        f"Section {words(at, 2)} says who keeps this register and where to ask for {words(-at, 4)}."
        for at in range(1, 14)
    )

    def answer(asked: Asked) -> Reply:
        number = asked.path.rpartition("/")[2]
        if asked.target == "/":
            return Reply(
                html("Register", "".join(f'<a href="/list/{at}">x</a>' for at in range(-(-entries // 50)))).encode()
            )
        if asked.path.startswith("/list/"):
            first = int(number) * 50
            return Reply(
                html(
                    f"List {number}",
                    "".join(f'<a href="/entry/{at}">x</a>' for at in range(first, min(first + 50, entries))),
                ).encode()
            )
        own = f"<p>{same}</p><p>{words(f'entry {number}', 90)}.</p>"
        return (
            Reply(f'<title>Entry {number}</title>{own}<a href="/">x</a>'.encode())
            if asked.path.startswith("/entry/")
            else Reply(b"no", 404)
        )

    return Trap(answer, frozenset(f"/entry/{at}" for at in range(entries)))


def tables(stations: int) -> Trap:
    """Tables that differ in their numbers only."""

    def answer(asked: Asked) -> Reply:
        number = asked.path.rpartition("/")[2]
        if asked.target == "/":
            return Reply(html("Stations", "".join(f'<a href="/station/{at}">x</a>' for at in range(stations))).encode())
        random = Random(number)
        rows = "".join(
            f"<tr><td>Month {month}</td><td>{random.randint(100, 9999)} mm</td></tr>" for month in range(1, 13)
        )
        source = f"<title>Station</title><p>Rainfall by month, as measured by the service.</p><table>{rows}</table>"
        return Reply(source.encode()) if asked.path.startswith("/station/") else Reply(b"no", 404)

    return Trap(answer, frozenset(f"/station/{at}" for at in range(stations)))


HONEST_PAGES = front()[0]
TRAPS: dict[str, Trap] = {
    "calendar": Trap(_site(("/calendar/1",), calendar), HONEST_PAGES, 400),
    "facets": Trap(_site(("/find?year=a",), facets), HONEST_PAGES, 3500),
    "soft": Trap(_site(("/first/one",), soft), HONEST_PAGES, 3500),
    "sessions": Trap(_site(("/shop?sid=0&amp;p=1",), sessions), HONEST_PAGES, 600),
    "loop": Trap(_site(("/about/",), loop), HONEST_PAGES, 400),
}
