#!/usr/bin/env python3
"""Measures `portcullis advise` on false alarms, and prints a table of them in Markdown.

    advice-table.py BINARY --data DIR --config FILE [--config FILE]...  alarms that a data folder has
    advice-table.py BINARY --crs DIR [--paranoia N]                     honest requests of the corpora

Alarms are requests that a document stops. Each kind of them gets advice once: in a mode with the semantic detector a
kind is a set of classes with the places that they were found in, in mode `crs` a set of rules with their targets. With
several documents (the same sites in another mode) the recorded requests get advice for each. Requests that
a document lets through are left out and counted.

With --crs, Portcullis in mode `both` first records the honest whole requests of the corpora (folder
PORTCULLIS_CORPORA). All traffic is on loopback."""
import argparse
import base64
import collections
import http.server
import json
import os
import pathlib
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

CONFIG = """workers = 1
data = {{ folder = "data" }}
[[listeners]]
address = "127.0.0.1:{port}"
[[sites]]
name = "shop"
hosts = ["*"]
upstream = "application"
mode = "both"
rules = {{ crs = "{crs}", paranoia = {paranoia} }}
[upstreams.application]
endpoints = ["http://127.0.0.1:{application}"]
"""
# Seconds until a debug build has compiled the rules.
START_MAX = 120
# Requests of a kind that are tried until the document stops one.
TRIES_MAX = 5


class Application(http.server.BaseHTTPRequestHandler):
    """Answers every request with 200."""
    protocol_version = "HTTP/1.1"

    def handle_one_request(self):
        self.close_connection = True
        if self.rfile.readline(65537) and self.read_rest():
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def read_rest(self):
        """True if the request has come to its end."""
        length, chunked = 0, False
        while (field := self.rfile.readline(65537)) not in (b"\r\n", b"\n", b""):
            name, _, value = field.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            chunked |= name.lower() == b"transfer-encoding"
        while chunked and (size := int(self.rfile.readline().split(b";")[0] or b"0", 16)):
            self.rfile.read(size + 2)
        return chunked or len(self.rfile.read(length)) == length


def raw(request):
    """A request of the corpora as it goes over the wire."""
    body = base64.b64decode(request["body_b64"]) if "body_b64" in request else request.get("body", "").encode()
    framing = ("content-length", "transfer-encoding", "connection", "expect", "te", "trailer", "host", "upgrade")
    fields = [(name, value) for name, value in request["headers"] if name.lower() not in framing]
    host = [value for name, value in request["headers"] if name.lower() == "host"] or ["shop.example"]
    lines = [f"{request['method']} {request['uri']} HTTP/1.1", f"Host: {host[0]}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in fields]
    if body or request["method"] not in ("GET", "HEAD"):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def send(port, message):
    """The status of the answer; 0: none."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(message)
            return int((connection.recv(64) + b"HTTP/1.1 000 ")[9:12])
    except (OSError, ValueError):
        return 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def record(args, folder):
    """Sends the honest requests through Portcullis: the document, and the data folder."""
    corpora = os.environ.get("PORTCULLIS_CORPORA") or sys.exit("set PORTCULLIS_CORPORA to the folder of the corpora")
    application = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Application)
    threading.Thread(target=application.serve_forever, daemon=True).start()
    port = free_port()
    document = folder / "portcullis.toml"
    document.write_text(CONFIG.format(port=port, crs=os.path.abspath(args.crs), paranoia=args.paranoia,
                                      application=application.server_address[1]))
    server = subprocess.Popen([args.binary, "run", "--config", document], cwd=folder, stderr=subprocess.PIPE)
    answers = collections.Counter()
    try:
        deadline = time.monotonic() + START_MAX
        while send(port, b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n") != 200:
            if server.poll() is not None or time.monotonic() > deadline:
                server.kill()
                sys.exit(f"Portcullis does not serve: {server.stderr.read().decode()}")
            time.sleep(0.2)
        threading.Thread(target=server.stderr.read, daemon=True).start()
        for file in ("benign/synthetic-requests.jsonl", "lifelike/requests.jsonl"):
            # Texts have other signs that end a line, too.
            with open(pathlib.Path(corpora, file), encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    answers[send(port, raw(json.loads(line)))] += 1
    finally:
        server.terminate()
        server.wait(60)
        application.shutdown()
    print(f"{sum(answers.values())} honest requests, {answers[403]} stopped; answers: {dict(answers)}\n")
    return [document], folder / "data"


def kind(event, mode):
    """The kind of an alarm, and the fields that it is made of; none if nothing that can be excluded was found."""
    if mode == "crs":
        matches = event.get("matches", []) + event.get("also_matched", [])
        rules = [(each["rule_id"], each.get("target", "")) for each in matches if each.get("points", 0) > 0]
        fields = tuple(sorted(set(rules)))
        return tuple(sorted({(rule, target.split(":")[0]) for rule, target in rules})), fields
    scores = event.get("scores", {}).get("semantic", [])
    over = [each for each in scores if each.get("outcome") in ("blocked", "detected")]
    fields = tuple(sorted({(each["class"], each["place"], each.get("name", "")) for each in over}))
    return tuple(sorted({field[:2] for field in fields})), fields


def alarms(events, modes):
    """Alarms by kind, those with the fewest parts first."""
    kinds = {}
    for event in events:
        what, fields = kind(event, modes.get(event["site"], "crs"))
        if what:
            kinds.setdefault(what, []).append((event, fields))
    return sorted(kinds.items(), key=lambda item: (len(item[0]), item[0]))


def term(exclusion):
    """What an exclusion names, but for its path."""
    if "rule_id" in exclusion:
        return f"{exclusion['rule_id']} {exclusion.get('target', 'whatever it matches')}"
    return f"{exclusion.get('kind') or exclusion.get('class')} {exclusion.get('location', '')}"


def result(advice):
    """The candidate that is shown, and the reason if it is not recommended."""
    candidates = advice["candidates"]
    clearing = [each for each in candidates if each["clears"]]
    best = next((each for each in clearing if each["recommended"]), None)
    if best:
        return best, "yes"
    if not clearing:
        return None, "no: none clears it"
    if not advice["probes"]:
        return clearing[0], "no: its fields take no attack"
    least = min(clearing, key=lambda each: each["probed"]["others"]["lost"])
    return least, "no: others are lost"


def cpu_seconds():
    """Of the processes that have ended: what else the machine does is not counted."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def short(text, most=150):
    return (text if len(text) <= most else text[:most - 1] + "…").replace("|", "\\|")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("--crs", help="folder of the CRS")
    parser.add_argument("--paranoia", type=int, default=1)
    parser.add_argument("--data", help="data folder with events")
    parser.add_argument("--config", action="append", help="document whose false alarms get advice")
    parser.add_argument("--alarms", type=int, default=0, help="alarms of each document, at most; 0: one of each kind")
    parser.add_argument("--filter", default="verdict in (deny, detect)", help="events that alarms are taken from")
    parser.add_argument("--stored", type=int, default=5000, help="stored requests to try exclusions on, at most")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the advice as JSON")
    args = parser.parse_args()
    if bool(args.crs) == bool(args.data) or bool(args.config) != bool(args.data):
        parser.error("either --crs, or --data and --config")
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        documents, data = (args.config, args.data) if args.data else record(args, pathlib.Path(folder))
        asked = [args.binary, "events", "--data", data, args.filter, "--json", "--limit", "20000"]
        lines = subprocess.run(asked, check=True, capture_output=True).stdout.splitlines()
        table(args, documents, data, [json.loads(line) for line in lines])


def table(args, documents, data, events):
    print("| alarm | recommended | exclusions | own attacks lost | others lost | stored let through | CPU s |")
    print("|---|---|---|--:|--:|--:|--:|")
    times, recommended, tried, left = [], 0, 0, collections.Counter()
    for document in documents:
        sites = tomllib.loads(pathlib.Path(document).read_text(encoding="utf-8")).get("sites", [])
        modes = {site["name"]: site.get("mode", "crs" if "rules" in site else "semantic") for site in sites}
        of_document = 0
        for _, likes in alarms(events, modes):
            if args.alarms and of_document == args.alarms:
                break
            # The first of the kind that the document stops.
            for event, fields in likes[:TRIES_MAX]:
                started = cpu_seconds()
                asked = [args.binary, "advise", event["request_id"], "--data", data, "--config", document, "--json"]
                asked += ["--limit", str(args.stored)]
                answer = subprocess.run(asked, capture_output=True, text=True)
                took = cpu_seconds() - started
                if answer.returncode == 0:
                    break
                left[answer.stderr.strip().split(": ", 2)[-1][:100]] += 1
            else:
                continue
            of_document, tried = of_document + 1, tried + 1
            times.append(took)
            advice = json.loads(answer.stdout)
            best, said = result(advice)
            recommended += said == "yes"
            mode = modes[event["site"]]
            if args.keep:
                stem = f"{mode}-{tried:02}-{event['request_id']}"
                (args.keep / f"{stem}.json").write_text(json.dumps({"event": event, "advice": advice}, indent=1))
            path = event["request"]["target"].split("?")[0]
            what = ", ".join(":".join(map(str, field)).rstrip(":") for field in fields)
            row = [f"`{mode}` {event['site']} {event['request']['method']} {short(path, 40)}: {short(what)}", said]
            if best:
                own, others, stored = best["probed"]["own"], best["probed"]["others"], best["stored"]
                row += [f"{best['reach']}: {short(', '.join(map(term, best['exclusions'])))}",
                        f"{own['lost']} of {own['stopped']}", f"{others['lost']} of {others['stopped']}",
                        f"{stored['let_through']} of {stored['stopped']}"]
            else:
                row += ["", "", "", ""]
            print("| " + " | ".join([*row, f"{took:.1f}"]) + " |", flush=True)
    for reason, count in left.most_common():
        print(f"\nleft out, {count}: {reason}")
    if tried:
        middle = statistics.median(times)
        print(f"\n{recommended} of {tried} alarms, each of another kind, have a recommended exclusion; "
              f"{middle:.1f} s of CPU each (median), {max(times):.1f} s at most")


main()
