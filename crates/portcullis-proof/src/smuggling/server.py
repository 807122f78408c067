"""A back end on Python's own server; it reads bodies with a length and with chunks."""
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

seen = 0
lock = threading.Lock()


class Counted(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def any_method(self):
        global seen
        with lock:
            seen += 1
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    break
        else:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b"" if self.command == "HEAD" else b"ok"
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(body)

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.any_method
        raise AttributeError(name)

    def log_message(self, *_):
        pass


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(seen).encode())

    def log_message(self, *_):
        pass


threading.Thread(target=ThreadingHTTPServer(("127.0.0.1", PAGE), Page).serve_forever, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", PORT), Counted).serve_forever()
