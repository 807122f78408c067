"""The response of an ASGI application: messages are held as far as they are inspected, and sent after the verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ._native import Exchange

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]

# Bytes of a body above which a phase runs on another thread.
_LARGE = 64 * 1024


async def beside(phase: Callable[..., None], size: int, *arguments: Any) -> None:
    """Runs a phase, on another thread if it inspects many bytes: the engine does not hold the interpreter's lock."""
    if size < _LARGE:
        phase(*arguments)
    else:
        await asyncio.get_running_loop().run_in_executor(None, phase, *arguments)


async def send_answer(answer: tuple[int, list[tuple[str, str]], bytes], send: Send) -> None:
    """Sends an answer in place of the application's."""
    status, fields, body = answer
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
    headers.append((b"content-length", str(len(body)).encode("ascii")))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Response:
    """The response of an exchange."""

    def __init__(self, exchange: Exchange, send: Send, end: Callable[[], None]) -> None:
        self._exchange = exchange
        self._send = send
        # Ends the exchange: the application may go on for long after its response, for instance with other tasks.
        self._end = end
        # The messages that wait for the verdict; none once there is one.
        self._held: list[Message] | None = []
        self._size = 0
        self._is_blocked = False
        self._lock = asyncio.Lock()
        self._release: asyncio.Task[None] | None = None

    async def send(self, message: Message) -> None:
        """send of the application."""
        async with self._lock:
            if self._is_blocked:
                return
            if self._held is None or (not self._held and message["type"] != "http.response.start"):
                # Behind the verdict, or before the response, as early hints are.
                if message["type"] == "http.response.body":
                    self._exchange.passed(0, len(message.get("body", b"")))
                await self._pass(message)
                return
            self._held.append(message)
            await self._show(message)

    async def _show(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            fields = [(bytes(name), bytes(value)) for name, value in message.get("headers", [])]
            self._exchange.response_head(message["status"], fields, False)
            if not self._exchange.wants_response_body():
                await self._decide(True)
            elif (wait := self._exchange.response_wait_max()) is not None:
                self._release = asyncio.create_task(self._let_go(wait))
        elif message["type"] == "http.response.body":
            piece = bytes(message.get("body", b""))
            self._size += len(piece)
            wanted = self._exchange.response_body(piece) if piece else True
            if not message.get("more_body", False):
                await self._decide(True)
            elif not wanted:
                await self._decide(False)
        else:
            # For instance a file that the server reads by itself.
            await self._decide(False)

    async def _let_go(self, wait: float) -> None:
        """Only the semantic detector inspects the body: the rest does not wait for it."""
        await asyncio.sleep(wait)
        async with self._lock:
            if self._held is not None:
                await self._decide(False)

    async def _decide(self, is_whole: bool) -> None:
        held, self._held = self._held or [], None
        await beside(self._exchange.response_end, self._size, is_whole)
        answer = self._exchange.answer()
        if answer is not None:
            self._is_blocked = True
            await send_answer(answer, self._send)
            self._end()
            return
        for message in held:
            await self._pass(message)

    async def _pass(self, message: Message) -> None:
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._end()

    async def finish(self) -> None:
        """The end of the application's call."""
        if self._release is not None and not self._release.cancel() and not self._release.cancelled():
            # Sending failed since the client has gone: taken, so that asyncio does not report it.
            self._release.exception()
