"""The program of README.md does what stands there."""

import re
import threading
import unittest
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

from servers import get


class Quiet(WSGIRequestHandler):
    """Does not log requests."""

    def log_message(self, *_: object) -> None:
        pass


class Readme(unittest.TestCase):
    def test_a_first_block(self) -> None:
        text = (Path(__file__).parents[1] / "README.md").read_text()
        program = re.search(r"```python\n(.*?)```", text, re.DOTALL)
        attack = re.search(r"curl -i 'http://127.0.0.1:8000(/\?q=%3C[^']*)'", text)
        assert program is not None and attack is not None
        told: list[str] = []
        names: dict = {"__name__": "app", "print": told.append}
        exec(program[1], names)
        with make_server("127.0.0.1", 0, names["app"], handler_class=Quiet) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                self.assertEqual(get(server.server_port, "/?q=shoes"), (200, b"hello\n"))
                self.assertEqual(get(server.server_port, attack[1])[0], 403)
            finally:
                server.shutdown()
                thread.join()
        self.assertEqual(len(told), 1)


if __name__ == "__main__":
    unittest.main()
