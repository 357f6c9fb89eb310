"""Secrets are found in a text however they are spelled, and only there."""

import json
import re
from base64 import b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.auth import ApiKey, Auth, Basic, Bearer, Login, OAuth2
from sanderling.apis.secrets import HEAD, SHORTEST, Secrets, secrets_of

SECRETS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=SHORTEST, max_size=40)
TEXTS = st.text(st.sampled_from("äö.,;0 "), max_size=20)
SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "a query": quote_plus,
    "a path": quote,
    "all escaped": lambda secret: quote(secret, safe=""),
    "in lower case": lambda secret: re.sub("%..", lambda found: found[0].lower(), quote(secret, safe="")),
    "JSON": lambda secret: json.dumps(secret)[1:-1],
    "JSON with characters": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "JSON of PHP": lambda secret: json.dumps(secret)[1:-1].replace("/", r"\/"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(secret=SECRETS, before=TEXTS, after=TEXTS)
def test_a_secret_is_masked_in_every_spelling(spelling: str, secret: str, before: str, after: str) -> None:
    spelled = SPELLINGS[spelling](secret)

    masked = Secrets([secret, "another"]).mask(f"{before} {spelled} {after} another")

    assert spelled not in masked.replace("***", "") or spelled in before + after
    assert masked.endswith(" ***")


def test_what_was_cut_off_is_masked_and_all_else_stays() -> None:
    secrets = Secrets(["abcdefghijklmnop", "abc"])
    secrets.add("abcdefghXYZ")

    assert secrets.mask("abc abcdefg abcdefghij!") == "abc abcdefg ***!"
    assert secrets.mask("abcdefghXYZabcdefghijklmnopq") == "******q"
    assert "abcdefghij"[:HEAD] not in secrets.mask("so it ends: abcdefghij")
    assert Secrets().mask("abcdefghij") == "abcdefghij"


def test_parameters_with_a_secret_are_dropped_and_all_others_stay_as_they_are() -> None:
    secrets = Secrets(["hunter2/x y"])

    assert secrets.drop("https://a.example/b?c=%20&k=hunter2%2Fx+y&d=e#f") == "https://a.example/b?c=%20&d=e#f"
    assert secrets.drop("https://a.example/b?c=%20&k=hunter2%2fx%20y") == "https://a.example/b?c=%20"
    assert secrets.drop("https://a.example/b?&&c") == "https://a.example/b?&&c"


ENVIRONMENT = {"KEY": "hunter2", "USER": "somebody"}
PAIR = b64encode(b"somebody:hunter2").decode()


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        (ApiKey("k", "env:KEY"), {"hunter2"}),
        (Bearer("hunter2"), {"hunter2"}),
        (Basic("env:USER", "hunter2"), {"hunter2", PAIR}),
        (OAuth2("https://a.example/", "somebody", "env:KEY"), {"hunter2", PAIR}),
        (
            OAuth2("https://a.example/", "me", refresh_token="r1", extra={"pin": "env:KEY", "a": 1}),  # noqa: S106
            {"r1", "hunter2"},
        ),
        (
            Login("https://a.example/", "t", json={"user": "me", "a": [{"password": "p"}, "env:KEY"]}),
            {"p", "hunter2"},
        ),
        (
            Login("https://a.example/", "t", form={"user": "env:USER"}, headers=(("X-Api-Key", "h"), ("A", "b"))),
            {"somebody", "h"},
        ),
    ],
)
def test_the_secrets_of_each_kind_of_auth(auth: Auth, expected: set[str]) -> None:
    assert set(secrets_of(auth, ENVIRONMENT)) == expected
