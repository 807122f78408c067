#!/usr/bin/env python3
"""What an agent of HAProxy's SPOE takes for a request: `portcullis serve spop` and coraza-spoa, in turns, in one run.

  bench-spop.py --coraza-spoa PROGRAM      CPU microseconds per request of the agent and of HAProxy (wrk, 20 connections)

HAProxy has the configuration that coraza-spoa documents (its message, its names of variables), for both agents the same file but for
the port, with a larger buffer, so that bodies up to 60 KB go to the agent whole. Both load the same CRS at paranoia level 1, inspect
request bodies, look at no responses and log no request. Beside them the same HAProxy without an agent. Everything listens on loopback
and is stopped by its process id at the end."""
import argparse, json, os, pathlib, signal, statistics, sys, tempfile

sys.dont_write_bytecode = True
from peers import HERE, SCENARIOS, Peers, Running, found, free_port, quiet, wrk

ROOT = HERE.parent.parent
HAPROXY = """global
  nbthread {workers}
  maxconn 9000
  tune.bufsize 65536
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  option http-keep-alive
  http-reuse always
frontend f
  bind 127.0.0.1:{port}
  option http-buffer-request
  {filter}
  default_backend b
backend b
  server s 127.0.0.1:{app}
backend coraza-spoa
  mode tcp
  server s 127.0.0.1:{agent}
"""
FILTER = """http-request set-var(txn.coraza.app) str(shop)
  filter spoe engine coraza config {spoe}
  http-request send-spoe-group coraza coraza-req
  http-request deny deny_status 403 if {{ var(txn.coraza.action) -m str deny }}
  http-request deny deny_status 503 if {{ var(txn.coraza.error) -m int gt 0 }}
  http-request deny deny_status 503 unless {{ var(txn.coraza.id) -m found }}"""
SPOE = """[coraza]
spoe-agent coraza-agent
  groups coraza-req
  option var-prefix coraza
  option set-on-error error
  timeout hello 2s
  timeout idle 2m
  timeout processing 10s
  use-backend coraza-spoa
spoe-message coraza-req
  args app=var(txn.coraza.app) src-ip=src src-port=src_port dst-ip=dst dst-port=dst_port method=method path=path query=query version=req.ver headers=req.hdrs body=req.body exportRuleIDs=bool(false)
spoe-group coraza-req
  messages coraza-req
"""
CORAZA = """bind: 127.0.0.1:{port}
log_level: error
log_file: /dev/null
log_format: json
default_application: shop
applications:
  - name: shop
    directives: Include {rules}
    response_check: false
    transaction_ttl_ms: 60000
    log_level: error
    log_file: /dev/null
    log_format: json
"""


class Way:
    """HAProxy, with an agent or without."""

    def __init__(self, peers, name, o):
        self.name, self.agent, work = name, None, peers.work
        agent, port, file = free_port(), free_port(), work / f"haproxy-{name}.cfg"
        spoe = work / "spoe.conf"
        spoe.write_text(SPOE)
        if name == "coraza-spoa":
            settings = work / "coraza-spoa.yaml"
            settings.write_text(CORAZA.format(port=agent, rules=work / "coraza.conf"))
            command = [o.coraza_spoa, "-config", str(settings)]
        else:
            command = [peers.program, "serve", "spop", "--listen", f"127.0.0.1:{agent}", "--mode", name.removeprefix("ours-"),
                       "--workers", peers.workers, *([] if name == "ours-semantic" else ["--crs", str(peers.crs)])]
        if name != "no agent":
            self.agent = Running(command, agent, work / f"agent-{name}.out")
        file.write_text(HAPROXY.format(workers=peers.workers, port=port, app=peers.app, agent=agent,
                                       filter=FILTER.format(spoe=spoe) if self.agent else ""))
        try:
            self.haproxy = Running([found("haproxy"), "-db", "-f", str(file)], port, work / f"haproxy-{name}.out")
        except BaseException:
            self.stop()
            raise

    def stop(self):
        for running in (self.__dict__.get("haproxy"), self.agent):
            if running:
                running.stop()

    def cell(self, scenario, o):
        wrk(self.haproxy.port, scenario, 1, o.connections)
        running = [self.haproxy, *([self.agent] if self.agent else [])]
        for each in running:
            quiet(each)
        before = [each.cpu_ns() for each in running]
        result = wrk(self.haproxy.port, scenario, o.seconds, o.connections)
        for each in running:
            quiet(each)
        cpu = [(each.cpu_ns() - was) / 1e3 / max(result["requests"], 1) for each, was in zip(running, before)]
        expected = result["expected"] if self.agent else 0
        wrong = max(abs(result["refused"] - expected) - 2 * o.connections, 0) + result["other"] + result["errors"]
        return dict(result, haproxy_us=cpu[0], agent_us=cpu[1] if self.agent else 0.0, wrong=wrong)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--program", default=os.environ.get("PROGRAM", str(ROOT / "target/release/portcullis")))
    a.add_argument("--crs", default=os.environ.get("CRS", str(ROOT / ".portcullis/crs")))
    a.add_argument("--coraza-spoa", default=os.environ.get("CORAZA_SPOA"), metavar="PROGRAM")
    # A form of 104 KB does not fit into a frame.
    a.add_argument("--scenarios", default="01,02,04,05,06,07,08")
    a.add_argument("--modes", default="crs,both")
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--seconds", type=int, default=3, help="for each cell")
    a.add_argument("--connections", type=int, default=20)
    o = a.parse_args()
    for tool in ["nginx", "haproxy", "wrk"]:
        if not found(tool):
            sys.exit(f"bench-spop: {tool} is needed")
    # So that `finally` stops what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names = ["no agent", *(f"ours-{mode}" for mode in o.modes.split(",")), *(["coraza-spoa"] if o.coraza_spoa else [])]
    cells = {}
    with tempfile.TemporaryDirectory(prefix="bench-spop.") as work:
        os.chmod(work, 0o755)  # the workers of nginx run as others
        peers = Peers(work, o.program, o.crs, free_port(), [], workers=2)
        application = Running(peers.application(), peers.app, pathlib.Path(work) / "application.out")
        try:
            for number in range(o.rounds):
                for name in names:
                    way = Way(peers, name, o)
                    try:
                        for scenario in o.scenarios.split(","):
                            result = way.cell(scenario, o)
                            cells.setdefault((scenario, name), []).append(result)
                            print(json.dumps(dict(round=number, agent=name, scenario=scenario, **result)), file=sys.stderr, flush=True)
                    finally:
                        way.stop()
        finally:
            application.stop()

    def table(title, key, ways, best=min):
        print(f"\n{title}\n\n| scenario | " + " | ".join(ways) + " |\n|---|" + "---:|" * len(ways))
        for scenario in o.scenarios.split(","):
            rounds = [cells[scenario, name] for name in ways]
            values = [f"{best(each[key] for each in of):,.1f}" + (" (!)" if any(each["wrong"] for each in of) else "") for of in rounds]
            print(f"| {scenario} {SCENARIOS[scenario]} | " + " | ".join(values) + " |")

    agents = names[1:]
    print(f"{o.rounds} rounds of {o.seconds} s for each cell, {o.connections} connections")
    table("CPU microseconds per request of the agent, the least of the rounds", "agent_us", agents)
    table("CPU microseconds per request of HAProxy, the least of the rounds", "haproxy_us", names)
    table("Latency in microseconds, p50, the median of the rounds", "p50_us", names, statistics.median)
    table("Latency in microseconds, p99, the median of the rounds", "p99_us", names, statistics.median)
    if any(each["wrong"] for of in cells.values() for each in of):
        print("\n(!) answers that were not as they should be, or none")


main()
