"""The module without a server."""

import gc
import json
import os
import threading
import unittest

from portcullis import Waf

HOST = (b"host", b"a")


class Module(unittest.TestCase):
    def test_mistakes_say_what_to_do(self) -> None:
        for options, text in [
            ({"mode": "semantik"}, "semantic, crs or both"),
            ({"mode": "both"}, "needs rules"),
            ({"document": "/nonexistent/a.toml"}, "no such file"),
            ({"directives": 'SecRule ARGS "@rx (" "id:1"'}, ":1:"),
        ]:
            with self.assertRaisesRegex(ValueError, text):
                Waf(**options)
        with self.assertRaises(TypeError):
            Waf(request_body_limitt=1)
        with self.assertRaises(OverflowError):
            Waf(request_body_limit=-1)

    def begin(self, waf: Waf, body: bytes):
        fields = [HOST, (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        return waf.begin(b"POST", b"/", "1.1", fields, "127.0.0.1", 1, False, False)

    def test_the_interpreter_runs_while_a_request_is_inspected(self) -> None:
        # This loop turns only while the other thread does not hold the lock.
        body = json.dumps([{"key": f"value {number}"} for number in range(20_000)]).encode()
        exchange = self.begin(Waf(), body)
        exchange.request_body(body)
        count, is_over = 0, threading.Event()
        thread = threading.Thread(target=lambda: (exchange.request_end(), is_over.set()))
        thread.start()
        while not is_over.is_set():
            count += 1
        thread.join()
        self.assertGreater(count, 0)
        self.assertIsNone(exchange.answer())

    def test_one_exchange_on_many_threads(self) -> None:
        waf = Waf()
        body = json.dumps(["value"] * 5_000).encode()
        exchange = self.begin(waf, body)

        def inspect() -> None:
            exchange.request_body(body)
            exchange.request_end()
            exchange.answer()
            exchange.end()

        threads = [threading.Thread(target=inspect) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(exchange.wants_request_body())

    def test_calls_out_of_order_have_no_effect(self) -> None:
        exchange = self.begin(Waf(), b"{}")
        exchange.response_end(True)
        self.assertFalse(exchange.response_body(b"early"))
        exchange.response_head(999, [(b"a\r\nb", b"c")], False)
        exchange.response_head(200, [], False)
        exchange.end()
        exchange.end()
        exchange.request_body(b"late")
        exchange.request_end()
        exchange.passed(1, 1)
        self.assertIsNone(exchange.answer())
        self.assertEqual(exchange.request_id(), "")

    def test_an_exchange_that_is_forgotten_leaves_its_event(self) -> None:
        waf = Waf(mode="both", directives='SecAction "id:1,phase:1,pass,log"')
        self.begin(waf, b"{}")
        gc.collect()
        self.assertEqual(len(waf.take_events()), 1)

    def test_events_that_nobody_takes_are_bounded(self) -> None:
        waf = Waf(mode="both", directives='SecAction "id:1,phase:1,pass,log"')
        for _ in range(10_010):
            waf.begin(b"GET", b"/", "1.1", [HOST], "127.0.0.1", 1, False, False).end()
        taken = len(waf.take_events())
        self.assertLessEqual(taken, 10_000)
        self.assertEqual(taken + waf.events_dropped(), 10_010)

    def test_memory_for_bodies_is_bounded(self) -> None:
        waf = Waf(held_bytes_max=100_000)
        body = b"[" + b"1," * 100_000 + b"1]"
        exchange = self.begin(waf, body)
        self.assertFalse(exchange.request_body(body))
        self.assertEqual(exchange.answer()[0], 503)

    def test_a_reload_keeps_the_policy_that_serves(self) -> None:
        waf = Waf()
        self.assertEqual(waf.reload(), 2)

    def test_a_process_that_forks(self) -> None:
        waf = Waf()
        child = os.fork()
        if child == 0:
            # The child inspects, and has an answer.
            fields = [HOST]
            exchange = waf.begin(b"GET", b"/?q=%3Cscript%3Ealert(1)%3C/script%3E", "1.1", fields, "127.0.0.1", 1, False, False)
            exchange.request_end()
            os._exit(0 if exchange.answer() else 1)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)


if __name__ == "__main__":
    unittest.main()
