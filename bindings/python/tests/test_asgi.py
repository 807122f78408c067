"""The ASGI middleware in uvicorn, with Starlette."""

import asyncio
import json
import socket
import threading
import unittest

from portcullis import Waf
from portcullis.asgi import WafMiddleware
from servers import Uvicorn, ask, get, post
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

ATTACK = "1' UNION SELECT password FROM users-- -"
QUERY = "/?q=1%27%20UNION%20SELECT%20password%20FROM%20users--%20-"
MULTIPART = "multipart/form-data; boundary=x"
RULES = """
SecRule RESPONSE_BODY "@contains root:x:0:0" "id:7,phase:4,deny,status:500"
SecRule RESPONSE_HEADERS:X-Leak "@streq yes" "id:9,phase:3,deny,status:502"
"""
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"


def multipart(value: str) -> bytes:
    """A form with one field."""
    return f'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n{value}\r\n--x--\r\n'.encode()


class Served(unittest.TestCase):
    """A server for each test."""

    def serve(self, waf: Waf, **options: float) -> int:
        self.waf = waf
        self.events: list[dict] = []
        self.told = threading.Condition()
        self.go_on = threading.Event()
        routes = [
            Route("/", self.echo, methods=["GET", "POST"]),
            Route("/form", self.form, methods=["POST"]),
            Route("/leak", self.leak),
            Route("/head", self.head),
            Route("/stream", self.stream),
            Route("/broken", self.broken),
            Route("/broken-later", self.broken_later),
        ]
        self.server = Uvicorn(WafMiddleware(Starlette(routes=routes), waf, on_event=self.tell, **options))
        self.port = self.server.port
        self.addCleanup(self.server.stop)
        return self.port

    def tell(self, event: str) -> None:
        with self.told:
            self.events.append(json.loads(event))
            self.told.notify_all()

    def wait(self, count: int) -> list[dict]:
        with self.told:
            self.assertTrue(self.told.wait_for(lambda: len(self.events) >= count, 60), self.events)
        return self.events

    async def echo(self, request: Request) -> Response:
        return PlainTextResponse(await request.body() or b"hello")

    async def form(self, request: Request) -> Response:
        async with request.form() as form:
            return PlainTextResponse(str(form["a"]))

    async def leak(self, request: Request) -> Response:
        return PlainTextResponse("root:x:0:0:root:/root:/bin/bash\n")

    async def head(self, request: Request) -> Response:
        return PlainTextResponse("secret", headers={"X-Leak": "yes"})

    async def stream(self, request: Request) -> Response:
        async def pieces():
            yield b"first "
            await asyncio.get_running_loop().run_in_executor(None, self.go_on.wait, 60)
            yield b"last"

        return StreamingResponse(pieces(), media_type="text/html")

    async def broken(self, request: Request) -> Response:
        raise RuntimeError("broken")

    async def broken_later(self, request: Request) -> Response:
        async def pieces():
            yield b"begun"
            raise RuntimeError("broken")

        return StreamingResponse(pieces(), media_type="text/html")

    def test_attacks_are_blocked_wherever_they_are(self) -> None:
        port = self.serve(Waf(site="shop"))
        self.assertTrue(get(port, "/?q=shoes")[1].endswith(b"hello"))
        self.assertTrue(post(port, "/form", MULTIPART, multipart("shoes"))[1].endswith(b"shoes"))
        status, page = get(port, QUERY)
        self.assertEqual(status, 403)
        self.assertIn(b"This request was blocked", page)
        for kind, body in [
            ("application/json", json.dumps({"note": "<script>alert(document.cookie)</script>"}).encode()),
            ("application/x-www-form-urlencoded", f"a={ATTACK}".encode()),
            (MULTIPART, multipart(ATTACK)),
        ]:
            self.assertEqual(post(port, "/", kind, body)[0], 403, kind)
        chunk = f"{len(ATTACK):x}\r\n{ATTACK}\r\n0\r\n\r\n".encode()
        self.assertEqual(ask(port, CHUNKED + chunk)[0], 403)
        self.assertTrue(all(event["client"]["addr"] == "127.0.0.1" for event in self.wait(5)))

    def test_bodies_go_on_as_they_came(self) -> None:
        port = self.serve(Waf())
        body = bytes(range(97, 123)) * 10_000
        self.assertTrue(post(port, "/", "text/plain", body)[1].endswith(body))
        self.assertTrue(ask(port, CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")[1].endswith(b"abcde"))

    def test_limits(self) -> None:
        port = self.serve(Waf(request_body_limit=1000), idle_timeout=0.3)
        self.assertEqual(post(port, "/", "text/plain", b"a" * 1000)[0], 200)
        self.assertEqual(post(port, "/", "text/plain", b"a" * 1001)[0], 413)
        self.assertEqual(ask(port, CHUNKED + (b"64\r\n" + b"a" * 100 + b"\r\n") * 11 + b"0\r\n\r\n")[0], 413)
        slow = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 10\r\n\r\nabc"
        self.assertEqual(ask(port, slow)[0], 408)
        self.assertIn('reason="timeout"', self.waf.metrics())

    def test_responses_are_inspected(self) -> None:
        port = self.serve(Waf(mode="both", directives=RULES, response_bodies=True))
        status, answer = get(port, "/leak")
        self.assertEqual(status, 500)
        self.assertNotIn(b"root:x", answer)
        self.assertEqual(self.wait(1)[0]["matches"][0]["rule_id"], 7)
        status, answer = get(port, "/head")
        self.assertEqual(status, 502)
        self.assertNotIn(b"secret", answer)

    def test_a_stream_that_pauses_is_not_held_for_ever(self) -> None:
        port = self.serve(Waf())
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            answer = b""
            while b"first " not in answer:
                answer += connection.recv(65536)
            # It came while the application still waits.
            self.go_on.set()
            while piece := connection.recv(65536):
                answer += piece
        self.assertIn(b"last", answer)

    def test_a_client_that_goes_leaves_an_event(self) -> None:
        port = self.serve(Waf(mode="both", directives='SecAction "id:1,phase:1,pass,log"'))
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
        self.assertIn("request_body_cut", self.wait(1)[0]["integration"]["blind_spots"])

    def test_applications_that_fail(self) -> None:
        for waf in [Waf(), Waf(mode="both", directives=RULES, response_bodies=True)]:
            port = self.serve(waf)
            self.assertEqual(get(port, "/broken")[0], 500)
            self.assertEqual(get(port, "/broken-later")[0], 500)
            self.assertEqual(get(port, "/")[0], 200)

    def test_what_cannot_be_decoded_is_refused_unless_told_otherwise(self) -> None:
        fields = "Content-Encoding: compress\r\n"
        self.assertGreaterEqual(post(self.serve(Waf()), "/", "text/plain", b"\x1f\x9d", fields)[0], 400)
        self.assertEqual(post(self.serve(Waf(fail_open=True)), "/", "text/plain", b"\x1f\x9d", fields)[0], 200)


class Scopes(unittest.TestCase):
    """Scopes that uvicorn does not have, or not by default."""

    SCOPE = {
        "type": "http",
        "http_version": "2",
        "method": "GET",
        "scheme": "https",
        "path": "/",
        "query_string": b"",
        "headers": [(b"host", b"a"), (b"content-type", b"text/plain")],
        "client": ("127.0.0.1", 5),
    }

    def run_app(self, app, scope: dict, messages: list[dict], waf: Waf | None = None) -> list[dict]:
        sent: list[dict] = []
        waiting = list(messages)

        async def receive():
            return waiting.pop(0)

        async def send(message):
            sent.append(message)

        asyncio.run(WafMiddleware(app, waf or Waf())({**self.SCOPE, **scope}, receive, send))
        return sent

    def test_bodies_of_http2_need_no_field(self) -> None:
        async def app(scope, receive, send):
            body = (await receive())["body"]
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": body})

        attack = {"type": "http.request", "body": ATTACK.encode(), "more_body": False}
        for method in ["GET", "POST"]:
            sent = self.run_app(app, {"method": method}, [attack])
            self.assertEqual(sent[0]["status"], 403, method)
        sent = self.run_app(app, {}, [{"type": "http.request", "body": b"", "more_body": False}])
        self.assertEqual([sent[0]["status"], sent[1]["body"]], [200, b""])

    def test_hints_before_the_response_hide_nothing(self) -> None:
        html = [(b"content-type", b"text/html")]

        async def app(scope, receive, send):
            await send({"type": "http.response.push", "path": "/a", "headers": []})
            await send({"type": "http.response.start", "status": 200, "headers": html})
            await send({"type": "http.response.body", "body": b"root:x:", "more_body": True})
            await send({"type": "http.response.body", "body": b"0:0:"})

        waf = Waf(directives=RULES, response_bodies=True)
        sent = self.run_app(app, {}, [{"type": "http.request", "body": b""}], waf)
        self.assertEqual([message["type"].split(".")[-1] for message in sent], ["push", "start", "body"])
        self.assertEqual(sent[1]["status"], 500)

    def test_handshakes_of_websockets_are_inspected(self) -> None:
        async def app(scope, receive, send):
            await send({"type": "websocket.accept"})

        scope = {
            "type": "websocket",
            "http_version": "1.1",
            "scheme": "ws",
            "path": "/chat",
            "query_string": QUERY[2:].encode(),
            "headers": [(b"host", b"a"), (b"upgrade", b"websocket"), (b"connection", b"Upgrade")],
        }
        connect = [{"type": "websocket.connect"}]
        self.assertEqual(self.run_app(app, scope, connect), [{"type": "websocket.close", "code": 1008}])
        self.assertEqual(self.run_app(app, {**scope, "query_string": b"q=1"}, connect), [{"type": "websocket.accept"}])

    def test_exchanges_end_with_what_is_shown(self) -> None:
        logging = 'SecAction "id:1,phase:1,pass,log"'
        told: list[int] = []
        for directives, response_bodies, answer in [
            (logging, False, [("start", {"status": 200, "headers": []}), ("body", {"body": b"a"})]),
            (logging + RULES, True, [
                ("start", {"status": 200, "headers": [(b"content-type", b"text/plain")]}),
                ("body", {"body": b"a", "more_body": True}),
                ("body", {"body": b"b"}),
            ]),
            (logging + RULES, True, [("start", {"status": 200, "headers": [(b"x-leak", b"yes")]}), ("body", {})]),
        ]:
            waf = Waf(mode="crs", directives=directives, response_bodies=response_bodies)

            async def app(scope, receive, send):
                for kind, message in answer:
                    await send({"type": f"http.response.{kind}", **message})
                # A task that goes on behind the response.
                told.append(len(waf.take_events()))

            self.run_app(app, {}, [{"type": "http.request", "body": b""}], waf)
        self.assertEqual(told, [1, 1, 1])

        async def chat(scope, receive, send):
            await send({"type": "websocket.accept"})
            told.append(len(waf.take_events()))

        waf = Waf(mode="crs", directives=logging)
        self.run_app(chat, {"type": "websocket", "http_version": "1.1"}, [{"type": "websocket.connect"}], waf)
        self.assertEqual(told, [1, 1, 1, 1])

    def test_scopes_of_other_kinds_go_on(self) -> None:
        async def app(scope, receive, send):
            await send({"type": "lifespan.startup.complete"})

        self.assertEqual(self.run_app(app, {"type": "lifespan"}, []), [{"type": "lifespan.startup.complete"}])


if __name__ == "__main__":
    unittest.main()
