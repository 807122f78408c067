"""Real servers on loopback, and a client that writes bytes."""

import io
import re
import signal
import socket
import subprocess
import sys
import threading
from http.client import HTTPResponse
from pathlib import Path

import uvicorn

HERE = Path(__file__).parent
PATIENCE = 60


class _Answer(io.BytesIO):
    """Received bytes in place of a connection."""

    def makefile(self, *_: object) -> io.BytesIO:
        return self


def ask(port: int, data: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to a request that closes its connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        answer = b""
        try:
            connection.sendall(data)
            while piece := connection.recv(65536):
                answer += piece
        except (ConnectionResetError, BrokenPipeError):
            pass
    response = HTTPResponse(_Answer(answer))
    response.begin()
    return response.status, response.read()


def get(port: int, target: str, fields: str = "") -> tuple[int, bytes]:
    """The answer to a request without a body."""
    return ask(port, f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n".encode())


def post(port: int, target: str, kind: str, body: bytes, fields: str = "") -> tuple[int, bytes]:
    """The answer to a request with a body."""
    head = f"POST {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: {kind}\r\n{fields}"
    return ask(port, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


class WsgiServer:
    """A server with an application of wsgi_app.py, in a process of its own."""

    COMMANDS = {
        "gunicorn": ["gunicorn", "--bind", "127.0.0.1:0", "--workers", "1", "--threads", "2"],
        # The application is loaded before the server forks.
        "preloaded gunicorn": ["gunicorn", "--bind", "127.0.0.1:0", "--workers", "1", "--preload"],
        "waitress": ["waitress", "--listen", "127.0.0.1:0"],
    }

    def __init__(self, name: str, application: str) -> None:
        command = [sys.executable, "-u", "-m", *self.COMMANDS[name], f"wsgi_app:{application}"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=HERE, stderr=pipe, stdout=pipe, text=True)
        assert self._process.stderr is not None
        said = ""
        for line in self._process.stderr:
            said += line
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise RuntimeError(f"{name} did not start: {said}")
        # Nobody reads the rest; it must not fill its pipe.
        self._drain = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._drain.start()

    def stop(self) -> str:
        """Ends it; what the application printed. The second call has no effect."""
        assert self._process.stdout is not None and self._process.stderr is not None
        if self._process.stdout.closed:
            return ""
        self._process.send_signal(signal.SIGTERM)
        printed = self._process.stdout.read()
        self._process.wait(PATIENCE)
        self._drain.join(PATIENCE)
        self._process.stdout.close()
        self._process.stderr.close()
        return printed


class Uvicorn:
    """uvicorn with this application, in a thread."""

    def __init__(self, app: object) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()

    def stop(self) -> None:
        """Ends it."""
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        self._socket.close()
