import pytest

from sanderling.pages.content import readable
from sanderling.pages.markup import parse

LONG = "Words that stand for an article of some length, with a beginning and an end. " * 5


def text(html: str) -> str:
    return " ".join("".join(event for event in readable(parse(html)) if isinstance(event, str)).split())


@pytest.mark.parametrize(
    "part",
    [
        "<main>{}</main>",
        "<article>{}</article>",
        "<div role=main>{}</div>",
        "<div class='x content y'>{}</div>",
        "<section id=content>{}</section>",
        "<table><tr><td class=Entry-Content>{}</td></tr></table>",
    ],
)
def test_the_part_that_says_it_is_the_main_one_is_taken(part: str) -> None:
    page = f"<div>before</div>{part.format('inside ' + LONG)}<div>after</div>"

    assert text(page) == f"inside {LONG}".strip()


def test_of_several_the_longest_is_taken() -> None:
    assert text(f"<main>short</main><main>{LONG}</main>") == LONG.strip()


def test_a_page_of_many_articles_is_not_about_its_longest() -> None:
    page = "".join(f"<article>article {number} is one of many</article>" for number in range(9))

    assert text(page).count("one of many") == 9


def test_a_main_part_with_next_to_nothing_is_not_believed() -> None:
    assert LONG.strip() in text(f"<main>Loading</main><div>{LONG}</div>")


FURNITURE = [
    "<nav>x</nav>",
    "<header>x</header>",
    "<footer>x</footer>",
    "<aside>x</aside>",
    "<div role=navigation>x</div>",
    "<button>x</button>",
    "<select><option>x</select>",
    "<noscript>x</noscript>",
    "<template>x</template>",
    "<svg><text>x</text></svg>",
    "<p hidden>x</p>",
    "<p aria-hidden=true>x</p>",
    "<p style='color: red; display : NONE'>x</p>",
    "<p style=visibility:hidden>x</p>",
]


@pytest.mark.parametrize("furniture", FURNITURE)
def test_furniture_is_left_out(furniture: str) -> None:
    assert text(f"a {furniture} b") == "a b"


@pytest.mark.parametrize(
    "shown", ["<p aria-hidden=false>x</p>", "<p class=hidden-xs>x</p>", "<p style=display:flex>x</p>"]
)
def test_what_only_sounds_hidden_is_shown(shown: str) -> None:
    assert text(f"a {shown} b") == "a x b"


@pytest.mark.parametrize(
    "page",
    [
        "<noscript><p>{}</noscript>",  # of forums that need scripts
        "<body style=visibility:hidden><p>{}",  # until a script shows it
        "<p>Loading<div hidden id=S:0>{}</div>",  # sent late by React
        "<ul><li><button>Menu</li></ul><p>{}",  # never closed
    ],
)
def test_most_of_a_page_is_not_hidden(page: str) -> None:
    assert LONG.strip() in text(page.format(LONG))


SECTION = "<div><h2>What we do</h2><p>A paragraph about one of the many things that are done here, and well.</div>"


def test_what_stands_in_many_parts_is_the_whole_page() -> None:
    page = f"<nav>menu</nav><div>{SECTION}</div><section>{SECTION}</section><div><div>{SECTION}</div></div>" * 4

    assert text(page).count("A paragraph") == 12
    assert "menu" not in text(page)


def test_the_whole_page_goes_without_boxes_of_links() -> None:
    page = f"<div><p>{LONG * 2}</div>" + "<div><h3>Another</h3>in a few words</div>" * 60 + LINKS

    assert text(page).count("Another") == 60
    assert "elsewhere" not in text(page)


def test_an_article_among_others_is_all_there_is_to_read_if_its_page_says_so() -> None:
    page = f"<div><p>{LONG * 2}</div>" + "<div><h3>Another</h3>in a few words</div>" * 60

    assert "Another" in text(page)
    assert text(f"<meta property=og:type content=article>{page}") == (LONG * 2).strip()


@pytest.mark.parametrize(("name", "is_text"), [("widget", True), ("comment", False)])
def test_what_most_of_a_page_is_called_is_no_furniture(name: str, *, is_text: bool) -> None:
    page = f"<div><p>{LONG * 2}</div>" + f"<div class={name}><p>Furniture, in a few words of its own.</div>" * 40

    assert ("Furniture" in text(page)) == is_text


@pytest.mark.parametrize("name", ["post-author", "authorBio", "related", "tags"])
def test_small_parts_are_furniture_by_a_word_of_their_name(name: str) -> None:
    assert text(f"<div><p>{LONG}</p><div class='post {name}'>Short.</div></div>") == LONG.strip()


def test_the_header_of_an_article_belongs_to_it() -> None:
    assert text(f"<header>site</header><article><header>title </header>{LONG}</article>") == f"title {LONG}".strip()


@pytest.mark.parametrize(
    "page", ["<nav>x</nav>", "<footer><p>x</footer>", "<main></main><header>x</header>", "<noscript>x</noscript>"]
)
def test_a_page_with_text_is_never_empty(page: str) -> None:
    assert text(page) == "x"


SITE = "<header><nav><ul>" + "<li><a href=/n>A link of the site</a>" * 9 + "</ul></nav></header>"
FOOT = "<footer><p>Copyright by someone, who has all the rights and says so</footer>"


@pytest.mark.parametrize("part", ["<main>{}</main>", "<article>{}</article>", "<div role=main>{}</div>"])
@pytest.mark.parametrize(
    "content",
    [
        "<h1>Contents</h1><ol>" + "<li><a href=/c>A chapter</a>" * 9 + "</ol>",
        "<h1>Gallery</h1>" + "<figure><img src=/g.jpg alt=picture></figure>" * 6,
        "<h1>Sign up</h1>",
        "<h1>Contact</h1><p>Tel: 030 123",
    ],
)
def test_edges_of_a_page_never_win_over_its_main_part(part: str, content: str) -> None:
    assert text(SITE + part.format(content) + FOOT) == text(content)


@pytest.mark.parametrize("edge", ["<nav>{}</nav>", "<div role=navigation>{}</div>", "<footer>{}</footer>"])
def test_an_edge_beside_the_main_part_may_be_most_of_a_page(edge: str) -> None:
    assert text(f"<main><p>In a word.</main>{edge.format(LONG)}") == "In a word."


def test_a_note_in_an_article_belongs_to_it() -> None:
    page = f"<article><p>{LONG}</p><aside><p>Note this.</p>{{}}</aside><p>{LONG}</p></article>"

    assert "Note this." in text(page.format(""))
    assert "Note this." not in text(page.format("<a href=/x>More</a>"))


@pytest.mark.parametrize(("before", "is_text"), [("See:", True), ("See\uff1a", True), ("Read more", False)])
def test_a_list_of_links_belongs_to_the_text_that_announces_it(before: str, *, is_text: bool) -> None:
    page = f"<div><p>{LONG}</p><p>{before} </p>\n<ul>{'<li><a href=/x>elsewhere</a>' * 5}</ul></div>"

    assert ("elsewhere" in text(page)) == is_text


LINKS = "<div><ul>" + "<li><a href=/x>a link to elsewhere</a>" * 5 + "</ul></div>"


def test_lists_of_links_are_left_out() -> None:
    assert text(f"<div>{LONG}</div>{LINKS}") == LONG.strip()


def test_a_page_of_links_is_a_list_of_links() -> None:
    assert text(f"<p>Contents</p>{LINKS}").count("elsewhere") == 5


def test_a_text_with_links_is_a_text() -> None:
    page = f"<div>{LONG}<a href=/x>one</a> <a href=/y>two</a> <a href=/z>three</a></div>"

    assert text(page).endswith("one two three")


HOSTILE = {
    "contents": "<div class=content>x" * 40_000,
    "articles": "<article>x</article>" * 40_000,
    "hidden": "<p>x" + "<div hidden>y</div>" * 40_000,
    "furniture": "<p>x" + "<div class=widget>y</div>" * 40_000,
    "lists of links": "<div><a>x</a><a>y</a><a>z</a></div>" * 10_000,
}


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_pages_take_no_longer_than_others(html: str) -> None:
    assert "x" in text(html)
