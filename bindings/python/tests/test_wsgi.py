"""The WSGI middleware in gunicorn and waitress."""

import json
import socket
import unittest

from servers import WsgiServer, ask, get, post

ATTACK = "1' UNION SELECT password FROM users-- -"
QUERY = "/?q=1%27%20UNION%20SELECT%20password%20FROM%20users--%20-"
BODIES = [
    ("application/json", json.dumps({"note": "<script>alert(document.cookie)</script>"})),
    ("multipart/form-data; boundary=x", f'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n{ATTACK}\r\n--x--\r\n'),
    ("application/x-www-form-urlencoded", f"a={ATTACK}"),
]
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


if __name__ == "__main__":
    unittest.main()
