"""Forms: found by their fields, filled in as a browser would, and sent to the page's own host."""

from urllib.parse import parse_qsl

import pytest

from sanderling.apis.html_forms import FormError, fill_form, has_form
from sanderling.task import SECRET_BODY, Reply

PAGE = """
<form action=/search><input name=q></form>
<FORM method=post action="session?x=1#top">
<input type=hidden name=csrf value="a&amp;b"><input name=user><input type=password name=password>
<input type=checkbox name=stay checked><input type=checkbox name=news value=1><input name=off disabled value=1>
<select name=lang><option value=en><option value=de selected></select><textarea name=note>hi</textarea>
<input type=submit name=go value=Go><button name=other>Other</button></form>
"""


def page(html: str = PAGE, url: str = "https://a.example/in/login") -> Reply:
    return Reply(200, (), html.encode(), url, 0.1)


def test_a_form_is_sent_with_all_that_it_holds() -> None:
    task = fill_form(page(), {"user": "me", "password": "hünter 2"})

    assert (task.url, task.method, task.secrets) == (
        "https://a.example/in/session?x=1",
        "POST",
        frozenset({SECRET_BODY}),
    )
    assert dict(parse_qsl((task.body or b"").decode())) == {
        "csrf": "a&b",
        "user": "me",
        "password": "hünter 2",
        "stay": "on",
        "lang": "de",
        "note": "hi",
        "go": "Go",
    }
    assert "hünter" not in repr(task)


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ("", "no form"),
        ("<form method=post><input name=email></form>", "the fields email, expected one with user, password"),
        ("<form><input name=user><input name=password></form>", "into an address"),
        ("<form method=post action=https://b.example/><input name=user><input name=password>", "another host"),
        ("<form method=post action=http://a.example/><input name=user><input name=password>", "plain http"),
        ("<form method=post action='http://[x'><input name=user><input name=password>", "is none"),
    ],
)
def test_what_cannot_be_sent_is_said(html: str, said: str) -> None:
    with pytest.raises(FormError, match=said.replace("[", r"\[")):
        fill_form(page(html), {"user": "me", "password": "hunter2"})


def test_a_form_is_known_by_its_fields() -> None:
    assert has_form(page(), ["user", "password"])
    assert not has_form(page(), ["user", "otp"])
    assert not has_form(page("<form><form><input name=x>" * 3000), ["user"])
