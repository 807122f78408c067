"""Events on their way to the sink of the application."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ._native import Exchange, Waf

_LOG = logging.getLogger("portcullis")


def end(exchange: Exchange, waf: Waf, sink: Callable[[str], object] | None) -> None:
    """Ends an exchange and hands events on. A sink that raises has lost one, and does not stop the application."""
    exchange.end()
    if sink is None:
        return
    for event in waf.take_events():
        try:
            sink(event)
        except Exception:
            _LOG.exception("on_event lost an event")
