import pytest

from sanderling.pages.urls import LONGEST, LONGEST_INPUT, UrlError, normalise, trap


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("https://example.org", "https://example.org/"),
        ("HTTPS://Example.ORG./A", "https://example.org/A"),
        ("http://example.org:80/", "http://example.org/"),
        ("https://example.org:443", "https://example.org/"),
        ("http://example.org:443/", "http://example.org:443/"),
        ("https://example.org:08443/", "https://example.org:8443/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("http://[0:0::1]:80/x", "http://[::1]/x"),
        ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x"),
    ],
)
def test_scheme_and_host_have_one_spelling(given: str, normal: str) -> None:
    assert normalise(given) == normal


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("/%7euser/%41%2d", "/~user/A-"),
        ("/a%2fb%3f%23", "/a%2Fb%3F%23"),
        ("/köln straße", "/k%C3%B6ln%20stra%C3%9Fe"),
        ("/k%c3%b6ln", "/k%C3%B6ln"),
        ("/100%", "/100%25"),
        ("/%zz%2", "/%25zz%252"),
        ("/%%34%31", "/%2541"),
        ('/"<>^`{|}[]', "/%22%3C%3E%5E%60%7B%7C%7D%5B%5D"),
        ("/!$&'()*+,=:@;-._~", "/!$&'()*+,=:@;-._~"),
        ("/%21%24%26", "/%21%24%26"),
        ("/\x00\x7f\x80", "/%00%7F%C2%80"),
        ("/\ud800", "/%EF%BF%BD"),
        ("/x?ü=ä b&c=%c3%A4", "/x?%C3%BC=%C3%A4%20b&c=%C3%A4"),
        ("/x?a[]=1&b=/?:@", "/x?a%5B%5D=1&b=/?:@"),
        ("/x?a+b", "/x?a+b"),
    ],
)
def test_escapes_have_one_spelling(given: str, normal: str) -> None:
    assert normalise(f"https://a.test{given}") == f"https://a.test{normal}"


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/a/b/..", "/a/"),
        ("/a/b/.", "/a/b/"),
        ("/../../x", "/x"),
        ("/..", "/"),
        ("/%2e%2E/x/%2e", "/x/"),
        ("/a//../b", "/a/b"),
        ("//a", "//a"),
        ("/a/..//b", "//b"),
        ("/.well-known/..a/...", "/.well-known/..a/..."),
        ("/a\\..\\b", "/b"),
    ],
)
def test_dot_segments_are_walked(given: str, normal: str) -> None:
    assert normalise(f"https://a.test{given}") == f"https://a.test{normal}"


@pytest.mark.parametrize("ends", ["", " ", "\n", "\x00", "\x1f \t"])
def test_space_at_the_ends_and_breaks_inside_go(ends: str) -> None:
    assert normalise(f"{ends}ht\ntps://a.te\tst/x\r\ny{ends}") == "https://a.test/xy"


def test_a_backslash_is_a_slash_before_the_query_and_itself_in_it() -> None:
    assert normalise("https:\\\\a.test\\x?y\\z") == "https://a.test/x?y%5Cz"


@pytest.mark.parametrize("fragment", ["#", "#x", "#!/x", "#?x", "#a#b"])
def test_fragments_are_dropped(fragment: str) -> None:
    assert normalise(f"https://a.test/x?y{fragment}") == "https://a.test/x?y"


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("?", ""),
        ("?utm_source=x", ""),
        ("?a=1&utm_medium=x&b=2", "?a=1&b=2"),
        ("?UTM_X&a", "?a"),
        ("?%75tm_source=x&a", "?a"),
        ("?fbclid=1&gclid=2&msclkid=3&PHPSESSID=4&JSESSIONID=5&z=6", "?z=6"),
        ("?gclid&a", "?a"),
        ("?gclids=1&mygclid=2&utm=3&autm_x=4", "?gclids=1&mygclid=2&utm=3&autm_x=4"),
        ("?b=2&a=1&b=1", "?b=2&a=1&b=1"),
        ("?&", "?&"),
        ("??x", "??x"),
    ],
)
def test_what_follows_the_visitor_is_dropped_and_the_rest_stays_in_order(query: str, left: str) -> None:
    assert normalise(f"https://a.test/{query}") == f"https://a.test/{left}"


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("/x;jsessionid=1A.n2?q", "/x?q"),
        ("/x;JSESSIONID=1;v=2/y", "/x;v=2/y"),
        ("/a/..;jsessionid=1/b", "/b"),
        ("/x;jsession=1", "/x;jsession=1"),
    ],
)
def test_a_session_in_the_path_is_dropped(path: str, left: str) -> None:
    assert normalise(f"https://a.test{path}") == f"https://a.test{left}"


NOT_OURS = ["mailto:x", "javascript:void(0)", "data:text/html,x", "ftp://a.test/", "about:blank", "httpss://a.test/"]


@pytest.mark.parametrize("url", [*NOT_OURS, "tel:+1", "ws://a.test/", "x:"])
def test_other_schemes_are_refused(url: str) -> None:
    with pytest.raises(UrlError, match="expected https or http"):
        normalise(url, "https://a.test/")


@pytest.mark.parametrize("url", ["", "x", "/x", "//a.test/", "?x", "#x"])
def test_a_link_without_a_page_is_refused(url: str) -> None:
    with pytest.raises(UrlError, match="has no scheme; expected it to begin with https:// or http://"):
        normalise(url)


@pytest.mark.parametrize(
    "url", ["https://", "https:///", "https://?x", "https://:80/", "https://a.test:0/", "https://a.test:65536/"]
)
def test_a_host_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UrlError, match="URL with host"):
        normalise(url)


@pytest.mark.parametrize(
    "url", ["https://a b.test/", "https://a.test:x/", "https://a%00.test/", "https://1.2.3.4.5/", "https://256.1.1.1/"]
)
def test_a_host_that_is_read_differently_is_refused(url: str) -> None:
    with pytest.raises(UrlError, match="URL with host"):
        normalise(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://anna:secret@a.test/",
        "https://anna:secret@a.test:99999/",
        "//anna:secret@a.test/",
        "https://anna:secret/word@a.test/",
        "https://anna:secret?word@a.test/",
        "https://anna:secret\uff20a.test/",
        "ftp://anna:secret@a.test/",
        "anna:secret@a.test",
        f"https://anna:secret@a.test/{'x' * LONGEST_INPUT}",
    ],
)
@pytest.mark.parametrize("base", [None, "https://a.test/"])
def test_user_info_is_never_shown(url: str, base: str | None) -> None:
    """A link that names a user is followed without; an address that somebody gave is refused."""
    try:
        shown = normalise(url, base)
    except UrlError as error:
        shown = str(error)
    else:
        assert (base, shown) == ("https://a.test/", "https://a.test/")

    assert "anna" not in shown
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("url", "spelled"),
    [
        ("https://@a.test/", "https://a.test/"),
        ("https://:@a.test/", "https://a.test/"),
        ("https://a%2etest/", "https://a.test/"),
        ("https://%E2%98%83.test/", "https://xn--n3h.test/"),
        ("https://☃.test:8443/", "https://xn--n3h.test:8443/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://0x7F.0.0.1:81/", "http://127.0.0.1:81/"),
        ("http://0177.1./", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://\uff10\uff58\uff17\uff46\uff0e\uff11/", "http://127.0.0.1/"),
        ("http://0xffffffff/", "http://255.255.255.255/"),
        ("http://h/it's?it's", "http://h/it's?it%27s"),
        ("http://h/it%27s?it%27s", "http://h/it's?it%27s"),
    ],
)
def test_what_browsers_follow_is_followed(url: str, spelled: str) -> None:
    assert normalise(url) == spelled
    assert normalise(spelled) == spelled


@pytest.mark.parametrize(
    "url", ["http://f: /c", "http://2001::1/", "http://[::%31]/", "http://%5B::1]/", "http://f:0/"]
)
def test_what_no_browser_follows_is_refused(url: str) -> None:
    with pytest.raises(UrlError):
        normalise(url)


def test_a_long_url_is_refused_and_shown_shortened() -> None:
    longest = "https://a.test/".ljust(LONGEST, "x")
    assert normalise(longest) == longest

    too_long = "https://a.test/#".ljust(LONGEST_INPUT + 1, "x")
    links = ("x", longest[:-1] + "/"), ("ü" * 400, "https://a.test/"), ("\x01x" * LONGEST_INPUT, "https://a.test/")
    for url, base in ((longest + "x", None), (too_long, None), *links):
        with pytest.raises(UrlError, match="expected at most 2,000") as refusal:
            normalise(url, base)
        assert len(str(refusal.value)) < 220


def test_what_only_looks_long_is_not() -> None:
    assert normalise(f"https://a.test/{'%41' * 700}#{'x' * 9000}") == f"https://a.test/{'A' * 700}"


@pytest.mark.parametrize(
    "path",
    ["/", "/a/b/c", "/a/a", "/a/b/a/b", "/a/a/b/a", "/a/b/c/a/b/c", "/" + "/".join(map(str, range(20))), "/x?/a/a/a/a"],
)
def test_an_ordinary_path_is_no_trap(path: str) -> None:
    assert trap(f"https://a.test{path}") is None


@pytest.mark.parametrize(
    ("path", "group"),
    [("/a/a/a", "a"), ("/a/a/a/", "a"), ("/x/a/b/a/b/a/b/y.html", "a/b"), ("/a//a//a", "a"), ("/1/2/3" * 3, "1/2/3")],
)
def test_segments_that_repeat_are_a_trap(path: str, group: str) -> None:
    assert trap(f"https://a.test{path}?x") == f"'{group}' more than 2 times in a row in its path"


def test_a_path_without_end_is_a_trap() -> None:
    assert trap("https://a.test/" + "/".join(map(str, range(21)))) == "21 path segments, more than 20"
