import pickle
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.redact import HIDDEN, Secret, SecretError, child_environment, looks_secret, redact

NAMES = [
    *("key", "api_key", "apiKey", "X-Api-Key", "api%5Fkey", "subscription-key", "token", "access_token", "sig"),
    *("X-Amz-Signature", "password", "sslpassword", "auth", "client_secret"),
]
LETTERS = string.ascii_letters + string.digits


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sqlite:a@b:c", "sqlite:a@b:c"),
        ("postgresql://db/x", "postgresql://db/x"),
        ("postgresql://me@db:5432/x?schema=s", "postgresql://***@db:5432/x?schema=s"),
        ("postgresql://me:a/b@db/x", "postgresql://***@db/x"),
        ("postgresql://me:p@ss@db/x", "postgresql://***@db/x"),
        ("postgresql://me:pa?ss@db/x", "postgresql://***@db/x"),
        ("postgresql://me:a@b?c@db/x", "postgresql://***@***"),
        ("postgresql://db/x?options=a@b", "postgresql://db/x?options=a@b"),
        ("redis://:hush@[::1]:6379/0", "redis://***@[::1]:6379/0"),
        ("redis://h:6379/0?password=hush&db=1", "redis://h:6379/0?password=***&db=1"),
        ("amqp://me:1?2@broker/", "amqp://***@broker/"),
        ("https://api.example/{id}?key=hush", "https://api.example/{id}?key=***"),
        ("https://example.org/@me?mail=a@b.c&page=2#top", "https://example.org/@me?mail=a@b.c&page=2#top"),
        ("https://me:p#1@example.org/x", "https://***@example.org/x"),
        ("https://example.org/cb#access_token=hush&state=1", "https://example.org/cb#access_token=***&state=1"),
        ("cannot reach 'amqp://me:pw@broker/', twice", "cannot reach 'amqp://***@broker/', twice"),
        ("cache key=abc, tokens=4", "cache key=abc, tokens=4"),
        ("token_share=0.5", "token_share=0.5"),
        ("Authorization: Basic abc\nAccept: text/html", "Authorization: ***\nAccept: text/html"),
    ],
)
def test_passwords_and_keys_are_hidden_and_nothing_else(text: str, shown: str) -> None:
    assert redact(text) == shown


@given(st.sampled_from(NAMES), st.text(LETTERS, min_size=9))
def test_no_secret_parameter_is_shown(name: str, secret: str) -> None:
    url = f"https://api.example/v1?page=3&{name}="

    assert redact(f"{url}hush{secret}, twice") == f"{url}{HIDDEN}, twice"


@given(st.text(LETTERS + "@/?#:&=%'", min_size=1))
def test_no_password_in_a_url_is_shown_however_it_is_spelled(password: str) -> None:
    # A password that begins with digits and then has a slash looks like a port and a path: hence the word before it.
    assert "hush" not in redact(f"amqp://me:hush{password}hush@broker/vhost")


@given(st.text(string.printable, max_size=200))
def test_hiding_is_done_once(text: str) -> None:
    assert redact(redact(text)) == redact(text)


def test_a_key_is_a_secret_only_in_a_url() -> None:
    assert looks_secret("key", in_url=True)
    assert not looks_secret("key")


def test_a_secret_that_was_read_is_hidden_wherever_it_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "open/sesame 7")
    (tmp_path / "key").write_text("swordfish-in-a-file\n")
    token, key = Secret("env:SHOP_TOKEN"), Secret(f"file:{tmp_path}/key")

    assert (token.reveal(), key.reveal()) == ("open/sesame 7", "swordfish-in-a-file")

    assert "open" not in redact("GET /?q=open/sesame 7") + redact("GET /?q=open%2Fsesame%207&r=open%2Fsesame+7")
    assert "swordfish" not in redact("X-Whatever: swordfish-in-a-file")
    assert "sesame" not in f"{token} {token!r} {Secret.of('open sesame')!r}"
    with pytest.raises(TypeError):
        pickle.dumps(token)


@pytest.mark.parametrize(
    "source", ["hunter2", "", "env:", "env:not a name", "file:", "env:NOT_SET_HERE", "file:/nowhere/key", "file:/"]
)
def test_what_is_no_secret_is_refused_without_being_shown(source: str) -> None:
    with pytest.raises(SecretError) as refused:
        Secret(source).reveal()

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines", b"\xff\xfe", b"x" * 70_000])
def test_a_file_without_one_line_of_text_is_no_secret(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)

    with pytest.raises(SecretError):
        Secret(f"file:{tmp_path}/key").reveal()


def test_a_child_process_gets_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hush-hush")
    secrets = [Secret("env:SHOP_TOKEN"), Secret.of("correct horse")]
    environment = {"SHOP_TOKEN": "hush-hush", "DSN": "me:correct horse@db", "PATH": "/bin", "COPY": "hush-hush"}

    assert child_environment(environment, secrets) == {"PATH": "/bin"}
