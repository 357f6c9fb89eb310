"""A prompt with a page in it, as a person or a script types into it."""

from io import StringIO

import pytest
from command_line import Done, Script, called, here, run
from scripted_server import ScriptedServer, answer

PAGES: Script = {
    "/": [answer(200, b"<h1>High tide</h1><a href=/1>one</a>", Content_Type="text/html")],
    "/1": [answer(200, b"<h1>One</h1>", Content_Type="text/html")],
}
TYPED = """print(page.css("h1").text)
page.css("a[")
fetch(page.css("a").attr("href"))
print(page.css("h1").text)
"""


def test_selectors_are_tried_on_a_page_that_was_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(TYPED))

    async def main() -> Done:
        async with ScriptedServer(PAGES) as server:
            return await here("pages", "shell", server.url(), "--private")

    code, out, err = run(main)

    assert code == 0, err
    assert [line for line in out.splitlines() if "tide" in line or line == "One"] == ["High tide", "One"]
    assert "'a[' is no CSS selector" in err
    assert "page.css('h1').text" in err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["ftp://a.example/"], 2, "http"),
        (["http://127.0.0.1:1/"], 1, "cannot fetch http://127.0.0.1:1/: REFUSED"),
    ],
)
def test_what_cannot_be_fetched_is_said(arguments: list[str], code: int, says: str) -> None:
    done = called("pages", "shell", *arguments)

    assert done.code == code
    assert says in done.err
    assert "Traceback" not in done.err
