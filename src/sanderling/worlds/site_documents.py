"""What simulated hosts serve besides numbered pages: other documents, redirects, robots.txt, sitemaps and traps."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from math import ceil

from sanderling.stores.frontier_rows import End
from sanderling.task import Headers
from sanderling.worlds.site_pages import WRITTEN, ExtraPage, SitePage, Tree, html, validators

PART = 100  # pages that one sitemap lists; the protocol allows 50,000
HUGE = 10 * 2**20  # bytes of the largest robots.txt; RFC 9309 asks crawlers to read the first 500 KiB
HOPS = 6  # of the longest chain of redirects that ends
INSIDE = "http://10.0.0.1/"  # a private address, where no page of a stranger may lead a crawler

Make = Callable[[Tree], SitePage]


def _plain(text: str) -> SitePage:
    return SitePage(200, (("Content-Type", "text/plain; charset=utf-8"),), text.encode())


def _bytes(kind: str | None, body: Callable[[Tree], bytes], *more: tuple[str, str]) -> Make:
    """A document of that Content-Type, or of none."""
    said: Headers = (*((("Content-Type", kind),) if kind else ()), *more)
    return lambda tree: SitePage(200, said, body(tree))


def short(title: str) -> Make:
    """A short page that links home."""
    return lambda tree: SitePage(
        200,
        (("Content-Type", "text/html; charset=utf-8"),),
        html(title, "<p>The tide leaves the pebble on the beach.</p>", ["/"], home=tree.name),
    )


def status(code: int) -> Make:
    """Nothing but a status."""
    return lambda _tree: SitePage(code, (("Content-Type", "text/plain; charset=utf-8"),), f"{code}\n".encode())


def moved(target: str, code: int = 302) -> Make:
    """A redirect; a target that is a path stays one."""
    return lambda _tree: SitePage(code, (("Location", target),))


def moved_away(tree: Tree) -> SitePage:
    """A redirect to another host; to the front page where there is none."""
    return SitePage(302, (("Location", tree.elsewhere[-1] if tree.elsewhere else "/"),))


def _json(tree: Tree) -> bytes:
    rng = tree.chance("json")
    birds = [{"bird": bird, "seen": int(rng.random() * 50)} for bird in ("heron", "plover", "curlew")]
    return json.dumps({"host": tree.name, "birds": birds}, indent=2).encode()


def _noise(size: int) -> Callable[[Tree], bytes]:
    return lambda tree: tree.chance("noise").randbytes(size)


def _accented(charset: str) -> Callable[[Tree], bytes]:
    """A page whose meta tag says UTF-8, in another charset."""
    head = '<!DOCTYPE html><html lang="fr"><meta charset="utf-8"><title>Mar\u00e9e</title>'
    text = f"{head}<p>La mar\u00e9e est basse.</p></html>"
    return lambda _tree: text.encode(charset)


KINDS: dict[str, ExtraPage] = {
    "/birds.json": ExtraPage(_bytes("application/json", _json, *validators("birds", WRITTEN))),
    "/notes.txt": ExtraPage(_bytes("text/plain; charset=utf-8", lambda tree: f"Notes of {tree.name}.\n".encode())),
    "/paper.pdf": ExtraPage(_bytes("application/pdf", lambda tree: b"%PDF-1.4\n" + _noise(2000)(tree) + b"\n%%EOF\n")),
    "/photo.png": ExtraPage(_bytes("image/png", lambda tree: b"\x89PNG\r\n\x1a\n" + _noise(500)(tree))),
    "/latin.html": ExtraPage(_bytes("text/html; charset=utf-8", _accented("latin-1"))),  # says one thing, is another
    "/utf16.html": ExtraPage(
        _bytes("text/html; charset=utf-16", _accented("utf-16"))
    ),  # the header is right, the tag not
    "/untyped": ExtraPage(_bytes(None, lambda tree: html("Untyped", "<p>Which kind?</p>", ["/"], home=tree.name))),
    "/packed.html": ExtraPage(
        _bytes(
            "text/html; charset=utf-8",
            lambda tree: html("Packed", "<p>Sand.</p>" * 500, ["/"], home=tree.name),
            ("Vary", "Accept-Encoding"),
        )
    ),
    "/empty.html": ExtraPage(_bytes("text/html; charset=utf-8", lambda _tree: b"")),
    "/garbled.html": ExtraPage(
        _bytes("text/html", _noise(300), ("Content-Encoding", "gzip")), End.FAILED
    ),  # is no gzip
    "/login": ExtraPage(status(401), End.FAILED),
    "/members": ExtraPage(status(403), End.FAILED),
}

BROKEN_LINKS: dict[str, ExtraPage] = {
    "/missing": ExtraPage(status(404), End.FAILED),
    "/gone": ExtraPage(status(410), End.FAILED),
}

REDIRECTS: dict[str, ExtraPage] = {
    "/robots.txt": ExtraPage(moved("/robots-moved.txt", 301), end=None, linked=False),
    "/robots-moved.txt": ExtraPage(lambda _tree: _plain("User-agent: *\nDisallow: /shut/\n"), end=None, linked=False),
    "/shut/page": ExtraPage(short("Shut"), End.REFUSED),
    **{
        f"/chain/{hop}": ExtraPage(moved(f"/chain/{hop + 1}"), End.MOVED, linked=hop == 1) for hop in range(1, HOPS + 1)
    },
    f"/chain/{HOPS + 1}": ExtraPage(short("The end of the chain"), linked=False),
    # Whoever closes a loop has moved nowhere.
    "/loop/a": ExtraPage(moved("/loop/b"), End.MOVED),
    "/loop/b": ExtraPage(moved("/loop/a"), End.FAILED, linked=False),
    "/itself": ExtraPage(moved("/itself", 301), End.FAILED),
    "/away": ExtraPage(moved_away, End.MOVED),
    "/inside": ExtraPage(moved(INSIDE), End.MOVED),
    "/guide": ExtraPage(moved("/guide/", 308), End.MOVED),
    "/guide/": ExtraPage(short("Guide"), linked=False),
    "/lost": ExtraPage(lambda _tree: SitePage(302), End.FAILED),  # says that it moved and not where to
}


def _robots(tree: Tree) -> SitePage:
    return _plain(f"""# Rules for everyone, and for one who is not us.
User-agent: otherbot
Disallow: /

User-agent: *
Crawl-delay: 2
Disallow: /private/
Allow: /private/open
Disallow: /*.draft$
Disallow: /search?
Disallow: /only-listed/3

Sitemap: {tree.origin}/sitemap.xml
""")


def _only_listed(tree: Tree) -> SitePage:
    return _urlset(f"{tree.origin}/only-listed/{number}" for number in (1, 2, 3))


ROBOTS: dict[str, ExtraPage] = {
    "/robots.txt": ExtraPage(_robots, end=None, linked=False),
    "/sitemap.xml": ExtraPage(_only_listed, linked=False),
    "/only-listed/1": ExtraPage(short("Listed 1"), linked=False),
    "/only-listed/2": ExtraPage(short("Listed 2"), linked=False),
    "/only-listed/3": ExtraPage(short("Listed 3"), End.REFUSED, linked=False),
    "/private/page": ExtraPage(short("Private"), End.REFUSED),
    "/private/open": ExtraPage(short("Open")),
    "/report.draft": ExtraPage(short("Draft"), End.REFUSED),
    "/report.draft.html": ExtraPage(short("No draft")),
    "/search?q=tide": ExtraPage(short("Search"), End.REFUSED),
}


def _huge(_tree: Tree) -> SitePage:
    rules = "User-agent: *\nDisallow: /private/\n"
    filling = "# The rules are above; the rest is only long.\n"
    return _plain(rules + filling * ((HUGE - len(rules)) // len(filling)))


HUGE_ROBOTS: dict[str, ExtraPage] = {
    "/robots.txt": ExtraPage(_huge, end=None, linked=False),
    "/private/page": ExtraPage(short("Private"), End.REFUSED),
}
BINARY_ROBOTS: dict[str, ExtraPage] = {
    "/robots.txt": ExtraPage(_bytes("text/plain", _noise(4096)), end=None, linked=False)
}
FAILING_ROBOTS: dict[str, ExtraPage] = {"/robots.txt": ExtraPage(status(500), end=None, linked=False)}


def sitemap_part(tree: Tree, path: str) -> SitePage | None:
    """One of the sitemaps that the index lists: those with odd numbers are gzip files."""
    if path not in sitemap_parts(tree):
        return None
    number = int(re.sub(r"\D", "", path))
    page = _urlset(tree.origin + tree.path(each) for each in range(PART * (number - 1), min(PART * number, tree.size)))
    if not path.endswith(".gz"):
        return page
    return SitePage(200, (("Content-Type", "application/gzip"),), gzip.compress(page.body, mtime=0))


def sitemap_parts(tree: Tree) -> list[str]:
    """Where they are."""
    return [f"/sitemap-{number}.xml{'.gz' * (number % 2)}" for number in range(1, ceil(tree.size / PART) + 1)]


def _index(tree: Tree) -> SitePage:
    """Lists its parts, one that is missing, and itself."""
    listed = [*sitemap_parts(tree), "/sitemap-missing.xml", "/sitemap.xml"]
    return _xml("sitemapindex", (f"<sitemap><loc>{tree.origin}{path}</loc></sitemap>" for path in listed))


SITEMAPS: dict[str, ExtraPage] = {
    "/robots.txt": ExtraPage(
        lambda tree: _plain(f"User-agent: *\nDisallow:\n\nSitemap: {tree.origin}/sitemap.xml\n"), end=None, linked=False
    ),
    "/sitemap.xml": ExtraPage(_index, linked=False),
    "/sitemap-missing.xml": ExtraPage(status(404), End.FAILED, linked=False),
}


def _urlset(urls: Iterator[str]) -> SitePage:
    return _xml("urlset", (f"<url><loc>{url}</loc></url>" for url in urls))


def _xml(root: str, entries: Iterator[str]) -> SitePage:
    lines = "\n".join(entries)
    text = f"""<?xml version="1.0" encoding="UTF-8"?>
<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{lines}
</{root}>
"""
    return SitePage(200, (("Content-Type", "application/xml"),), text.encode())


TRAPS = ("/calendar/2030-01", "/a/", "/on/1")  # where each of them begins
_MONTH = re.compile(r"/calendar/([0-9]{4,8})-(0[1-9]|1[0-2])")
_ON = re.compile(r"/on/([1-9][0-9]{0,8})")
_AB = re.compile(r"(?:/a/b)*(?:/a)?/")


def bottomless(tree: Tree, path: str) -> SitePage | None:
    """A page of one of the traps: a calendar, a relative link that repeats itself, a redirect that leads on."""
    if month := _MONTH.fullmatch(path):
        later = int(month[1]) * 12 + int(month[2])
        return _signpost(tree, path, f"/calendar/{later // 12}-{later % 12 + 1:02}")
    if found := _ON.fullmatch(path):
        return moved(f"/on/{int(found[1]) + 1}")(tree)
    if path != "/" and _AB.fullmatch(path):
        return _signpost(tree, path, "b/" if path.endswith("/a/") else "a/")
    return None


def _signpost(tree: Tree, path: str, onwards: str) -> SitePage:
    title = f"Nothing at {path[-40:]}"
    body = html(title, "<p>Nothing is planned yet.</p>", [onwards], home=tree.name)
    return SitePage(200, (("Content-Type", "text/html; charset=utf-8"),), body)
