"""Enough of ClickHouse's HTTP interface for its client, around the engine in this process (chDB)."""

import email
import re
import tempfile
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import lz4.frame
import pytest

INSERT = re.compile(rb"(?s)\s*(INSERT INTO .*?)\s+FORMAT\s+(\w+)\s")


class HttpClickhouse:
    """A server on a free port of the loopback interface. A process has one: the engine opens one folder only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "chdb"
        self.is_down = False
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        self._engine: Any = pytest.importorskip("chdb").connect(str(self.folder))
        handler = type("Handler", (_Exchange,), {"server_of": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._engine.close()

    def rows(self, query: str) -> list[list[str]]:
        """Rows of a query, as text."""
        return [line.split("\t") for line in self.answer({"query": query}, b"").decode().splitlines()]

    def answer(self, asked: dict[str, str], body: bytes) -> bytes:
        parameters = {name.removeprefix("param_"): value for name, value in asked.items() if name.startswith("param_")}
        with self._turn:
            if found := INSERT.match(asked.get("query", "").encode() + b"\n" + body):
                with tempfile.NamedTemporaryFile() as file:
                    file.write(found.string[found.end() :])
                    file.flush()
                    self._engine.query(f"{found[1].decode()} FROM INFILE '{file.name}' FORMAT {found[2].decode()}")
                return b""
            query = asked.get("query") or body.decode()
            form = asked.get("default_format", "TabSeparated")
            return bytes(self._engine.query(query, form, params=parameters).bytes())


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: HttpClickhouse

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while length := int(self.rfile.readline(), 16):
                body += self.rfile.read(length)
                self.rfile.readline()
            self.rfile.readline()
        if self.headers.get("Content-Encoding") == "lz4":
            body = lz4.frame.decompress(body)
        asked = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True)) | self._form(body)
        if self.server_of.is_down:
            self.close_connection = True
            return
        try:
            status, said = 200, self.server_of.answer(asked, body)
        except RuntimeError as error:  # the only one that chDB has
            status, said = 500, str(error).encode()
        self.send_response(status)
        if status == 500 and (found := re.search(rb"Code: ([0-9]+)", said)):
            self.send_header("X-ClickHouse-Exception-Code", found[1].decode())
        self.send_header("X-ClickHouse-Timezone", "UTC")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(said)

    def _form(self, body: bytes) -> dict[str, str]:
        """The fields of a form, as which the client sends long parameters."""
        kind = self.headers.get("Content-Type", "")
        if not kind.startswith("multipart/form-data"):
            return {}
        parts = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body).walk()
        return {
            str(part.get_param("name", header="Content-Disposition")): bytes(part.get_payload(decode=True)).decode()
            for part in parts
            if not part.is_multipart()
        }

    def log_message(self, *_: object) -> None:
        """Write nothing."""
