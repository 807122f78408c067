"""Areas by the name of the file that Python's own server makes of a path."""
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Areas(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.translate_path(self.path)[len(self.directory):]
        self.send_response(410 if path.startswith("/static/") else 451 if path.startswith("/admin") else 409)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", PORT), Areas).serve_forever()
