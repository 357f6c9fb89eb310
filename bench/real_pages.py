"""Pages of the size and the make of those of the web, from a seed: 10 to 200 KB, much of it scripts, styles and names.

The mix of tags is about that of front pages: most are div, then a, span, li, img; script, p and svg follow. More than
half of the bytes are neither text nor links.
"""

import json
from random import Random

SMALLEST, LARGEST = 10_000, 200_000  # bytes
POOL = 40  # different pages; what tells one address from another is its links
INLINE = {"a": 14, "span": 11, "i": 3, "strong": 2, "em": 1, "img": 4, "svg": 2, "button": 1, "input": 1}
BLOCKS = {"div": 70, "li": 7, "p": 7, "h3": 2, "section": 2, "td": 1, "option": 1, "figure": 1, "script": 6}
_WORDS = (
    "tide leaves line foam shells along beach small birds run after each wave see what brought they are gone before"
    " next breaks back drained away where water meets sand grey light morning wind from north over dunes grass boats"
)
WORDS = _WORDS.split()


def text(random: Random, words: int) -> str:
    """So many words of prose."""
    return " ".join(random.choices(WORDS, k=words)).capitalize()


def name(random: Random) -> str:
    """Attributes as frameworks write them."""
    classes = " ".join(f"{random.choice(WORDS)}-{random.choice(WORDS)}__{random.randrange(99)}" for _ in range(3))
    return f'class="{classes}" data-testid="{random.choice(WORDS)}-{random.randrange(9999)}"'


def inline(random: Random) -> str:
    """One element within a line."""
    (tag,) = random.choices(tuple(INLINE), tuple(INLINE.values()))
    match tag:
        case "a":
            where = f"https://{random.choice(WORDS)}.example/{random.choice(WORDS)}/{random.randrange(10**6)}?ref=home"
            return f'<a {name(random)} href="{where}">{text(random, 4)}</a>'
        case "img":
            return (
                f'<img src="/media/{random.randrange(10**9)}.webp" alt="{text(random, 3)}" loading="lazy" width="320">'
            )
        case "svg":
            path = " ".join(f"{random.uniform(0, 24):.3f}" for _ in range(40))
            return f'<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M{path}z"/></svg>'
        case "input":
            return f'<input type="hidden" name="{random.choice(WORDS)}" value="{random.randrange(10**12)}">'
    return f"<{tag} {name(random)}>{text(random, 3)}</{tag}>"


def block(random: Random, depth: int = 0) -> str:
    """One element that holds others."""
    (tag,) = random.choices(tuple(BLOCKS), tuple(BLOCKS.values()))
    match tag:
        case "script":
            state = {random.choice(WORDS): [random.randrange(10**6), text(random, 6)] for _ in range(12)}
            return f"<script>window.__STATE__=Object.assign(window.__STATE__||{{}},{json.dumps(state)});</script>"
        case "p":
            return f"<p>{text(random, 40)}, {inline(random)} {text(random, 30)}. {text(random, 12)}.</p>"
        case "td":
            cells = "".join(f"<td>{text(random, 2)}</td>" for _ in range(4))
            return f"<table><tbody><tr>{cells}</tr><tr>{cells}</tr></tbody></table>"
        case "option":
            return "<select>" + "".join(f'<option value="{n}">{text(random, 1)}' for n in range(4)) + "</select>"
        case "li":
            return "<ul>" + "".join(f"<li {name(random)}>{inline(random)}</li>" for _ in range(3)) + "</ul>"
    within = inline(random)
    deeper = "".join(block(random, depth + 1) for _ in range(2)) if depth < 6 else text(random, 8)
    return f"<{tag} {name(random)}>{within}{deeper}</{tag}>"


def body(seed: int) -> bytes:
    """The part of a page that many addresses share: head, banner, content, footer."""
    random = Random(seed)
    size = SMALLEST * (LARGEST / SMALLEST) ** ((seed % POOL + 0.5) / POOL)  # as many of each order of magnitude
    styles = "".join(f".{random.choice(WORDS)}-{n}{{margin:{n}px;color:#{n * 4096:06x}}}" for n in range(80))
    parts = [f"<style>{styles}</style><main><h1>{text(random, 6)}</h1>"]
    length = len(parts[0])
    while length < size:
        parts.append(block(random))
        length += len(parts[-1])
    return "\n".join([*parts, f"</main><footer>{text(random, 30)}</footer></body></html>"]).encode()[: LARGEST * 2]


def pool() -> list[bytes]:
    """All of them."""
    return [body(seed) for seed in range(POOL)]
