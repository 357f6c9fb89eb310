"""What a page is made of comes back from its Markdown: a document drawn at random, through the reader, to a parser."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from sanderling.pages import reader, reader_python

PARSER = MarkdownIt("commonmark").enable("table")
READERS = {"python": reader_python.read, reader.ACTIVE: reader.read}
PROSE = "Words that stand for an article of some length, with a beginning, a middle and an end to it. " * 4
PAGE = (
    "<!doctype html><html><head><title>Page</title></head><body><header><nav><ul><li><a href=/a>Home</a>"
    "<li><a href=/b>News</a></ul></nav></header><main><article><p>{prose}</p>{inside}<p>{prose}</p></article></main>"
    "<aside><p>Other pages</aside><footer><p>The end</footer></body></html>"
)

# A node is its kind, what is said of it, and what is inside: nodes, or the text of a leaf.
Node = tuple[str, str, "tuple[Node, ...] | str"]


def leaf(kind: str, text: str, said: str = "") -> Node:
    return kind, said, text


WORD = st.text(st.sampled_from("abcdefgh"), min_size=1, max_size=8)
TEXT = WORD.map(lambda word: leaf("text", word))
LINK = st.builds(lambda word, path: ("link", f"https://e.example/{path}", (leaf("text", word),)), WORD, WORD)
IMAGE = st.builds(lambda alt, path: leaf("image", alt, f"https://e.example/{path}.png"), WORD, WORD)
BREAK = st.just(leaf("hardbreak", ""))
CODE = WORD.map(lambda word: leaf("code_inline", word))
MARKED = st.builds(lambda kind, text: (kind, "", (text,)), st.sampled_from(["strong", "em"]), TEXT)
PIECES = st.lists(TEXT | LINK | IMAGE | CODE | MARKED | BREAK, max_size=4)


def line(pieces: list[Node]) -> tuple[Node, ...]:
    """Pieces with words around each, so that no two run together and no break is at an edge."""
    return (leaf("text", "first"), *(part for piece in pieces for part in (piece, leaf("text", "between"))))


PARAGRAPH: st.SearchStrategy[Node] = PIECES.map(lambda pieces: ("paragraph", "", line(pieces)))
HEADING = st.builds(lambda level, text: ("heading", f"h{level}", (text,)), st.integers(1, 6), TEXT)
FENCE = st.builds(
    lambda language, lines: leaf("fence", "\n".join(lines), language),
    st.sampled_from(["", "python", "c++"]),
    st.lists(st.sampled_from(["x = 1", "  indented", "<b> & *", "# no heading", "```"]), min_size=1, max_size=4),
)
ROW = st.lists(TEXT, min_size=2, max_size=2).map(lambda cells: ("tr", "", tuple(("cell", "", (c,)) for c in cells)))
TABLE = st.lists(ROW, min_size=2, max_size=4).map(lambda rows: ("table", "", tuple(rows)))


def lists(inside: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    item = st.builds(
        lambda text, more: ("list_item", "", (("paragraph", "", (text,)), *more)), TEXT, st.lists(inside, max_size=1)
    )
    kinds = st.just(("bullet_list", "")) | st.integers(0, 120).map(lambda start: ("ordered_list", str(start)))
    return st.builds(lambda kind, items: (*kind, tuple(items)), kinds, st.lists(item, min_size=1, max_size=3))


LIST = st.recursive(lists(FENCE), lists, max_leaves=3)


def apart(blocks: list[Node]) -> tuple[Node, ...]:
    """Blocks with a paragraph before each: two lists in a row are one to Markdown."""
    return tuple(part for block in blocks for part in (("paragraph", "", (leaf("text", "before"),)), block))


QUOTE = st.lists(PARAGRAPH | LIST | FENCE, min_size=1, max_size=2).map(lambda inside: ("blockquote", "", apart(inside)))
DOCUMENT = st.lists(PARAGRAPH | HEADING | FENCE | TABLE | LIST | QUOTE, max_size=4).map(apart)
TAGS = {"paragraph": "p", "bullet_list": "ul", "list_item": "li", "cell": "td", "strong": "b"}


def to_html(node: Node) -> str:
    kind, said, inside = node
    if isinstance(inside, str):
        return leaf_to_html(kind, said, inside)
    words = (" " if kind in ("paragraph", "link") else "").join(map(to_html, inside))
    match kind:
        case "link":
            return f'<a href="{said}">{words}</a>'
        case "heading":
            return f"<{said}>{words}</{said}>"
        case "ordered_list":
            return f"<ol start={said}>{words}</ol>"
    tag = TAGS.get(kind, kind)
    return f"<{tag}>{words}</{tag}>"


def leaf_to_html(kind: str, said: str, text: str) -> str:
    match kind:
        case "image":
            return f'<img src="data:image/gif;base64,x" data-src="{said}" alt="{text}">'
        case "hardbreak":
            return "<br>"
        case "code_inline":
            return f"<code>{text}</code>"
        case "fence":
            code = text.replace("&", "&amp;").replace("<", "&lt;")
            return f'<pre><code class="language-{said}">{code}</code></pre>' if said else f"<pre>{code}</pre>"
    return text


def from_markdown(node: SyntaxTreeNode) -> list[Node]:
    """What a parser sees, in our terms; the lines of a block are its pieces."""
    inside = tuple(part for child in node.children for part in from_markdown(child))
    match node.type:
        case "root" | "inline" | "thead" | "tbody":
            return list(inside)
        case "text":
            return [leaf("text", word) for word in node.content.split()]
        case "image":
            return [leaf("image", str(node.content), str(node.attrs["src"]))]
        case "fence" | "code_inline" | "hardbreak":
            return [leaf(node.type, node.content.removesuffix("\n"), node.info)]
    kind = "cell" if node.type in ("td", "th") else node.type
    said = {"link": node.attrs.get("href"), "ordered_list": node.attrs.get("start", 1), "heading": node.tag}
    return [(kind, str(said.get(kind, "")), inside)]


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
@given(document=DOCUMENT)
def test_what_a_page_is_made_of_comes_back(read: Callable[..., tuple[str, ...]], document: tuple[Node, ...]) -> None:
    page = PAGE.format(prose=PROSE, inside="".join(map(to_html, document)))

    text = read(page, lambda _: lambda href: href if href.startswith("https:") else None)[0]

    prose = ("paragraph", "", tuple(leaf("text", word) for word in PROSE.split()))
    assert from_markdown(SyntaxTreeNode(PARSER.parse(text))) == [prose, *document, prose]
