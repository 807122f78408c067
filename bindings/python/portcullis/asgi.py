"""ASGI middleware: inspects requests and responses of an application, and handshakes of WebSockets.

The request body is received and held up to the limit of the policy before the application is called. Frames of
WebSockets and files that the server sends by itself (http.response.pathsend) are not inspected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from ._asgi_response import Message, Response, Send, beside, send_answer
from ._events import end
from ._native import Exchange, Waf

__all__ = ["WafMiddleware"]

Receive = Callable[[], Awaitable[Message]]


class WafMiddleware:
    """Inspects the requests and responses of an ASGI application.

    client: address and port of the client, from the scope; by default those of the connection. Behind a proxy give
        a function that reads the field which the proxy sets.
    on_event: takes each event, a line of JSON, on the event loop, so it must not block. Without it events wait for
        Waf.take_events.
    idle_timeout, body_timeout: seconds for the next piece of a request body, and for all of it.
    """

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        waf: Waf,
        *,
        client: Callable[[Message], tuple[str, int]] | None = None,
        on_event: Callable[[str], object] | None = None,
        idle_timeout: float = 30.0,
        body_timeout: float = 300.0,
    ) -> None:
        self._app = app
        self._waf = waf
        self._client = client or _peer
        self._on_event = on_event
        self._idle = idle_timeout
        self._whole = body_timeout

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        exchange = self._begin(scope)
        try:
            if scope["type"] == "websocket":
                await self._websocket(exchange, scope, receive, send)
            else:
                await self._http(exchange, scope, receive, send)
        finally:
            end(exchange, self._waf, self._on_event)

    def _begin(self, scope: Message) -> Exchange:
        address, port = self._client(scope)
        version = str(scope.get("http_version", "1.1"))
        is_http = scope["type"] == "http"
        return self._waf.begin(
            scope.get("method", "GET").encode("latin-1"),
            _target(scope),
            version,
            _fields(scope, version),
            address,
            port,
            scope.get("scheme") in ("https", "wss"),
            # In HTTP/1 a body has a field that says so.
            is_http and not version.startswith("1"),
        )

    async def _websocket(self, exchange: Exchange, scope: Message, receive: Receive, send: Send) -> None:
        exchange.request_end()
        if exchange.answer() is None:
            # Of the connection nothing more is seen, however long it lasts.
            end(exchange, self._waf, self._on_event)
            await self._app(scope, receive, send)
            return
        await receive()
        # Servers answer the handshake with 403.
        await send({"type": "websocket.close", "code": 1008})

    async def _http(self, exchange: Exchange, scope: Message, receive: Receive, send: Send) -> None:
        request = _Request(exchange, receive)
        if not await request.hold(self._idle, self._whole):
            return
        await beside(exchange.request_end, request.size)
        answer = exchange.answer()
        if answer is not None:
            await send_answer(answer, send)
            return
        response = Response(exchange, send, lambda: end(exchange, self._waf, self._on_event))
        try:
            await self._app(scope, request.receive, response.send)
        finally:
            await response.finish()


def _peer(scope: Message) -> tuple[str, int]:
    client = scope.get("client")
    return (str(client[0]), int(client[1] or 0)) if client else ("", 0)


def _target(scope: Message) -> bytes:
    raw = scope.get("raw_path") or quote(scope.get("path", "/"), safe="/;,:@&=+$!*'()~").encode("ascii")
    query = scope.get("query_string", b"")
    return bytes(raw.split(b"?", 1)[0]) + (b"?" + bytes(query) if query else b"")


def _fields(scope: Message, version: str) -> list[tuple[bytes, bytes]]:
    of_connection = (b"connection", b"upgrade", b"keep-alive", b"transfer-encoding")
    return [
        (bytes(name), bytes(value))
        for name, value in scope["headers"]
        if version.startswith("1") or bytes(name).lower() not in of_connection
    ]


class _Request:
    """The request body: the part that was held, then the rest."""

    def __init__(self, exchange: Exchange, receive: Receive) -> None:
        self._exchange = exchange
        self._receive = receive
        self._held = bytearray()
        self._has_more = True
        self._is_replayed = False
        self.size = 0

    async def hold(self, idle: float, whole: float) -> bool:
        """Receives and shows as much as is wanted; false if the client has gone."""
        if not self._exchange.wants_request_body():
            self._is_replayed = True
            return True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + whole
        while self._has_more:
            try:
                wait = max(0.0, min(idle, deadline - loop.time()))
                message = await asyncio.wait_for(self._receive(), wait)
            except asyncio.TimeoutError:
                self._exchange.request_broken(True)
                return True
            if message["type"] == "http.disconnect":
                return False
            piece = bytes(message.get("body", b""))
            self._has_more = message.get("more_body", False)
            self._held += piece
            self.size += len(piece)
            if piece and not self._exchange.request_body(piece):
                break
        return True

    async def receive(self) -> Message:
        """receive of the application."""
        if not self._is_replayed:
            self._is_replayed = True
            held, self._held = bytes(self._held), bytearray()
            return {"type": "http.request", "body": held, "more_body": self._has_more}
        message = await self._receive()
        if message["type"] == "http.request":
            self._exchange.passed(len(message.get("body", b"")), 0)
        return message
