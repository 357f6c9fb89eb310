"""How many pages a second can be read, and how that compares with markdownify, which only converts, and trafilatura.

All read the same pages in turns, in one process; no two pages are alike, so nothing is won by remembering one. Ours
also decodes, finds the main text, the links, the metadata and the language. Pages called real are of 10 to 200 KB with
the mix of the web: a third of the bytes in scripts and styles, menus and teasers around the text, an element for each
130 bytes or so, long classes. trafilatura, which finds the main text too, is measured if it is installed.
"""

import importlib
import time
from collections.abc import Callable
from contextlib import suppress
from random import Random
from statistics import median

from harness import Report, at_least, at_most

from sanderling.pages.extract import extract

# Many short turns, so that some are not disturbed by what else the machine does.
ROUNDS = 60
SMALL, LARGE = 8, 1
URL = "https://e.example/folder/page?x=y"


def small_page(number: int) -> bytes:
    """A page of 1.5 KB: a heading, three paragraphs, ten links."""
    menu = "".join(f'<li><a href="/menu/{number}/{each}" class="item">Entry {each}</a></li>' for each in range(6))
    text = "".join(
        f"<p>Paragraph {each} of page {number} has some <em>stressed</em> words and "
        f"<a href='/{number}/{each}?a=1&amp;b=2'>a link in the middle</a>, "
        "and goes on for a while as paragraphs do; then it comes to its end.</p>"
        for each in range(3)
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page {number}</title>'
        f'<meta name="description" content="This is page {number}"><link rel="canonical" href="/page/{number}"></head>'
        f"<body><nav><ul>{menu}</ul></nav><main><h1>Page {number}</h1>{text}</main>"
        f'<footer><p>The end of page {number}, <a href="/terms">terms</a></p></footer></body></html>'
    ).encode()


def large_page(number: int) -> bytes:
    """An article of 100 KB: some 4,400 tags, lists, a table, code and a script."""
    sentence = (
        'Some words that go on for a while, <strong>strong ones</strong> too, and <a href="/wiki/{}" title="Entry">'
        "a link</a>, then <em>more</em> &amp; more of them until the full stop. "
    )
    parts = []
    for each in range(16):
        words = "".join(sentence.format(f"{number}-{each}-{link}") for link in range(4))
        parts.append(f'<h2 id="s{each}">Section {each}</h2>' + f'<p class="text body">{words}</p>\n' * 8)
        parts.append("<ul>" + "<li>An item of a list</li>" * 6 + "</ul><pre><code>x = 1\ny = 2</code></pre>")
        parts.append("<table>" + "<tr><td>cell</td><td>12.5</td><td>x</td></tr>" * 5 + "</table>")
    script = "<script>" + "for (var i = 0; i < 9; i++) { f('<p>'); } " * 100 + "</script>"
    return f"<html><head><title>{number}</title>{script}</head><body><article>{''.join(parts)}</article>".encode()


WORDS: tuple[str, ...] = (
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "you",
    "that",
    "was",
    "for",
    "are",
    "with",
    "they",
    "have",
    "from",
)
WORDS += ("had", "word", "not", "what", "were", "when", "your", "said", "there", "each", "which", "their", "other")
REAL = {10: None, 30: 0.5, 100: 1.3, 200: None}  # kilobytes, and the milliseconds that they may take


def real_page(number: int, kilobytes: int) -> bytes:
    """A page with the mix of the web, always the same for one number and size."""
    rng = Random(1000 * number + kilobytes)

    def words(least: int, most: int) -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(least, most))).capitalize()

    def classes() -> str:
        return " ".join(
            f"{rng.choice(WORDS)}-{rng.choice(WORDS)}__{rng.randrange(99)}" for _ in range(rng.randint(1, 3))
        )

    def link() -> str:
        return f'<a class="{classes()}" href="/{rng.choice(WORDS)}/{rng.randrange(10**6)}">{words(1, 6)}</a>'

    def teaser() -> str:
        source = f"https://cdn.example/{rng.randrange(10**9)}.jpg"
        image = f'<div><img class="{classes()}" src="{source}" alt="{words(2, 5)}" loading="lazy"></div>'
        kicker = f'<span class="{classes()}">{words(1, 3)}</span>'
        return f'<div class="{classes()}">{image}{kicker}<h3>{link()}</h3></div>'

    def paragraph() -> str:
        inner = ". ".join(words(8, 24) for _ in range(rng.randint(2, 6)))
        return f'<p class="{classes()}">{inner}, {link()} &amp; <em>{words(1, 3)}</em>. {words(6, 14)}.</p>'

    def script() -> str:
        return f"<script>window.q=window.q||[];q.push({{'a':'{words(20, 60)}','b':'<p>','n':{rng.random()}}})</script>"

    size = kilobytes * 1000
    head = [f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{words(4, 9)}</title>']
    head += [f'<meta property="og:{name}" content="{words(3, 12)}">' for name in ("title", "description", "site_name")]
    head += ["<style>", ".a-b{margin:0 auto;padding:4px}" * (size // 300), "</style>", "</head><body>"]
    body = ["<header><nav><ul>", *(f"<li>{link()}</li>" for _ in range(size // 4000 + 6)), "</ul></nav></header>"]
    body += [f'<main><article class="{classes()}"><h1>{words(4, 9)}</h1>']
    rest = [
        f'</article><aside class="{classes()}">',
        *(teaser() for _ in range(size // 5000)),
        "</aside></main><footer>",
    ]
    rest += [*(f"<div>{link()}</div>" for _ in range(size // 5000)), "</footer></body></html>"]
    used = sum(map(len, (*head, *body, *rest)))
    while used < size:
        part = rng.choices((paragraph, teaser, script), (6, 1, 3))[0]()
        body.append(part)
        used += len(part)
    return "".join((*head, *body, *rest)).encode()


def seconds(work: Callable[[bytes], object], pages: list[bytes]) -> float:
    """How long `work` takes for a page."""
    started = time.process_time()
    for page in pages:
        work(page)
    return (time.process_time() - started) / len(pages)


def ours(page: bytes) -> object:
    """Everything that is kept of a page."""
    return extract(page, content_type="text/html; charset=utf-8", url=URL)


def measure_real(report: Report) -> None:
    """Pages as the web has them, beside trafilatura."""
    theirs = None
    with suppress(ImportError):  # no part of our own tools
        theirs = importlib.import_module("trafilatura").extract
    for kilobytes, bar in REAL.items():
        pages = [real_page(number, kilobytes) for number in range(20)]
        milliseconds = min(seconds(ours, pages) for _ in range(10)) * 1e3
        report.figures[f"real_{kilobytes}_milliseconds"] = milliseconds
        if bar is not None:
            report.bars.append(at_most(f"real pages of {kilobytes} KB: milliseconds", bar, milliseconds))
        if theirs is not None:
            ratio = seconds(theirs, pages[:5]) * 1e3 / milliseconds
            report.figures[f"real_{kilobytes}_ratio"] = ratio
            report.bars.append(at_least(f"real pages of {kilobytes} KB: times as fast as trafilatura", 2, ratio))


def main() -> None:
    """Measure small, large and real pages."""
    markdownify = importlib.import_module("markdownify").markdownify
    report = Report("extract")
    for name, make, count in (("small", small_page, SMALL), ("large", large_page, LARGE)):
        times, ratios = [], []
        for turn in range(ROUNDS):
            pages = [make(turn * count + each) for each in range(count)]
            mine, theirs = seconds(ours, pages), seconds(lambda page: markdownify(page.decode()), pages)
            times.append(mine)
            ratios.append(theirs / mine)
        size = len(make(0))
        report.figures |= {f"{name}_bytes": size, f"{name}_microseconds": min(times) * 1e6}
        report.figures |= {f"{name}_megabytes_a_second": size / min(times) / 1e6, f"{name}_ratio": median(ratios)}
        report.bars.append(at_least(f"{name} pages: times as fast as markdownify", 4, median(ratios)))
    measure_real(report)
    print({name: round(value, 1) for name, value in report.figures.items()})
    report.finish()


if __name__ == "__main__":
    main()
