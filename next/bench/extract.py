"""How much of the main text is found, what of it Markdown keeps, and what each step costs.

The text is judged by Scrapinghub's own metric on the 181 pages of its article-extraction-benchmark, of which a copy is
needed: `--pages DIR`, or git clones it into ~/.cache/sanderling. The method was tuned on the pages whose key begins
with an even digit; the other half was only ever measured. Images, addresses and the backslashes of Markdown are no
words of the text, so they are taken out before.
"""

import argparse
import gzip
import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import mean

from bars import Bar, report
from real_pages import real_page
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.lang import detect_fast
from selectolax.lexbor import LexborHTMLParser

from sanderling.clock import cpu_seconds
from sanderling.extract.charset import decode
from sanderling.extract.content import main_content
from sanderling.extract.html import read_page
from sanderling.extract.markdown import to_markdown

CACHE = Path.home() / ".cache/sanderling/article-extraction-benchmark"
SOURCE = "https://github.com/scrapinghub/article-extraction-benchmark"
URL = "https://a.example/x/"
LIBRARY = 0.916  # F1 of resiliparse's own main text, as it is when nothing is set


def fast(html: bytes) -> str:
    return read_page(html, "text/html; charset=utf-8", URL).text or ""


def best(html: bytes) -> str:
    return read_page(html, "text/html; charset=utf-8", URL, text="best").text or ""


def by_resiliparse(html: bytes) -> str:
    return extract_plain_text(html.decode(errors="replace"), main_content=True, comments=False, post_meta=False)


def by_html_to_markdown(html: bytes) -> str:
    main = extract_plain_text(
        html.decode(), preserve_formatting="minimal_html", main_content=True, comments=False, links=True
    )
    return str(import_module("html_to_markdown").convert(main).content)


# Scrapinghub's metric: precision and recall of shingles of four words, each page weighing the same.


def shingles(text: str) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return Counter(tuple(words[at : at + 4]) for at in range(max(1, len(words) - 3)) if words)


def f1(pairs: list[tuple[str, str]]) -> float:
    precisions, recalls = [], []
    for expected, found in pairs:
        true, said = shingles(expected), shingles(found)
        both = (true & said).total()
        if said:
            precisions.append(both / said.total())
        if true:
            recalls.append(both / true.total())
    return 2 * mean(precisions) * mean(recalls) / (mean(precisions) + mean(recalls))


def plain(markdown: str) -> str:
    text = re.sub(r"!\[[^\]]*\]\([^)\s]*\)", "", markdown)
    return re.sub(r"\\(?=[^\w\s])", "", re.sub(r"\]\([^)\s]*\)", "]", text))


def quality(pages: Path) -> list[Bar]:
    if not pages.exists():
        subprocess.run(["git", "clone", "--depth", "1", SOURCE, pages], check=False)
    truth = pages / "ground-truth.json"
    if not truth.exists():
        print(f"text not judged: {truth} does not exist, and {SOURCE} could not be cloned")
        return []
    expected = {key: each["articleBody"] for key, each in json.loads(truth.read_text()).items()}
    html = {key: gzip.decompress((pages / f"html/{key}.html.gz").read_bytes()) for key in expected}
    bars = []
    for name, find, need in (
        ("--text fast", fast, LIBRARY),
        ("--text best", best, None),
        ("resiliparse", by_resiliparse, None),
    ):
        if find is best and find_spec("trafilatura") is None:
            continue
        found = {key: (expected[key], plain(find(html[key]))) for key in expected}
        unseen = [pair for key, pair in found.items() if key[0] not in "02468ace"]
        bars += [
            Bar(f"F1 of {name}, {len(found)} pages", f1(list(found.values())), need, least=True),
            Bar(f"F1 of {name}, the {len(unseen)} nobody tuned by", f1(unseen), need, least=True),
        ]
    return bars


MARKS: dict[str, Callable[[str], int]] = {
    "links": lambda text: len(re.findall(r"\]\(https?:|\]\(/", text)),
    "emphasis": lambda text: len(re.findall(r"\*\*?[ab]\*\*?", text)),
    "code": lambda text: text.count("`") // 2,
    "items": lambda text: len(re.findall(r"(?m)^ *[-*•] ", text)),
    "cells": lambda text: sum(
        line.count("|") - 1 for line in text.splitlines() if line.startswith("|") and "---" not in line
    ),
    "headings": lambda text: len(re.findall(r"(?m)^#+ ", text)),
}


def content_kept() -> list[Bar]:
    """Shares of the words and of the marks of 30 pages that are still there."""
    pages = [real_page(number, 30_000) for number in range(30)]
    bars = []
    tools = {"ours": fast}
    if find_spec("html_to_markdown"):
        tools["resiliparse's minimal_html with html-to-markdown"] = by_html_to_markdown
    for name, find in tools.items():
        texts = [find(page.html) for page in pages]
        words = mean(
            (Counter(page.words) & Counter(re.findall(r"\w+", plain(text)))).total() / len(page.words)
            for page, text in zip(pages, texts, strict=True)
        )
        bars.append(Bar(f"words kept by {name}", words, 0.99 if find is fast else None, least=True))
        for mark, count in MARKS.items():
            share = sum(map(count, texts)) / sum(page.kept[mark] for page in pages)
            bars.append(Bar(f"{mark} kept by {name}", share, 0.99 if find is fast else None, least=True))
    return bars


Step = Callable[[int], object]


def steps(pages: list[bytes]) -> dict[str, Step]:
    texts = [page.decode() for page in pages]
    trees = [LexborHTMLParser(text) for text in texts]
    others = [document for text in texts if (document := HTMLTree.parse(text).document) is not None]
    bodies = [tree.body for tree in trees if tree.body is not None]
    contents = [list(main_content(body, is_article=True)) for body in bodies]
    prose = [fast(page)[:2000] for page in pages]
    return {
        "decode": lambda at: decode(pages[at], None),
        "decode (resiliparse)": lambda at: bytes_to_str(pages[at], detect_encoding(pages[at]) or "utf-8"),
        "parse (selectolax)": lambda at: LexborHTMLParser(texts[at]),
        "parse (resiliparse)": lambda at: HTMLTree.parse(texts[at]),
        "hrefs (selectolax)": lambda at: [node.attributes.get("href") for node in trees[at].css("a[href]")],
        "hrefs (resiliparse)": lambda at: [
            node.getattr("href") for node in others[at].query_selector_all("a[href]").values()
        ],
        "language": lambda at: detect_fast(prose[at]),
        "main text (resiliparse, plain)": lambda at: extract_plain_text(texts[at], main_content=True),
        "main content": lambda at: list(main_content(bodies[at], is_article=True)),
        "Markdown": lambda at: to_markdown(contents[at], lambda href: href),
        "all, --text none": lambda at: read_page(pages[at], None, URL, text="none"),
        "all, --text fast": lambda at: read_page(pages[at], None, URL),
        "all, --text best": lambda at: best(pages[at]),
    }


def costs(rounds: int) -> list[Bar]:
    """CPU of each step, the least of some rounds."""
    bars = []
    for size in (1_000, 30_000, 100_000):
        pages = [real_page(number, size).html for number in range(10)]
        for name, step in steps(pages).items():
            if "best" in name and not find_spec("trafilatura"):
                continue
            seen = []
            for _ in range(1 if "best" in name else rounds):
                before = cpu_seconds()
                for at in range(len(pages)):
                    step(at)
                seen.append((cpu_seconds() - before) / len(pages) * 1e3)
            bars.append(Bar(f"ms of {name}, {size // 1000} KB", min(seen)))
    return bars


def hostile(size: int = 1 << 18) -> list[Bar]:
    """ms of both parsers for 256 KB of what is slow to read; the deadline of a reader bounds all of them."""
    bars = []
    for name, page in {
        "nested divs": "<div>" * (size // 5),
        "attributes of one tag": "<p " + " ".join(f"a{number:x}=" for number in range(size // 7)) + ">",
        "closing tags": "<p>" + "</x>" * (size // 4),
        "open formatting": "".join(f"<b id={number}>" for number in range(2000)) + "<p>x" * 2000,
        "nested tables": "<table><td>" * (size // 11),
        "cells": "<table>" + "<tr><td>x" * (size // 9),
    }.items():
        parsers: dict[str, Callable[[str], object]] = {
            "selectolax": LexborHTMLParser,
            "resiliparse": HTMLTree.parse,
            "all": lambda html: fast(html.encode()),
        }
        for parser, parse in parsers.items():
            before = cpu_seconds()
            parse(page)
            bars.append(Bar(f"ms of {name}, {parser}", (cpu_seconds() - before) * 1e3))
    return bars


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pages", type=Path, default=CACHE)
    options = parser.parse_args()
    bars = quality(options.pages) + content_kept() + costs(2 if options.quick else 10)
    return report(bars if options.quick else bars + hostile())


if __name__ == "__main__":
    raise SystemExit(main())
