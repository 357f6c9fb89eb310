"""How many pages a second can be read, and how that compares with markdownify, which only converts.

Both read the same pages in turns, in one process; no two pages are alike, so nothing is won by remembering one. Ours
also decodes, finds the main text, the links, the metadata and the language.
"""

import importlib
import time
from collections.abc import Callable
from statistics import median

from harness import Report, at_least

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


def seconds(work: Callable[[bytes], object], pages: list[bytes]) -> float:
    """How long `work` takes for a page."""
    started = time.process_time()
    for page in pages:
        work(page)
    return (time.process_time() - started) / len(pages)


def ours(page: bytes) -> object:
    """Everything that is kept of a page."""
    return extract(page, content_type="text/html; charset=utf-8", url=URL)


def main() -> None:
    """Measure small and large pages."""
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
    print({name: round(value, 1) for name, value in report.figures.items()})
    report.finish()


if __name__ == "__main__":
    main()
