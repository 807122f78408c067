"""Applications for gunicorn and waitress. Events are printed."""

import sys

from portcullis import Waf
from portcullis.wsgi import WafMiddleware

RULES = """
SecRule RESPONSE_BODY "@contains root:x:0:0" "id:7,phase:4,deny,status:500"
SecRule RESPONSE_HEADERS:X-Leak "@streq yes" "id:9,phase:3,deny,status:502"
SecRule REQUEST_HEADERS:X-Test "@streq bad" "id:8,phase:1,deny,status:418"
"""
LEAK = b"root:x:0:0:root:/root:/bin/bash\n"
PLAIN = [("Content-Type", "text/plain")]


def application(environ, start_response):
    """Echoes bodies; each path below does as it is called."""
    path = environ["PATH_INFO"]
    if path == "/late":
        return late(start_response)
    if path == "/broken":
        raise RuntimeError("broken")
    if path == "/broken-later":
        return broken_later(start_response)
    if path == "/replaced":
        return replaced(start_response)
    write = start_response("200 OK", [*PLAIN, ("X-Leak", "yes")] if path == "/head" else PLAIN)
    if path == "/leak":
        return [LEAK[:7], LEAK[7:]]
    if path == "/written":
        write(LEAK[:7])
        write(LEAK[7:])
        return []
    if path == "/unread":
        return [b"not read"]
    if path == "/lines":
        return [b"%d\n" % len(line) for line in environ["wsgi.input"]]
    return [environ["wsgi.input"].read() or b"hello"]


def late(start_response):
    """A generator: nothing runs before its first piece is asked for."""
    start_response("200 OK", PLAIN)
    yield b"la"
    yield b"te"


def broken_later(start_response):
    """Breaks off in its body."""
    start_response("200 OK", PLAIN)
    yield b"begun"
    raise RuntimeError("broken")


def replaced(start_response):
    """Replaces its head, as frameworks do in place of a response that failed."""
    start_response("200 OK", PLAIN)
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        start_response("503 Service Unavailable", PLAIN, sys.exc_info())
    return [b"sorry"]


def tell(event: str) -> None:
    """Prints an event at once."""
    print(event, flush=True, file=sys.stdout)


semantic = WafMiddleware(application, Waf(site="shop", request_body_limit=100_000), on_event=tell)
both = WafMiddleware(application, Waf(mode="both", directives=RULES, response_bodies=True), on_event=tell)
fail_open = WafMiddleware(application, Waf(fail_open=True), on_event=tell)


def lose(event: str) -> None:
    """A sink that fails."""
    raise OSError("disk full")


losing = WafMiddleware(application, Waf(), on_event=lose)
