"""The WSGI middleware in gunicorn and waitress."""

import io
import json
import socket
import time
import unittest
from wsgiref.util import setup_testing_defaults

from portcullis import Waf
from portcullis.wsgi import WafMiddleware
from servers import WsgiServer, ask, get, post

ATTACK = "1' UNION SELECT password FROM users-- -"
QUERY = "/?q=1%27%20UNION%20SELECT%20password%20FROM%20users--%20-"
BODIES = [
    ("application/json", json.dumps({"note": "<script>alert(document.cookie)</script>"})),
    ("multipart/form-data; boundary=x", f'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n{ATTACK}\r\n--x--\r\n'),
    ("application/x-www-form-urlencoded", f"a={ATTACK}"),
]
RULES = 'SecRule RESPONSE_BODY "@contains root:x:0:0" "id:7,phase:4,deny,status:500"'
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"


class Served(unittest.TestCase):
    """Tests with a server."""

    def serve(self, server: str, application: str) -> int:
        self.server = WsgiServer(server, application)
        self.addCleanup(self.server.stop)
        return self.server.port

    def events(self) -> list[dict]:
        """Stops the server; the events that it told."""
        return [json.loads(line) for line in self.server.stop().splitlines()]


class Semantic(Served):
    def test_attacks_are_blocked_wherever_they_are(self) -> None:
        for server in WsgiServer.COMMANDS:
            with self.subTest(server):
                port = self.serve(server, "semantic")
                self.assertEqual(get(port, "/?q=shoes")[0], 200)
                status, page = get(port, QUERY)
                self.assertEqual(status, 403)
                self.assertIn(b"This request was blocked", page)
                for kind, body in BODIES:
                    self.assertEqual(post(port, "/", kind, body.encode())[0], 403, kind)
                chunk = f"{len(ATTACK):x}\r\n{ATTACK}\r\n0\r\n\r\n".encode()
                self.assertEqual(ask(port, CHUNKED + chunk)[0], 403)
                events = self.events()
                self.assertEqual(len(events), 5)
                for event in events:
                    self.assertEqual(event["integration"]["kind"], "embedded")
                    self.assertEqual(event["client"]["addr"], "127.0.0.1")

    def test_the_path_is_inspected_as_it_came(self) -> None:
        port = self.serve("gunicorn", "semantic")
        self.assertEqual(get(port, "/%2e%2e/%2e%2e/etc/passwd")[0], 403)
        self.assertEqual(self.events()[0]["request"]["target"], "/%2e%2e/%2e%2e/etc/passwd")

    def test_bodies_go_on_as_they_came(self) -> None:
        for server in ["gunicorn", "waitress"]:
            with self.subTest(server):
                port = self.serve(server, "semantic")
                body = b"".join(b"line %d\n" % number for number in range(5000))
                self.assertTrue(post(port, "/", "text/plain", body)[1].endswith(body))
                self.assertIn(b"3\n4\n", post(port, "/lines", "text/plain", b"ab\ncde\n")[1])
                answer = ask(port, CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")[1]
                self.assertTrue(answer.endswith(b"abcde"), answer)
                self.assertTrue(post(port, "/unread", "text/plain", b"abc")[1].endswith(b"not read"))
                self.assertIn(b"la", get(port, "/late")[1])

    def test_bodies_over_the_limit_are_refused(self) -> None:
        port = self.serve("gunicorn", "semantic")
        self.assertEqual(post(port, "/", "text/plain", b"a" * 100_000)[0], 200)
        self.assertEqual(post(port, "/", "text/plain", b"a" * 100_001)[0], 413)
        chunk = b"a" * 1000
        self.assertEqual(ask(port, CHUNKED + (b"3e8\r\n" + chunk + b"\r\n") * 101 + b"0\r\n\r\n")[0], 413)

    def test_a_body_that_breaks_off_reaches_nobody(self) -> None:
        port = self.serve("gunicorn", "semantic")
        head = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 10\r\n\r\nabc"
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(head)
            connection.shutdown(socket.SHUT_WR)
            self.assertIn(b" 400 ", connection.recv(65536))
        self.assertEqual(get(port, "/")[0], 200)

    def test_what_cannot_be_decoded_is_refused_unless_told_otherwise(self) -> None:
        fields = "Content-Encoding: compress\r\n"
        port = self.serve("gunicorn", "semantic")
        self.assertGreaterEqual(post(port, "/", "text/plain", b"\x1f\x9d", fields)[0], 400)
        self.assertEqual(len(self.events()), 1)
        port = self.serve("gunicorn", "fail_open")
        self.assertEqual(post(port, "/", "text/plain", b"\x1f\x9d", fields)[0], 200)

    def test_a_sink_that_fails_stops_nothing(self) -> None:
        port = self.serve("gunicorn", "losing")
        self.assertEqual(get(port, QUERY)[0], 403)
        self.assertEqual(get(port, "/")[0], 200)


class Both(Served):
    def test_rules_inspect_requests_and_responses(self) -> None:
        for server in ["gunicorn", "waitress"]:
            with self.subTest(server):
                port = self.serve(server, "both")
                self.assertEqual(get(port, "/", "X-Test: bad\r\n")[0], 418)
                self.assertEqual(get(port, "/head")[0], 502)
                for path in ["/leak", "/written"]:
                    status, answer = get(port, path)
                    self.assertEqual(status, 500, path)
                    self.assertNotIn(b"root:x", answer)
                self.assertTrue(get(port, "/")[1].endswith(b"hello"))

    def test_applications_that_fail(self) -> None:
        for application in ["semantic", "both"]:
            with self.subTest(application):
                port = self.serve("gunicorn", application)
                self.assertEqual(get(port, "/broken")[0], 500)
                # Nothing of it was sent before it broke, unless it went on as it came.
                self.assertEqual(get(port, "/broken-later")[0], 500)
                status, answer = get(port, "/replaced")
                self.assertEqual(status, 503)
                self.assertTrue(answer.endswith(b"sorry"))
                self.assertEqual(get(port, "/")[0], 200)


class Called(unittest.TestCase):
    """Applications that are called without a server."""

    def call(self, app, waf: Waf, body: bytes = b"", **environ: object) -> tuple[str, bytes]:
        made: dict = {"REQUEST_METHOD": "POST", "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": "text/plain"}
        made |= {"wsgi.input": io.BytesIO(body), **environ}
        setup_testing_defaults(made)
        heads: list[str] = []
        pieces = WafMiddleware(app, waf)(made, lambda status, fields, exc_info=None: heads.append(status))
        text = b"".join(pieces)
        if hasattr(pieces, "close"):
            pieces.close()
        return heads[0], text

    def test_what_an_application_returns_is_closed(self) -> None:
        closed: list[str] = []

        class Pieces:
            def __init__(self, name: str) -> None:
                self.name = name

            def __iter__(self):
                yield b"begun"
                if self.name == "broken":
                    raise RuntimeError("broken")

            def close(self) -> None:
                closed.append(self.name)

        def app(environ, start_response):
            start_response("200 OK", [("Content-Type", "text/plain")])
            return Pieces(environ["PATH_INFO"][1:])

        waf = Waf(directives=RULES, response_bodies=True)
        self.assertEqual(self.call(app, waf, PATH_INFO="/whole"), ("200 OK", b"begun"))
        with self.assertRaises(RuntimeError):
            self.call(app, waf, PATH_INFO="/broken")
        self.assertEqual(closed, ["whole", "broken"])

    def test_lines_of_bodies(self) -> None:
        # Longer than the limit, which lets the rest go on: lines begin in what was held and end behind it.
        directives = "SecRequestBodyAccess On\nSecRequestBodyLimit 1000\nSecRequestBodyLimitAction ProcessPartial"
        body = b"".join(b"%d %s\n" % (number, b"x" * number) for number in range(200)) + b"the last"
        read: dict[str, list[bytes]] = {}

        def app(environ, start_response):
            start_response("200 OK", [])
            stream = environ["wsgi.input"]
            read["lines"] = [stream.readline() for _ in range(3)]
            read["short"] = [stream.readline(5), stream.readline(0), stream.readline(1000)]
            read["rest"] = list(stream)
            return [b""]

        for waf in [Waf(), Waf(directives=directives)]:
            self.assertEqual(self.call(app, waf, body)[0], "200 OK")
            self.assertEqual(read["lines"], [b"0 \n", b"1 x\n", b"2 xx\n"])
            self.assertEqual(read["short"], [b"3 xxx", b"", b"\n"])
            self.assertEqual(b"".join([*read["lines"], *read["short"], *read["rest"]]), body)
            self.assertEqual(len(read["rest"]), 197)

    def test_many_lines_take_no_time(self) -> None:
        body = b"x" * 5_000_000

        def app(environ, start_response):
            start_response("200 OK", [])
            return [b"%d" % len(environ["wsgi.input"].readline())]

        began = time.process_time()
        self.assertEqual(self.call(app, Waf(), body)[1], b"5000000")
        # Read byte by byte it takes this process more than 5 s.
        self.assertLess(time.process_time() - began, 3)

    def test_requests_as_other_servers_show_them(self) -> None:
        """nginx names length and type of a body twice to uWSGI; behind HTTP/2 there are fields of other connections."""

        def app(environ, start_response):
            start_response("200 OK", [])
            return [environ["wsgi.input"].read()]

        body, attack = b"a=b", ("a=" + ATTACK).encode()
        kind = "application/x-www-form-urlencoded"
        nginx = {
            "CONTENT_TYPE": kind,
            "HTTP_CONTENT_TYPE": kind,
            "HTTP_HOST": "a",
            "HTTP_CONNECTION": "keep-alive",
            "HTTP_KEEP_ALIVE": "timeout=5",
            "uwsgi.version": b"2.0.21",
        }
        for version in ["HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/2.0", "HTTP/3.0"]:
            for content, status in [(body, "200 OK"), (attack, "403 Forbidden")]:
                with self.subTest(version, status=status):
                    made = {**nginx, "SERVER_PROTOCOL": version, "HTTP_CONTENT_LENGTH": str(len(content))}
                    self.assertEqual(self.call(app, Waf(), content, **made)[0], status)
        # A body in chunks, which nginx has put together.
        chunks = {**nginx, "HTTP_TRANSFER_ENCODING": "chunked"}
        self.assertEqual(self.call(app, Waf(), body, **chunks), ("200 OK", body))
        self.assertEqual(self.call(app, Waf(), attack, **chunks)[0], "403 Forbidden")

    def test_what_contradicts_itself_is_refused(self) -> None:
        def app(environ, start_response):
            start_response("200 OK", [])
            return []

        for fields in [{"HTTP_CONTENT_LENGTH": "4"}, {"HTTP_TRANSFER_ENCODING": "chunked"}]:
            with self.subTest(fields):
                self.assertEqual(self.call(app, Waf(), b"a=b", **fields)[0], "400 Bad Request")


if __name__ == "__main__":
    unittest.main()
