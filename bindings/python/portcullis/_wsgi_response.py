"""The response of a WSGI application: its pieces are held as far as they are inspected, and sent after the verdict."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any

from ._native import Exchange

Fields = list[tuple[str, str]]


def answered(answer: tuple[int, Fields, bytes], start: Callable[..., Any]) -> list[bytes]:
    """Sends an answer in place of the application's."""
    status, fields, body = answer
    reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Blocked"
    start(f"{status} {reason}", [*fields, ("content-length", str(len(body)))])
    return [body]


class Response:
    """The response of an exchange; an iterable for the server."""

    def __init__(self, exchange: Exchange, start: Callable[..., Any], end: Callable[[Exchange], None]) -> None:
        self._exchange = exchange
        self._start = start
        self._end = end
        self._head: tuple[str, Fields, Any] | None = None
        # True once the head has been inspected, and cannot change.
        self._has_begun = False
        self._pieces: Iterator[bytes] = iter(())
        # Pieces on their way to the server.
        self._ready: deque[bytes] = deque()
        # Takes a piece: kept until the head is known, then shown while it is inspected, then only counted.
        self._take: Callable[[bytes], object] = lambda piece: None
        self._is_wanted = True
        self._close: Callable[[], None] | None = None

    def start(self, status: str, fields: Fields, exc_info: Any = None) -> Callable[[bytes], None]:
        """start_response of the application."""
        if exc_info is not None and self._has_begun:
            raise exc_info[1].with_traceback(exc_info[2])
        if self._head is not None and exc_info is None:
            raise AssertionError("start_response was called twice")
        self._head = (status, fields, exc_info)
        return self._write

    def _write(self, piece: bytes) -> None:
        """A piece of the body. Applications that write call it, too: start_response returns it."""
        if piece:
            self._ready.append(piece)
            self._take(piece)

    def _show(self, piece: bytes) -> None:
        self._is_wanted = self._exchange.response_body(piece) and self._is_wanted

    def _pass(self, piece: bytes) -> None:
        self._exchange.passed(0, len(piece))

    def take(self, pieces: Iterable[bytes]) -> None:
        """Takes the body, and forms the verdict."""
        self._close = getattr(pieces, "close", None)
        self._pieces = iter(pieces)
        # An application may call start_response when it is asked for its first piece.
        while self._head is None:
            piece = next(self._pieces, None)
            if piece is None:
                raise AssertionError("start_response was not called")
            self._write(piece)
        self._has_begun = True
        status, fields, exc_info = self._head
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
        self._exchange.response_head(int(status.split(" ", 1)[0]), pairs, False)
        is_inspected = self._exchange.wants_response_body()
        self._take = self._show if is_inspected else self._pass
        for piece in self._ready:
            self._take(piece)
        self._exchange.response_end(self._hold() if is_inspected else True)
        self._take = self._pass
        answer = self._exchange.answer()
        if answer is None:
            self._start(status, fields, *((exc_info,) if exc_info else ()))
            return
        # The application is asked for nothing more, so it writes nothing either.
        self._pieces, self._ready = iter(()), deque(answered(answer, self._start))

    def _hold(self) -> bool:
        """Shows as much of the body as is wanted; true if that is all of it."""
        wait = self._exchange.response_wait_max()
        deadline = None if wait is None else time.monotonic() + wait
        # A stream that only the semantic detector inspects is let go with its next piece.
        while self._is_wanted and (deadline is None or time.monotonic() < deadline):
            piece = next(self._pieces, None)
            if piece is None:
                return True
            self._write(piece)
        return False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._ready:
            return self._ready.popleft()
        try:
            piece = next(self._pieces)
        except BaseException:
            self._end(self._exchange)
            raise
        self._exchange.passed(0, len(piece))
        return piece

    def close(self) -> None:
        """Ends the exchange; servers call it in any case."""
        try:
            if self._close is not None:
                self._close()
        finally:
            self._end(self._exchange)
