"""WSGI middleware: inspects requests and responses of an application.

The request body is read and held up to the limit of the policy before the application is called. WSGI does not
tell "-" from "_" in header names, and decodes the path; the target as it came is inspected where the server gives
it (RAW_URI of gunicorn, REQUEST_URI of uWSGI and mod_wsgi).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from ._events import end
from ._native import Exchange, Waf
from ._wsgi_response import Response, answered

__all__ = ["WafMiddleware"]

_PIECE = 64 * 1024
# Fields that have names of their own in the environment.
_UNPREFIXED = ("CONTENT_TYPE", "CONTENT_LENGTH")
_OF_CONNECTION = ("CONNECTION", "KEEP_ALIVE", "PROXY_CONNECTION", "TRANSFER_ENCODING", "UPGRADE")


class WafMiddleware:
    """Inspects the requests and responses of a WSGI application.

    client: address and port of the client, from the environment; by default REMOTE_ADDR. Behind a proxy give a
        function that reads the field which the proxy sets.
    on_event: takes each event, a line of JSON, in the thread that ends the exchange. Without it events wait for
        Waf.take_events.
    """

    def __init__(
        self,
        app: Callable[..., Iterable[bytes]],
        waf: Waf,
        *,
        client: Callable[[dict[str, Any]], tuple[str, int]] | None = None,
        on_event: Callable[[str], object] | None = None,
    ) -> None:
        self._app = app
        self._waf = waf
        self._client = client or _remote
        self._on_event = on_event

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        address, port = self._client(environ)
        tls = environ.get("wsgi.url_scheme") == "https"
        version = environ.get("SERVER_PROTOCOL", "HTTP/1.1").rpartition("/")[2]
        method = environ["REQUEST_METHOD"].encode("latin-1")
        exchange = self._waf.begin(
            method,
            _target(environ),
            version,
            _fields(environ, version),
            address,
            port,
            tls,
            # In HTTP/1 a body has a field that says so.
            not version.startswith("1"),
        )
        response = Response(exchange, start_response, self._end)
        try:
            body = _RequestBody(exchange, environ)
            body.hold()
            exchange.request_end()
            answer = exchange.answer()
            if answer is not None:
                self._end(exchange)
                return answered(answer, start_response)
            environ["wsgi.input"] = body
            response.take(self._app(environ, response.start))
            return response
        except BaseException:
            # The server gets nothing that it could close.
            response.close()
            raise

    def _end(self, exchange: Exchange) -> None:
        end(exchange, self._waf, self._on_event)


def _remote(environ: dict[str, Any]) -> tuple[str, int]:
    port = str(environ.get("REMOTE_PORT", "0"))
    return str(environ.get("REMOTE_ADDR", "")), int(port) if port.isdigit() and int(port) < 65536 else 0


def _target(environ: dict[str, Any]) -> bytes:
    for name in ("RAW_URI", "REQUEST_URI"):
        if environ.get(name):
            return str(environ[name]).encode("latin-1", "replace")
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    target = quote(path.encode("latin-1"), safe="/;,:@&=+$!*'()~") or "/"
    query = environ.get("QUERY_STRING")
    return (target + ("?" + query if query else "")).encode("latin-1", "replace")


def _fields(environ: dict[str, Any], version: str) -> list[tuple[bytes, bytes]]:
    fields = []
    is_http1 = version.startswith("1")
    for key, value in environ.items():
        if key in _UNPREFIXED:
            name = key if value else ""
        else:
            name = key[5:] if key.startswith("HTTP_") and not _is_repeated(environ, key) else ""
        if not is_http1 and name in _OF_CONNECTION:
            # In HTTP/2 there are none: they are those of the server in between.
            name = ""
        if name:
            name = name.replace("_", "-")
            name = name.title() if is_http1 else name.lower()
            fields.append((name.encode("latin-1"), str(value).encode("latin-1")))
    return fields


def _is_repeated(environ: dict[str, Any], key: str) -> bool:
    """Tells whether a field stands in the environment a second time, as nginx shows the length and the type of a
    body to uWSGI, or describes chunks that the server has put together."""
    other = environ.get(key[5:]) if key[5:] in _UNPREFIXED else None
    if other:
        return str(other).strip() == str(environ[key]).strip()
    # The protocol of uWSGI has no chunks.
    return key == "HTTP_TRANSFER_ENCODING" and "uwsgi.version" in environ and bool(environ.get("CONTENT_LENGTH"))


class _RequestBody(io.RawIOBase):
    """wsgi.input: the part of the body that was held, then the rest."""

    def __init__(self, exchange: Exchange, environ: dict[str, Any]) -> None:
        self._exchange = exchange
        self._input = environ["wsgi.input"]
        # Bytes that are still to come; none: the body has an end of its own.
        self._left: int | None = None
        length = environ.get("CONTENT_LENGTH") or ""
        if not environ.get("HTTP_TRANSFER_ENCODING") and (length or not environ.get("wsgi.input_terminated")):
            self._left = int(length) if length.isascii() and length.isdigit() else 0
        self._held = bytearray()

    def hold(self) -> None:
        """Reads and shows as much as is wanted."""
        if self._left == 0 or not self._exchange.wants_request_body():
            return
        while True:
            try:
                piece = self._next(_PIECE)
            except OSError:
                self._exchange.request_broken(False)
                return
            if not piece:
                if self._left:
                    self._exchange.request_broken(False)
                return
            self._held += piece
            if not self._exchange.request_body(piece):
                return

    def _next(self, size: int) -> bytes:
        if self._left is not None:
            size = min(size, self._left)
        piece = self._input.read(size) if size else b""
        if self._left is not None:
            self._left -= len(piece)
        return bytes(piece)

    def readable(self) -> bool:
        return True

    def readline(self, size: int | None = -1) -> bytes:
        # That of RawIOBase reads byte by byte.
        limit = None if size is None or size < 0 else size
        end = self._held.find(b"\n", 0, limit) + 1
        line = bytes(self._held[: end or limit])
        del self._held[: len(line)]
        if end or (limit is not None and len(line) >= limit):
            return line
        limits = [rest for rest in (None if limit is None else limit - len(line), self._left) if rest is not None]
        rest = bytes(self._input.readline(*([min(limits)] if limits else [])))
        if self._left is not None:
            self._left -= len(rest)
        self._exchange.passed(len(rest), 0)
        return line + rest

    def readinto(self, buffer: Any) -> int:
        if self._held:
            piece = bytes(self._held[: len(buffer)])
            del self._held[: len(buffer)]
        else:
            piece = self._next(len(buffer))
            self._exchange.passed(len(piece), 0)
        buffer[: len(piece)] = piece
        return len(piece)

    def read(self, size: int | None = -1) -> bytes:
        # WSGI servers give as many bytes as are asked for, as far as there are.
        if size is None or size < 0:
            return self.readall()
        pieces = bytearray()
        while len(pieces) < size:
            piece = super().read(size - len(pieces))
            if not piece:
                break
            pieces += piece
        return bytes(pieces)
