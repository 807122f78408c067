#!/usr/bin/env python3
"""What a second core brings: requests a second through the proxy with one worker on one core, and with two on two.

Generator (wrk) and application (a second Portcullis that answers by itself) have as many threads as the proxy has workers, on the
same cores, so that what is compared is all of a core against all of two. Three ways, in turns:

  one core      one worker, on each of the two cores by itself; the mean of both
  two, kept     two workers with --worker-affinity: connections stay on the core that they come to, as with a network card that has a
                queue for each core
  two, spread   two workers without it: half of all connections have the worker on one core and the client on the other

The last one has also what the kernel takes to pass packets from core to core on loopback."""
import argparse, os, pathlib, re, signal, statistics, subprocess, sys, tempfile

sys.dont_write_bytecode = True
from peers import Running, found, free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGET = "/products?category=books&sort=price&page=7"
APPLICATION = """workers = {workers}
worker_affinity = {affinity}
[[listeners]]
address = "127.0.0.1:{port}"
[[sites]]
name = "application"
hosts = ["*"]
mode = "off"
[[sites.routes]]
name = "hello"
path = "/"
respond = {{ status = 200, body = "hello from the application\\n", content_type = "text/plain" }}
"""


class Way:
    """Application and proxy on some cores."""

    def __init__(self, o, work, cores, affinity):
        self.o, self.cores, self.rates, self.cpu_us = o, cores, [], []
        ports, workers = [free_port(), free_port()], len(cores)
        name = f"{'-'.join(map(str, cores))}-{affinity}"
        document = work / f"{name}.toml"
        document.write_text(APPLICATION.format(workers=workers, affinity=str(affinity).lower(), port=ports[0]))
        rules = ["--crs", o.crs] if o.mode in ("crs", "both") else []
        proxy = [o.program, "run", "--listen", f"127.0.0.1:{ports[1]}", "--upstream", f"http://127.0.0.1:{ports[0]}", "--mode", o.mode,
                 "--workers", str(workers), *(["--worker-affinity"] if affinity else []), *rules]
        on = ",".join(map(str, cores))
        self.application = Running([o.program, "run", "--config", str(document)], ports[0], work / f"{name}.app", core=on)
        try:
            self.proxy = Running(proxy, ports[1], work / f"{name}.out", core=on)
        except BaseException:
            self.application.stop()
            raise

    def drive(self, seconds):
        """Requests a second, and CPU microseconds of the proxy for each."""
        before = self.proxy.cpu_ns()
        command = ["wrk", "-t1", f"-c{self.o.connections}", f"-d{seconds}s", f"http://127.0.0.1:{self.proxy.port}{TARGET}"]
        generators = [subprocess.Popen(["taskset", "--cpu-list", str(core), *command], stdout=subprocess.PIPE, text=True) for core in self.cores]
        said = [generator.communicate()[0] for generator in generators]
        if any("Non-2xx" in text or "Socket errors" in text for text in said):
            sys.exit(f"bench-scaling: answers that were not 200:\n{''.join(said)}")
        count = sum(int(re.search(r"(\d+) requests in", text)[1]) for text in said)
        rate = sum(float(re.search(r"Requests/sec:\s*([\d.]+)", text)[1]) for text in said)
        return rate, (self.proxy.cpu_ns() - before) / 1e3 / count

    def measure(self):
        rate, cpu_us = self.drive(self.o.seconds)
        self.rates.append(rate)
        self.cpu_us.append(cpu_us)

    def stop(self):
        self.proxy.stop()
        self.application.stop()


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--program", default=os.environ.get("PROGRAM", str(ROOT / "target/release/portcullis")))
    a.add_argument("--crs", default=os.environ.get("CRS", str(ROOT / ".portcullis/crs")))
    a.add_argument("--mode", default="crs", choices=["off", "semantic", "crs", "both"])
    a.add_argument("--rounds", type=int, default=9)
    a.add_argument("--seconds", type=int, default=2, help="for each way in each round")
    a.add_argument("--connections", type=int, default=64, help="for each worker")
    o = a.parse_args()
    for tool in ("wrk", "taskset"):
        if not found(tool):
            sys.exit(f"bench-scaling: {tool} is needed")
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        sys.exit("bench-scaling: two cores are needed")
    # So that `finally` stops what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    ways = []
    with tempfile.TemporaryDirectory(prefix="bench-scaling.") as folder:
        work = pathlib.Path(folder)
        try:
            for own, affinity in [(cores[:1], False), (cores[1:], False), (cores, True), (cores, False)]:
                ways.append(Way(o, work, own, affinity))
            for way in ways:
                way.drive(1)
            for number in range(o.rounds):
                for way in ways if number % 2 == 0 else reversed(ways):
                    way.measure()
        finally:
            for way in reversed(ways):
                way.stop()
    first, second, kept, spread = ways
    one = [(x + y) / 2 for x, y in zip(first.rates, second.rates)]
    one_cpu = [(x + y) / 2 for x, y in zip(first.cpu_us, second.cpu_us)]
    print(f"mode {o.mode}, {o.connections} connections for each worker; medians of {o.rounds} rounds of {o.seconds} s\n")
    print(f"{'':14}{'requests/s':>12}{'CPU us/request':>16}   times one core in the same round")
    print(f"{'one core':14}{statistics.median(one):>12,.0f}{statistics.median(one_cpu):>16.1f}")
    for name, way in [("two, kept", kept), ("two, spread", spread)]:
        times = sorted(both / alone for both, alone in zip(way.rates, one))
        print(f"{name:14}{statistics.median(way.rates):>12,.0f}{statistics.median(way.cpu_us):>16.1f}   "
              f"{statistics.median(times):.2f} ({times[0]:.2f} to {times[-1]:.2f})")


main()
