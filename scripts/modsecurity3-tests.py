#!/usr/bin/env python3
"""ModSecurity 3's own regression cases through the C interface of libmodsecurity, ours or the original.

    modsecurity3-tests.py TESTS [--library FILE] [--known FILE] [--count N] [--verbose] [CASE ...]

TESTS is test/test-cases/regression of ModSecurity's source (tag v3.0.9). A case passes if its rules load, or do not where
it expects a mistake, and if the status and the lines of the error log are those that it names. The debug log is the
original's own and has no counterpart here. CASE is `FILE:NUMBER` (numbers from 1) or a part of a file's name. A line of the
file KNOWN is `FILE:NUMBER reason`: a case that fails, and must. Each case has a process of its own.
"""

import argparse
import ctypes
import json
import os
import re
import signal
import sys

SECONDS_MAX = 60


class Intervention(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("pause", ctypes.c_int), ("url", ctypes.c_char_p), ("log", ctypes.c_char_p),
                ("disruptive", ctypes.c_int)]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


def interface(path):
    library = ctypes.CDLL(path)
    pointer, text, number, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
    for name, result, arguments in [
        ("msc_init", pointer, []),
        ("msc_set_log_cb", None, [pointer, LOG]),
        ("msc_create_rules_set", pointer, []),
        ("msc_rules_add", number, [pointer, text, ctypes.POINTER(text)]),
        ("msc_new_transaction", pointer, [pointer, pointer, pointer]),
        ("msc_process_connection", number, [pointer, text, number, text, number]),
        ("msc_process_uri", number, [pointer, text, text, text]),
        ("msc_add_n_request_header", number, [pointer, text, size, text, size]),
        ("msc_process_request_headers", number, [pointer]),
        ("msc_append_request_body", number, [pointer, text, size]),
        ("msc_process_request_body", number, [pointer]),
        ("msc_add_n_response_header", number, [pointer, text, size, text, size]),
        ("msc_process_response_headers", number, [pointer, number, text]),
        ("msc_append_response_body", number, [pointer, text, size]),
        ("msc_process_response_body", number, [pointer]),
        ("msc_process_logging", number, [pointer]),
        ("msc_intervention", number, [pointer, ctypes.POINTER(Intervention)]),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def run(library, case):
    """Returns what is wrong with the case, or None."""
    lines = []
    log = LOG(lambda _, line: lines.append((line or b"").decode("latin-1")))
    msc = library.msc_init()
    library.msc_set_log_cb(msc, log)
    rules = library.msc_create_rules_set()
    error = ctypes.c_char_p()
    expected = case.get("expected", {})
    loaded = library.msc_rules_add(rules, ("\n".join(case.get("rules", [])) + "\n").encode(), ctypes.byref(error)) >= 0
    if expected.get("parser_error"):
        return "the rules load" if loaded else None
    if not loaded:
        return "the rules do not load: " + (error.value or b"").decode("utf-8", "replace")
    transaction = library.msc_new_transaction(msc, rules, None)
    status = 200

    def step(_):
        nonlocal status
        intervention = Intervention(status=200)
        library.msc_intervention(transaction, ctypes.byref(intervention))
        if intervention.log:
            lines.append(intervention.log.decode("latin-1"))
        if intervention.status != 200:
            status = intervention.status

    client, server = case.get("client", {}), case.get("server", {})
    request, response = case.get("request", {}), case.get("response", {})
    bytes_of = lambda value: str(value).encode("utf-8")
    step(library.msc_process_connection(
        transaction, bytes_of(client.get("ip", "127.0.0.1")), int(client.get("port", 12345)),
        bytes_of(server.get("ip", "127.0.0.1")), int(server.get("port", 80))))
    step(library.msc_process_uri(
        transaction, bytes_of(request.get("uri", "/")), bytes_of(request.get("method", "GET")),
        bytes_of(request.get("http_version", ""))))
    for name, value in pairs_of(request.get("headers")):
        name, value = bytes_of(name), bytes_of(value)
        library.msc_add_n_request_header(transaction, name, len(name), value, len(value))
    step(library.msc_process_request_headers(transaction))
    body = bytes_of("".join(line + "\n" for line in request.get("body", [])))
    library.msc_append_request_body(transaction, body, len(body))
    step(library.msc_process_request_body(transaction))
    for name, value in pairs_of(response.get("headers")):
        name, value = bytes_of(name), bytes_of(value)
        library.msc_add_n_response_header(transaction, name, len(name), value, len(value))
    step(library.msc_process_response_headers(transaction, status, bytes_of(response.get("protocol", "HTTP/1.1"))))
    body = bytes_of("".join(line + "\n" for line in response.get("body", [])))
    library.msc_append_response_body(transaction, body, len(body))
    step(library.msc_process_response_body(transaction))
    library.msc_process_logging(transaction)
    if status != int(expected.get("http_code", 200)):
        return f"status {status}, not {expected.get('http_code', 200)}"
    wanted = expected.get("error_log")
    if wanted and not re.search(wanted, "\n".join(lines)):
        return f"no line of the error log matches {wanted}: {lines}"
    return None


def in_child(library_path, case):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        signal.alarm(SECONDS_MAX)
        wrong = run(interface(library_path), case)
        os.write(write, (wrong or "").encode("utf-8", "replace")[:4000])
        os._exit(1 if wrong else 0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        wrong = pipe.read().decode("utf-8", "replace")
    _, code = os.waitpid(child, 0)
    if os.WIFSIGNALED(code):
        return f"ended by signal {os.WTERMSIG(code)}"
    return wrong if code else None


class Pairs(dict):
    """An object that remembers members of one name."""

    def __init__(self, pairs):
        super().__init__(pairs)
        self.pairs = pairs


def pairs_of(headers):
    return headers.pairs if isinstance(headers, Pairs) else []


def read_json(path):
    """JSON as ModSecurity's reader takes it: with comments, commas before a closing bracket, and odd escapes."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r",(\s*[}\]])", r"\1", text)
    return json.loads(re.sub(r'(?<!\\)((?:\\\\)*)\\(?!["\\/bfnrtu])', r"\1\\\\", text), strict=False, object_pairs_hook=Pairs)


def cases(folder):
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".json"):
            continue
        for number, case in enumerate(read_json(os.path.join(folder, name)), 1):
            if case.get("enabled", 1):
                yield f"{name}:{number}", case


def read_known(path):
    with open(path, encoding="utf-8") as file:
        lines = (line.rstrip("\n").partition(" ") for line in file if line.strip() and not line.startswith("#"))
        return {name: reason for name, _, reason in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests")
    parser.add_argument("--library", default="target/debug/libmodsecurity.so")
    parser.add_argument("--known")
    parser.add_argument("--count", type=int)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    if not os.path.isdir(options.tests):
        parser.error(f"there is no folder {options.tests}")
    library = os.path.abspath(options.library)
    known = read_known(options.known) if options.known else {}
    all_cases = list(cases(options.tests))
    chosen = [(name, case) for name, case in all_cases if not options.case or any(part in name for part in options.case)]
    # Cases name files from the folder above test-cases.
    os.chdir(os.path.join(options.tests, "..", ".."))
    failed, surprises = 0, []
    for name, case in chosen:
        wrong = in_child(library, case)
        failed += wrong is not None
        if wrong is not None and (options.verbose or name not in known):
            print(f"{name} {case.get('title', '')}: {wrong}")
        if (wrong is not None) != (name in known):
            surprises.append(f"{name}: " + ("fails" if wrong is not None else "passes, and is named in the list of known misses"))
    if not options.case and set(known) - {name for name, _ in all_cases}:
        surprises.append("the list of known misses names cases that are not there")
    if options.count is not None and len(all_cases) != options.count:
        surprises.append(f"{len(all_cases)} cases, not {options.count}")
    print(f"{len(chosen)} cases: {len(chosen) - failed} pass, {failed} fail, {len(known)} of them known")
    if options.known and surprises:
        print("\n".join(surprises))
        sys.exit(1)


main()
