"""Pages with the mix of the web, always the same for one number and size; what is in their main part is known."""

import re
from dataclasses import dataclass
from random import Random

WORDS = (
    "the of and to in is you that was for with they have from had word not what were when your said there each which"
    " their other tide line foam shells beach birds wave sand light morning wind dunes grass boats"
).split()


@dataclass(frozen=True, slots=True)
class RealPage:
    """A page, and what its main part holds."""

    html: bytes
    words: list[str]
    kept: dict[str, int]  # how many links, strong words, …


def real_page(number: int, size: int) -> RealPage:
    """A page of about `size` bytes: a third in scripts and styles, menus and teasers around the text, long classes."""
    random = Random(1000 * number + size)
    kept = dict.fromkeys(("links", "emphasis", "code", "items", "cells", "headings"), 0)

    def words(least: int, most: int) -> str:
        return " ".join(random.choices(WORDS, k=random.randint(least, most))).capitalize()

    def classes() -> str:
        return " ".join(f"{random.choice(WORDS)}-{random.choice(WORDS)}__{random.randrange(99)}" for _ in range(2))

    def link() -> str:
        return f'<a class="{classes()}" href="/{random.choice(WORDS)}/{random.randrange(10**6)}">{words(1, 6)}</a>'

    def teaser() -> str:
        image = f'<img class="{classes()}" src="/{random.randrange(10**9)}.jpg" loading="lazy">'
        return f'<div class="{classes()}"><div>{image}</div><h3>{link()}</h3></div>'

    def part() -> str:
        match random.choices(range(6), (12, 1, 1, 1, 1, 5))[0]:
            case 0:
                kept["links"] += 1
                kept["emphasis"] += 2
                text = ". ".join(words(8, 24) for _ in range(random.randint(2, 6)))
                marked = f"{link()} &amp; <em>a</em> or <strong>b</strong>"
                return f'<p class="{classes()}">{text}, {marked}. {words(6, 14)}.</p>'
            case 1:
                kept["headings"] += 1
                return f"<h2>{words(2, 6)}</h2>"
            case 2:
                kept["items"] += 4
                return "<ul>" + "".join(f"<li>{words(6, 12)}.</li>" for _ in range(4)) + "</ul>"
            case 3:
                kept["cells"] += 12
                row = "<tr>" + "".join(f"<td>{words(1, 2)}</td>" for _ in range(4)) + "</tr>"
                return f"<table>{row * 3}</table>"
            case 4:
                kept["code"] += 1
                return f"<p>{words(9, 20)}, <code>x_{random.randrange(99)}</code>, {words(9, 20)}.</p>"
        return (
            f"<script>window.q=window.q||[];q.push({{'a':'{words(20, 60)}','b':'<p>','n':{random.random()}}})</script>"
        )

    menu = "".join(f"<li>{link()}</li>" for _ in range(size // 4000 + 4))
    styles = ".a-b{margin:0 auto;padding:4px}" * (size // 300)
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{words(4, 9)}</title>'
    head += "".join(f'<meta property="og:{each}" content="{words(3, 12)}">' for each in ("title", "description"))
    head += f"<style>{styles}</style></head><body><header><nav><ul>{menu}</ul></nav></header>"
    kept["headings"] += 1
    body = f"<h1>{words(4, 9)}</h1>"
    teasers = "".join(teaser() for _ in range(size // 5000))
    foot = f"</article><aside>{teasers}</aside></main><footer>{words(5, 9)}</footer></body></html>"
    while len(head) + len(body) + len(foot) < size:
        body += part()
    text = re.sub(r"<[^>]*>", " ", re.sub(r"<script>.*?</script>", " ", body)).replace("&amp;", "&")
    html = f'{head}<main><article class="{classes()}">{body}{foot}'
    return RealPage(html.encode(), re.findall(r"\w+", text), kept)
