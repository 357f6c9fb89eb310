"""The documents as a site: it can be built, every link leads somewhere, and it loads nothing from another server."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import build_site
import pytest
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
needs_zensical = pytest.mark.skipif(find_spec("zensical") is None, reason="zensical is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    build_site.build(folder)
    return folder / "site"


def parsed(site: Path) -> Iterator[tuple[Path, LexborHTMLParser]]:
    for path in sorted(site.rglob("*.html")):
        if path.name != "404.html":  # its links are those of a server's root
            yield path, LexborHTMLParser(path.read_text())


@needs_zensical
def test_every_document_is_a_page_and_in_the_navigation_of_every_page(site: Path) -> None:
    names = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in DOCS}
    wanted = {site / name for name in {*names, Path("index.html"), Path("changelog.html")}}

    for path, page in parsed(site):
        hrefs = [link.attributes["href"] or "" for link in page.css("nav.md-nav--primary a[href]")]
        listed = {(path.parent / href.partition("#")[0]).resolve() for href in hrefs}
        assert wanted <= {*listed, path.resolve()}, path.name


@needs_zensical
def test_every_link_of_the_site_leads_to_a_page_and_an_anchor_that_are_there(site: Path) -> None:
    pages = dict(parsed(site))
    anchors = {path: {node.attributes["id"] for node in page.css("[id]")} for path, page in pages.items()}

    broken = []
    for path, page in pages.items():
        for link in page.css("a[href]"):
            href, _, anchor = (link.attributes["href"] or "").partition("#")
            target = (path.parent / href).resolve() if href else path
            if re.match(r"[a-z]+:", href) or (target in anchors and (not anchor or anchor in anchors[target])):
                continue
            broken.append(f"{path.name}: {link.attributes['href']}")
    assert broken == []


@needs_zensical
def test_nothing_is_loaded_from_another_server(site: Path) -> None:
    loaded = [
        f"{path.name}: {node.attributes.get(name)}"
        for path, page in parsed(site)
        for selector, name in (("[src]", "src"), ("link[href]", "href"), ("[srcset]", "srcset"), ("object", "data"))
        for node in page.css(selector)
        if "//" in (node.attributes.get(name) or "") and node.attributes.get("rel") != "canonical"
    ]
    styles = [
        path.name
        for path in site.rglob("*.css")
        if re.search(r"(@import|url\()\s*[\"']?(https?:)?//", path.read_text())
    ]

    assert loaded == []
    assert styles == []


@needs_zensical
def test_every_page_forbids_the_browser_to_ask_another_server(site: Path) -> None:
    for path, page in parsed(site):
        (policy,) = page.css("meta[http-equiv=Content-Security-Policy]")
        assert (policy.attributes["content"] or "").startswith("default-src 'self' "), path.name


@needs_zensical
@pytest.mark.parametrize("path", [ROOT / "README.md", *DOCS], ids=lambda path: path.name)
def test_the_site_makes_of_a_page_what_others_do(path: Path, site: Path) -> None:
    """Its generator reads Markdown in another way than most; here both find the same headings, tables and code."""
    kinds = {"heading_open": "h", "table_open": "table", "fence": "pre", "code_block": "pre", "list_item_open": "li"}
    tokens = MarkdownIt().enable("table").parse(path.read_text())
    expected = Counter(kinds[token.type] for token in tokens if token.type in kinds)

    name = Path("index.html") if path.name == "README.md" else path.relative_to(ROOT / "docs").with_suffix(".html")
    article = LexborHTMLParser((site / name).read_text()).css_first("article")
    assert article is not None
    found = Counter({"h": len(article.css("h1, h2, h3, h4, h5")), "li": len(article.css("li"))})
    found += Counter({"table": len(article.css("table")), "pre": len(article.css("pre"))})
    assert found == expected


@needs_zensical
@pytest.mark.parametrize("link", ["two.md#nowhere", "#nowhere"])
def test_an_anchor_that_is_not_there_fails_the_build(
    link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(tmp_path, f"# One\n\n[Somewhere]({link})\n")
    monkeypatch.setattr(build_site, "ROOT", tmp_path)

    with pytest.raises(build_site.SiteError, match="anchor"):
        build_site.build(tmp_path / "build")


def test_a_link_out_of_the_site_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(tmp_path, "# One\n\n`[not](a-link)` and [a file](../Makefile)\n")
    monkeypatch.setattr(build_site, "ROOT", tmp_path)

    with pytest.raises(build_site.SiteError, match=r"docs/one.md: the link \.\./Makefile leads to no page of the site"):
        build_site.build(tmp_path / "build")


def test_a_page_that_the_navigation_has_not_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(tmp_path, "# One\n")
    (tmp_path / "docs" / "three.md").write_text("# Three\n")
    monkeypatch.setattr(build_site, "ROOT", tmp_path)

    with pytest.raises(build_site.SiteError, match=r"three\.md: it is missing"):
        build_site.build(tmp_path / "build")


def test_links_fit_where_a_page_is_in_the_site() -> None:
    names = {"README.md": "index.md", "docs/why/a.md": "why/a.md", "docs/b.md": "b.md"}

    assert build_site.relinked("[b](docs/b.md#x)", "README.md", names) == "[b](b.md#x)"
    assert build_site.relinked("[r](../../README.md)", "docs/why/a.md", names) == "[r](../index.md)"
    assert build_site.relinked("[w](https://a.example/b.md)", "docs/b.md", names) == "[w](https://a.example/b.md)"


def small(root: Path, text: str) -> None:
    """A site of few pages."""
    (root / "docs").mkdir()
    (root / "docs" / "one.md").write_text(text)
    (root / "docs" / "two.md").write_text("# Two\n")
    for name in ("README.md", "CHANGELOG.md"):
        (root / name).write_text(f"# {name}\n")
    shutil.copytree(ROOT / "tools", root / "tools")
    config = (ROOT / "zensical.toml").read_text()
    nav = 'nav = [{ A = "index.md" }, { B = "one.md" }, { C = "two.md" }, { D = "changelog.md" }]'
    (root / "zensical.toml").write_text(re.sub(r"^nav = \[.*?^\]", nav, config, flags=re.DOTALL | re.MULTILINE))
