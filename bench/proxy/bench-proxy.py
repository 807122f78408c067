#!/usr/bin/env python3
"""What a request costs in the proxy, ours and others side by side, in one run:

  bench-proxy.py            CPU microseconds per request, eight scenarios (wrk, one thread, 20 connections)
  bench-proxy.py --latency  latency in an open loop at half load (portcullis bench), plain proxies beside ours; with --pinned each proxy
                            has one worker and a core of its own, which generator and application leave alone
  bench-proxy.py --syscalls system calls per request of ours, and the calls that a contended lock would make (strace)

`make libmodsecurity` makes a peer `nginx-ours` of the same nginx and module as nginx-modsecurity3 (--only nginx-ours,nginx-modsecurity3,nginx).
Peers are found where distributions install them (nginx with its ModSecurity module, haproxy, envoy, apache2 with mod_security2);
ENVOY=/path names another Envoy, and --peer 'NAME=COMMAND' adds anything that serves on {port}, forwards to 127.0.0.1:{app} and, if it
inspects, includes the rules of the file {rules}. Everything listens on loopback, and is stopped by its process id at the end."""
import argparse, json, os, pathlib, re, signal, statistics, subprocess, sys, tempfile, time

sys.dont_write_bytecode = True
from peers import HERE, SCENARIOS, Peers, Running, found, free_port, quiet, wrk

PROXY_CORE = 0  # with --pinned
ROOT = HERE.parent.parent



def cell(running, scenario, inspects, o):
    wrk(running.port, scenario, 1, o.connections)
    quiet(running)
    before = running.cpu_ns()
    result = wrk(running.port, scenario, o.seconds, o.connections)
    quiet(running)
    result["cpu_us"] = (running.cpu_ns() - before) / 1e3 / max(result["requests"], 1)
    # wrk cannot tell which answer belongs to which request; those under way at the end are not known.
    expected = result["expected"] if inspects else 0
    result["wrong"] = max(abs(result["refused"] - expected) - 2 * o.connections, 0) + result["other"] + result["errors"]
    return result


def costs(peers, names, o):
    """CPU per request, the least of all rounds for each cell: what else ran on the machine only adds. And how often the first
    peer's goes into the others', the median of the rounds: what lasts longer than a round does not change it."""
    cells, wrong = {}, {}
    for number in range(o.rounds):
        for name in names:
            port = free_port()
            running = Running(peers.known[name](port), port, peers.work / f"{name}.out")
            try:
                for scenario in o.scenarios.split(","):
                    result = cell(running, scenario, peers.inspects(name), o)
                    key = (scenario, name)
                    cells.setdefault(key, []).append(result["cpu_us"])
                    wrong[key] = wrong.get(key, 0) + result["wrong"]
                    print(json.dumps(dict(round=number, peer=name, scenario=scenario, **result)), file=sys.stderr, flush=True)
            finally:
                running.stop()
    def table(show):
        print("| scenario | " + " | ".join(names) + " |")
        print("|---|" + "---:|" * len(names))
        for scenario in o.scenarios.split(","):
            print(f"| {scenario} {SCENARIOS[scenario]} | " + " | ".join(show(scenario, name) for name in names) + " |")

    def times(scenario, name):
        return f"{statistics.median(ours / first for ours, first in zip(cells[scenario, name], cells[scenario, names[0]])):,.2f}"

    print(f"CPU microseconds per request, the least of {o.rounds} rounds of {o.seconds} s, {o.connections} connections\n")
    table(lambda scenario, name: f"{min(cells[scenario, name]):,.1f}" + (" (!)" if wrong[scenario, name] else ""))
    if o.rounds > 2:
        print(f"\nTimes {names[0]} in the same round, the median of {o.rounds} rounds\n")
        table(times)
    if any(wrong.values()):
        print("\n(!) answers that were not as they should be, or none")


def latency(peers, names, o):
    started, targets = [], []
    try:
        for name in names:
            if o.pinned or not name.startswith("ours-"):
                port = free_port()
                core = PROXY_CORE if o.pinned else None
                started.append(Running(peers.known[name](port), port, peers.work / f"{name}.out", core=core))
                targets += ["--target", f"{name}=http://127.0.0.1:{port}"]
        ours = ["--targets-only"] if o.pinned else ["--crs", str(peers.crs), "--workers", peers.workers]
        command = [peers.program, "bench", "--upstream", f"http://127.0.0.1:{peers.app}", *targets, *ours, "--seconds", str(o.total),
                   "--traffic", o.traffic, *(["--json"] if o.json else [])]
        return subprocess.run(command).returncode
    finally:
        for running in started:
            running.stop()


def syscalls(peers, names, o):
    for name in names:
        port = free_port()
        running = Running(peers.known[name](port), port, peers.work / f"{name}.out")
        try:
            wrk(port, "01", 3, o.connections)
            counts = peers.work / f"{name}.strace"
            trace = subprocess.Popen(["strace", "-f", "-c", "-o", str(counts), "-p", str(running.process.pid)], stderr=subprocess.DEVNULL)
            time.sleep(1)
            result = wrk(port, "01", o.seconds, o.connections)
            trace.send_signal(signal.SIGINT)
            trace.wait(20)
        finally:
            running.stop()
        print(f"{name}: {result['requests']:.0f} requests")
        for line in counts.read_text().splitlines():
            words = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", line)
            if words and words[2] != "total":
                print(f"  {words[2]:<16}{int(words[1]):>10}{int(words[1]) / result['requests']:>12.4f} per request")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--program", default=os.environ.get("PROGRAM", str(ROOT / "target/release/portcullis")))
    a.add_argument("--crs", default=os.environ.get("CRS", str(ROOT / ".portcullis/crs")))
    a.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    a.add_argument("--only", help="names separated by commas")
    a.add_argument("--scenarios", default=",".join(SCENARIOS))
    a.add_argument("--rounds", type=int, default=2)
    a.add_argument("--seconds", type=int, default=3, help="for each cell")
    a.add_argument("--connections", type=int, default=20)
    a.add_argument("--latency", action="store_true")
    a.add_argument("--total", type=int, default=180, help="seconds of --latency")
    a.add_argument("--traffic", default="browser", help="of --latency")
    a.add_argument("--pinned", action="store_true", help="of --latency; two cores or more")
    a.add_argument("--json", action="store_true", help="of --latency")
    a.add_argument("--syscalls", action="store_true")
    o = a.parse_args()
    for tool in ["nginx", "strace" if o.syscalls else "wrk"]:
        if not found(tool):
            sys.exit(f"bench-proxy: {tool} is needed")
    if o.pinned:
        os.sched_setaffinity(0, os.sched_getaffinity(0) - {PROXY_CORE})  # also of the application and the generator, which inherit it
    # So that `finally` stops what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="bench-proxy.") as work:
        os.chmod(work, 0o755)  # the workers of Apache and nginx run as others
        peers = Peers(work, o.program, o.crs, free_port(), o.peer, workers=1 if o.pinned else 2)
        if peers.missing:
            print(f"bench-proxy: not here, left out: {', '.join(peers.missing)}", file=sys.stderr)
        names = o.only.split(",") if o.only else list(peers.known)
        if o.latency and not o.only:
            plain = ("nginx", "haproxy", "envoy")
            names = ["ours-off", "ours-crs"] if o.pinned else [name for name in names if name in plain]
        if o.syscalls and not o.only:
            names = ["ours-off", "ours-semantic", "ours-crs"]
        unknown = [name for name in names if name not in peers.known]
        if unknown:
            sys.exit(f"bench-proxy: no such peer: {', '.join(unknown)}; there are {', '.join(peers.known)}")
        application = Running(peers.application(), peers.app, pathlib.Path(work) / "application.out")
        try:
            sys.exit((latency if o.latency else syscalls if o.syscalls else costs)(peers, names, o))
        finally:
            application.stop()


main()
