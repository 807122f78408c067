#!/usr/bin/env python3
"""The engine of today's ClickHouse (`chdb`, from PyPI) behind HTTP, for tests on loopback:

    chdb_server.py 18124 &
    PORTCULLIS_CLICKHOUSE_PORT=18124 cargo test -p portcullis-clickhouse --test it same:: -- --test-threads=1

It knows no users and no settings of URLs.
"""

import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import chdb
import chdb.session

SESSION = chdb.session.Session(tempfile.mkdtemp())
ONE_AT_A_TIME = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        query = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
        statement = (query + "\n").encode() + body if query else body
        try:
            with ONE_AT_A_TIME:
                status, answer = 200, SESSION.query(statement.decode()).bytes() or b""
        except Exception as error:  # Whatever the engine says is the answer.
            status, answer = 500, str(error).encode()
            print(error, statement[:2000], file=sys.stderr)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


print("chdb", chdb.__version__, "engine", chdb.engine_version, file=sys.stderr)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
