import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.redact import HIDDEN, is_secret, redact, redact_url

SECRET_NAMES = [
    *("key", "api_key", "apiKey", "X-Api-Key", "api%5Fkey", "subscription-key", "token", "access_token", "sig"),
    *("X-Amz-Signature", "password", "sslpassword", "auth", "client_secret"),
]


@pytest.mark.parametrize(
    ("url", "is_shown"),
    [
        ("sqlite:a@b:c", "sqlite:a@b:c"),
        ("postgresql://db/x", "postgresql://db/x"),
        ("postgresql://me@db:5432/x?schema=s", "postgresql://me@db:5432/x?schema=s"),
        ("postgresql://me:a/b@db/x", "postgresql://me@db/x"),
        ("postgresql://me:p@ss@db/x", "postgresql://me@db/x"),
        ("postgresql://me:pa?ss@db/x", "postgresql://me@db/x"),
        ("redis://:hush@[::1]:6379/0", "redis://@[::1]:6379/0"),
        ("redis://h:6379/0?password=hush&db=1", "redis://h:6379/0?password=***&db=1"),
        ("https://api.example/{id}?key=hush", "https://api.example/{id}?key=***"),
        ("https://example.org/@me?mail=a@b.c&page=2#top", "https://example.org/@me?mail=a@b.c&page=2#top"),
        ("amqp://me:1?2@broker/", "amqp://me@broker/"),
        ("postgresql://me:a@b?c@db/x", "postgresql://me@***"),
        ("postgresql://db/x?options=a@b", "postgresql://db/x?options=a@b"),
        ("https://me:p#1@example.org/x", "https://me@example.org/x"),
        ("https://example.org/cb#access_token=hush&state=1", "https://example.org/cb#access_token=***&state=1"),
    ],
)
def test_of_a_url_only_what_is_no_secret_is_shown(url: str, is_shown: str) -> None:
    assert redact_url(url) == is_shown


@given(st.sampled_from(SECRET_NAMES), st.text(string.ascii_letters + string.digits, min_size=9))
def test_no_secret_parameter_is_shown_in_a_url_or_in_a_text(name: str, secret: str) -> None:
    secret = f"hush{secret}"
    url = f"https://api.example/v1?page=3&{name}={secret}"

    assert redact_url(url) == f"https://api.example/v1?page=3&{name}={HIDDEN}"
    assert redact(f"asked {url}, twice") == f"asked https://api.example/v1?page=3&{name}={HIDDEN}, twice"


@given(st.text(string.ascii_letters + "@/?#:&=%", min_size=1))
def test_no_password_is_shown_however_it_is_spelled(password: str) -> None:
    secret = f"hush{password}hush"  # whatever the password begins with, a port is digits

    assert "hush" not in redact_url(f"amqp://me:{secret}@broker/vhost")


def test_a_key_is_a_secret_only_in_a_url() -> None:
    assert not is_secret("key")
    assert redact("cache key=abc") == "cache key=abc"
