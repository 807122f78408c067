#!/usr/bin/env python3
"""An inspection agent for Portcullis, with nothing but the standard library.

    python3 agent.py /run/portcullis/example.sock

It blocks uploads that have a card number in them, gives points to clients that call themselves a bot, and tells the application
who it thinks they are. The protocol is in docs/agents.md, its messages in
crates/portcullis-agent/proto/portcullis/agent/v1/agent.proto. Messages are few and small, so they are taken apart by hand here; a
larger agent will rather use the classes that protoc makes of the schema.
"""

import asyncio
import os
import re
import struct
import sys

WINDOW_BYTES = 64 * 1024
CARD = re.compile(rb"(?<![0-9])(?:[0-9][ -]?){15}[0-9](?![0-9])")
ALLOW, BLOCK, REDIRECT = 0, 1, 2
SET = 0
DONE = 1  # it looks at requests only, and wants to hear no more of an exchange


# Protocol buffers: a message is a row of (number << 3 | type, value); type 0 is a varint, type 2 bytes behind their length.

def varint(number):
    out = bytearray()
    while True:
        byte = number & 0x7F
        number >>= 7
        if not number:
            out.append(byte)
            return bytes(out)
        out.append(byte | 0x80)


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def octets(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def fields(message):
    """The fields of a message by number, each as the list of its values."""
    found, at = {}, 0

    def read():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while at < len(message):
        key = read()
        kind = key & 7
        if kind == 0:
            value = read()
        elif kind == 2:
            length = read()
            value = message[at:at + length]
            at += length
        else:
            raise ValueError(f"a field of type {kind}")
        found.setdefault(key >> 3, []).append(value)
    return found


def one(message, field, default=b""):
    return message.get(field, [default])[-1]


def from_agent(exchange, field, message):
    """A FromAgent behind its length."""
    body = number(1, exchange) + octets(field, message)
    return struct.pack("!I", len(body)) + body


def decision(exchange, verdict=ALLOW, status=0, reason="", score=0, tags=(), request_headers=()):
    message = number(1, verdict) + number(2, status) + (octets(4, reason) if reason else b"") + number(5, score)
    message += b"".join(octets(6, tag) for tag in tags) + number(9, DONE)
    message += b"".join(octets(7, number(1, SET) + octets(2, name) + octets(3, value))
                        for name, value in request_headers)
    return from_agent(exchange, 3, message)


class Exchange:
    def __init__(self, head):
        self.method = one(head, 7)
        self.target = one(head, 8)
        headers = (fields(header) for header in head.get(10, []))
        self.headers = {one(header, 1).lower(): one(header, 2) for header in headers}
        self.body = bytearray()


def decide(exchange_number, exchange):
    """What this agent is about. All else is the protocol."""
    if CARD.search(exchange.body):
        return decision(exchange_number, BLOCK, reason="a card number in an upload", tags=["card-number"])
    if b"bot" in exchange.headers.get(b"user-agent", b"").lower():
        return decision(exchange_number, score=3, tags=["bot"], request_headers=[("x-client-kind", b"bot")])
    return decision(exchange_number, request_headers=[("x-client-kind", b"person")])


async def converse(reader, writer):
    exchanges = {}
    try:
        while True:
            (length,) = struct.unpack("!I", await reader.readexactly(4))
            message = fields(await reader.readexactly(length))
            exchange = one(message, 1, 0)
            if 2 in message:  # Hello
                welcome = number(1, 1) + octets(2, "example-agent.py") + number(3, WINDOW_BYTES)
                writer.write(from_agent(0, 2, welcome))
            elif 3 in message:  # RequestHead
                head = fields(one(message, 3))
                exchanges[exchange] = Exchange(head)
                if one(head, 11, 0):
                    writer.write(decide(exchange, exchanges.pop(exchange)))
            elif 4 in message and exchange in exchanges:  # RequestBody
                piece = fields(one(message, 4))
                data = one(piece, 1)
                exchanges[exchange].body += data
                if one(piece, 2, 0):
                    writer.write(decide(exchange, exchanges.pop(exchange)))
                elif data:
                    writer.write(from_agent(exchange, 4, number(1, len(data))))  # Credit
            elif 7 in message:  # Done: the client has gone, or the time is up
                exchanges.pop(exchange, None)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(path):
    if os.path.exists(path):
        os.unlink(path)
    server = await asyncio.start_unix_server(converse, path)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} SOCKET")
    try:
        asyncio.run(main(sys.argv[1]))
    except KeyboardInterrupt:
        pass
