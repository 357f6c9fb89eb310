"""Enough of ClickHouse's HTTP interface for a real client, around the real engine. A program: folder, port.

It takes the user `default` without a password, and `reader` with the password `sesame`.
"""

import base64
import email
import re
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import chdb

USERS = {"default": "", "reader": "sesame"}
CODE = re.compile(r"Code: ([0-9]+)\.")
SETTINGS = ("max_partitions_per_insert_block",)
INSERT = re.compile(r"(?s)\s*(INSERT INTO .*?)\s+FORMAT\s+(\w+)\s*$")


class Engine:
    """One query at a time."""

    def __init__(self, folder: str) -> None:
        self._connection: Any = chdb.connect(folder)
        self._turn = threading.Lock()

    def answer(self, asked: dict[str, str], body: bytes) -> bytes:
        parameters = {name.removeprefix("param_"): value for name, value in asked.items() if name.startswith("param_")}
        with self._turn:
            self._connection.query(f"USE `{asked.get('database', 'default')}`")
            if found := INSERT.match(asked.get("query", "")):
                return self._insert(found[1], found[2], asked, body)
            query = asked.get("query") or body.decode()
            return bytes(self._connection.query(query, "TabSeparated", params=parameters).bytes())

    def _insert(self, statement: str, form: str, asked: dict[str, str], body: bytes) -> bytes:
        settings = ", ".join(f"{name} = {asked[name]}" for name in SETTINGS if name in asked)
        with tempfile.NamedTemporaryFile() as file:
            file.write(body)
            file.flush()
            given = f" SETTINGS {settings}" if settings else ""
            self._connection.query(f"{statement} FROM INFILE '{file.name}'{given} FORMAT {form}")
        return b""


class Exchange(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    engine: Engine

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        asked |= self._form(body)
        if not self._known():
            self._send(403, b"Code: 516. DB::Exception: Authentication failed. (AUTHENTICATION_FAILED)", "516")
        else:
            self._answer(asked, body)

    def _form(self, body: bytes) -> dict[str, str]:
        """The fields of a form, as which a client sends long parameters."""
        kind = self.headers.get("Content-Type", "")
        if not kind.startswith("multipart/form-data"):
            return {}
        message = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
        fields = [part for part in message.walk() if not part.is_multipart()]
        return {
            str(part.get_param("name", header="Content-Disposition")): bytes(part.get_payload(decode=True)).decode()
            for part in fields
        }

    def _known(self) -> bool:
        kind, _, packed = self.headers.get("Authorization", "").partition(" ")
        user, _, password = base64.b64decode(packed).decode().partition(":") if kind == "Basic" else ("default", "", "")
        return USERS.get(user) == password

    def _answer(self, asked: dict[str, str], body: bytes) -> None:
        try:
            self._send(200, self.engine.answer(asked, body))
        except RuntimeError as error:  # of chDB there is no other
            code = found[1] if (found := CODE.search(str(error))) else "1"
            self._send(500, str(error).encode(), code)

    def _send(self, status: int, body: bytes, code: str = "") -> None:
        self.send_response(status)
        if code:
            self.send_header("X-ClickHouse-Exception-Code", code)
        self.send_header("X-ClickHouse-Timezone", "UTC")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the parent's name
        """Write nothing."""


if __name__ == "__main__":
    Exchange.engine = Engine(sys.argv[1])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Exchange).serve_forever()
