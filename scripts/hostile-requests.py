#!/usr/bin/env python3
"""Sends requests to a server on loopback: honest, hostile, cut off, too long; the same ones in each run.
   hostile-requests.py PORT COUNT"""
import random
import socket
import sys

port, count = int(sys.argv[1]), int(sys.argv[2])
numbers = random.Random(20261127)
PATHS = ["/", "/own", "/leak", "/free", "/" + "a/" * 400, "/%00%ff%zz", "//..//../etc/passwd", "/?q=evil", "/?q=go",
         "/?q=%27%20or%201=1--", "/?" + "a=b&" * 300, "/?q=<script>alert(1)</script>"]
BODIES = [
    ("application/x-www-form-urlencoded", b"a=evil&b=2"),
    ("application/x-www-form-urlencoded", b"a=%" + b"x" * 5000),
    ("application/x-www-form-urlencoded", b"a=" + b"y" * 300000),
    ("application/json", b'{"a":' * 300 + b"1" + b"}" * 300),
    ("application/json", b'{"a":["evil",1e999,"\\ud800"]}'),
    ("text/xml", b"<a><b c='evil'>&#x110000;</b>"),
    ("text/xml", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"),
    ("multipart/form-data; boundary=a", b"--a\r\nContent-Disposition: form-data; name=\"f\"; filename=\"evil.php\"\r\n\r\n<?php\r\n--a--\r\n"),
    ("multipart/form-data; boundary=a", b"--a\r\nContent-Disposition: form-data\r\n\r\n--a\r\n" * 50),
    ("text/plain\xff", bytes(range(256)) * 20),
]


def request():
    method, path = numbers.choice(["GET", "POST", "HEAD", "PUT", "X"]), numbers.choice(PATHS)
    fields = [f"Host: {numbers.choice(['a.example', 'a', ''])}"]
    fields += [f"X-{n}: {'v' * numbers.randrange(200)}" for n in range(numbers.randrange(30))]
    if numbers.random() < 0.3:
        fields.append("Cookie: a=" + "".join(chr(numbers.randrange(32, 255)) for _ in range(60)))
    if numbers.random() < 0.5:
        kind, body = numbers.choice(BODIES)
        fields.append(f"Content-Type: {kind}")
        if numbers.random() < 0.5:
            fields.append("Transfer-Encoding: chunked")
            body = b"".join(b"%x\r\n%s\r\n" % (len(body[at:at + 999]), body[at:at + 999]) for at in range(0, len(body), 999)) + b"0\r\n\r\n"
        else:
            fields.append(f"Content-Length: {len(body)}")
    else:
        body = b""
    fields.append("Connection: close")
    head = f"{method} {path} HTTP/1.{numbers.choice('01')}\r\n" + "\r\n".join(fields) + "\r\n\r\n"
    return head.encode("latin-1") + body


answered = 0
for number in range(count):
    text = request()
    if number % 7 == 6:
        text = text[:numbers.randrange(len(text))]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        try:
            for at in range(0, len(text), 50000):
                connection.sendall(text[at:at + 50000])
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                answered += piece.startswith(b"HTTP/1.1 ")
        except OSError:
            pass
print(f"{count} requests, {answered} answers")
if answered < count / 2:
    sys.exit("the server answered less than half of them")
