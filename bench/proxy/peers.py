"""The proxies of bench-proxy: how each is configured, started and stopped, and what CPU time its processes took.

All listen on 127.0.0.1 and forward to the same application. Those with rules load the same CRS at paranoia level 1, request bodies
read, no response bodies, no audit log, no access log, errors at the level that hides matches, as many workers as ours."""
import os, pathlib, shutil, signal, socket, subprocess, time

HERE = pathlib.Path(__file__).resolve().parent
SCENARIOS = {"01": "GET, 3 arguments", "02": "GET, 5 random arguments", "03": "form, 950 fields", "04": "JSON, 400 deep",
             "05": "multipart, 3 x 10 KB", "06": "attacks, refused", "07": "mixed", "08": "API, 30 % attacks"}

ENGINE = """SecRuleEngine On
SecRequestBodyAccess On
SecResponseBodyAccess Off
SecAuditEngine Off
SecRequestBodyLimit 13107200
SecRequestBodyJsonDepthLimit 512
SecRule REQUEST_HEADERS:Content-Type "^application/json" "id:200001,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=JSON"
"""
MODSECURITY = """SecRequestBodyNoFilesLimit 13107200
SecPcreMatchLimit 100000
SecPcreMatchLimitRecursion 100000
SecTmpDir /tmp/
SecDataDir /tmp/
"""
NGINX = """{module}worker_processes {workers}; daemon off; pid {work}/{name}.pid; error_log {work}/{name}.log crit;
events {{ worker_connections 19000; }}
http {{ access_log off; keepalive_requests 100000000; keepalive_timeout 600s; client_max_body_size 32m; client_body_buffer_size 512k;
  client_body_temp_path {work}/{name}.b; proxy_temp_path {work}/{name}.p; fastcgi_temp_path {work}/{name}.f;
  uwsgi_temp_path {work}/{name}.u; scgi_temp_path {work}/{name}.s;
  upstream app {{ server 127.0.0.1:{app}; keepalive 64; keepalive_requests 100000000; }}
  server {{ listen 127.0.0.1:{port} reuseport backlog=4096; {waf}
    location / {{ {location} }} }} }}
"""
FORWARD = 'proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;'
ANSWER = 'default_type text/plain; return 200 "hello from the application\\n";'
APACHE = """ServerRoot /usr/lib/apache2
PidFile {work}/apache.pid
Listen 127.0.0.1:{port}
ServerName localhost
ErrorLog {work}/apache.log
LogLevel crit
User www-data
Group www-data
DefaultRuntimeDir {work}
Mutex posixsem
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule proxy_module modules/mod_proxy.so
LoadModule proxy_http_module modules/mod_proxy_http.so
LoadModule unique_id_module modules/mod_unique_id.so
LoadModule security2_module modules/mod_security2.so
StartServers 2
ServerLimit 2
ThreadsPerChild 32
ThreadLimit 32
MaxRequestWorkers 64
MaxConnectionsPerChild 0
MaxKeepAliveRequests 0
KeepAliveTimeout 600
LimitRequestBody 0
ProxyPass / http://127.0.0.1:{app}/ enablereuse=on keepalive=On max=64
Include {work}/modsecurity.conf
"""
HAPROXY = """global
  nbthread {workers}
  maxconn 9000
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  option http-keep-alive
  http-reuse always
frontend f
  bind 127.0.0.1:{port}
  default_backend b
backend b
  server s 127.0.0.1:{app}
"""
ENVOY = """static_resources:
  listeners:
  - address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: in
          codec_type: HTTP1
          generate_request_id: false
          route_config: {{ virtual_hosts: [ {{ name: all, domains: ["*"], routes: [ {{ match: {{ prefix: "/" }}, route: {{ cluster: app, timeout: 600s }} }} ] }} ] }}
          http_filters: [ {{ name: router, typed_config: {{ "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }} }} ]
  clusters:
  - name: app
    type: STATIC
    connect_timeout: 5s
    load_assignment: {{ cluster_name: app, endpoints: [ {{ lb_endpoints: [ {{ endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {app} }} }} }} }} ] }} ] }}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def found(*names):
    for name in names:
        path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        if path:
            return path
    return None


def wrk(port, scenario, seconds, connections):
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "120s", "--latency", "-s", str(HERE / "scenarios.lua"),
               f"http://127.0.0.1:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, SCENARIO=scenario))
    for line in done.stdout.splitlines():
        if line.startswith("result "):
            numbers = [float(word) for word in line.split()[1:]]
            keys = ["requests", "seconds", "ok", "refused", "other", "expected", "errors", "p50_us", "p99_us"]
            return dict(zip(keys, numbers))
    raise RuntimeError(f"wrk: {done.stdout[-400:]}{done.stderr[-400:]}")


def quiet(running, limit=60):
    """Waits for work that is still under way when wrk has left."""
    end, before = time.monotonic() + limit, running.cpu_ns()
    while time.monotonic() < end:
        time.sleep(0.1)
        now = running.cpu_ns()
        if now - before < 5e6:
            return
        before = now


class Peers:
    """What is installed here, by name: functions of a port that give the command to run."""

    def __init__(self, work, program, crs, app, more, workers):
        self.work, self.program, self.crs, self.app = pathlib.Path(work), program, pathlib.Path(crs), app
        self.missing, self.known, self.workers = [], {}, str(workers)
        self.lay_out_rules()
        nginx, apache = found("nginx"), found("apache2", "httpd")
        module = pathlib.Path("/usr/lib/nginx/modules/ngx_http_modsecurity_module.so")
        security2 = pathlib.Path("/usr/lib/apache2/modules/mod_security2.so")
        self.add("nginx", nginx, lambda port: self.nginx("nginx", port))
        self.add("haproxy", found("haproxy"), lambda port: [found("haproxy"), "-db", "-f", self.file("haproxy.cfg", HAPROXY, port)])
        envoy = os.environ.get("ENVOY") or found("envoy")
        self.add("envoy", envoy, lambda port: [envoy, "-c", self.file("envoy.yaml", ENVOY, port), "--concurrency", self.workers,
                                               "--log-level", "error", "--disable-hot-restart"])
        for mode in ("off", "semantic", "crs", "both"):
            self.add(f"ours-{mode}", program, lambda port, mode=mode: self.ours(port, mode))
        self.add("nginx-modsecurity3", nginx and module.exists() and nginx, lambda port: self.nginx("nginx-modsecurity3", port,
            module=f"load_module {module};\n", waf=f"modsecurity on; modsecurity_rules_file {self.work}/modsecurity.conf;"))
        # The same nginx, module and rules over our library.
        library = pathlib.Path(os.environ.get("LIBMODSECURITY", pathlib.Path(program).parent / "libmodsecurity.so.3")).resolve()
        there = nginx and module.exists() and library.exists() and nginx
        self.add("nginx-ours", there, lambda port: ["env", f"LD_LIBRARY_PATH={library.parent}", *self.known["nginx-modsecurity3"](port)])
        self.add("apache-modsecurity2", apache and security2.exists() and apache,
                 lambda port: [apache, "-DFOREGROUND", "-f", self.file("apache.conf", APACHE, port)])
        for text in more:
            name, command = text.split("=", 1)
            fill = lambda port, command=command: [word.format(port=port, app=app, rules=f"{self.work}/coraza.conf", work=self.work)
                                                  for word in command.split()]
            self.add(name, command, fill)

    def add(self, name, is_there, command):
        if is_there:
            self.known[name] = command
        else:
            self.missing.append(name)

    def inspects(self, name):
        """True if attacks are to be refused."""
        return name not in ("nginx", "haproxy", "envoy", "ours-off")

    def file(self, file, template, port, **more):
        path = self.work / file
        path.write_text(template.format(work=self.work, port=port, app=self.app, workers=self.workers, **more))
        return str(path)

    def nginx(self, name, port, module="", waf="", location=FORWARD):
        config = self.file(f"{name}.conf", NGINX, port, name=name, module=module, waf=waf, location=location)
        return [found("nginx"), "-c", config]

    def application(self):
        return self.nginx("application", self.app, location=ANSWER)

    def ours(self, port, mode):
        rules = ["--crs", str(self.crs)] if mode in ("crs", "both") else []
        return [self.program, "run", "--listen", f"127.0.0.1:{port}", "--upstream", f"http://127.0.0.1:{self.app}", "--mode", mode,
                "--workers", self.workers, *rules]

    def lay_out_rules(self):
        rules = self.work / "rules"
        rules.mkdir()
        for path in sorted((self.crs / "rules").iterdir()):
            text = path.read_bytes()
            if path.suffix == ".conf":
                # libmodsecurity takes the directive behind a rule without actions for its actions, unless a blank line is between.
                text = b"".join(b"\n" + line if line.startswith((b"SecRule", b"SecAction", b"SecMarker")) else line
                                for line in text.splitlines(keepends=True))
            (rules / path.name).write_bytes(text)
        setup = self.crs / "crs-setup.conf"
        shutil.copy(setup if setup.exists() else self.crs / "crs-setup.conf.example", self.work / "crs-setup.conf")
        (self.work / "engine.conf").write_text(ENGINE)
        (self.work / "engine-modsecurity.conf").write_text(MODSECURITY)
        files = [self.work / "crs-setup.conf", *sorted(rules.glob("*.conf"))]
        include = lambda paths: "".join(f"Include {path}\n" for path in paths)
        (self.work / "coraza.conf").write_text(include([self.work / "engine.conf", *files]))
        first = [self.work / "engine.conf", self.work / "engine-modsecurity.conf"]
        (self.work / "modsecurity.conf").write_text(include([*first, *files]))


class Running:
    """A started process, stopped by its id."""

    def __init__(self, command, port, log, patience=60, core=None):
        pin = [] if core is None else ["taskset", "--cpu-list", str(core)]
        with open(log, "wb") as out:
            self.process = subprocess.Popen(pin + command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.port, end = port, time.monotonic() + patience
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    raise RuntimeError(f"{command[0]} does not serve: {pathlib.Path(log).read_text()[-800:]}")
                time.sleep(0.05)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def processes(self):
        """Its id and those of its descendants."""
        children = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    stat = open(f"/proc/{entry}/stat").read()
                except OSError:
                    continue
                children.setdefault(int(stat[stat.rindex(")") + 2:].split()[1]), []).append(int(entry))
        todo, seen = [self.process.pid], []
        while todo:
            seen.append(todo.pop())
            todo += children.get(seen[-1], [])
        return seen

    def cpu_ns(self):
        """Nanoseconds on a CPU, user and system, of all threads, those that have ended included."""
        total = 0
        for pid in self.processes():
            try:
                total += time.clock_gettime_ns(cpu_clock(pid))
            except OSError:
                pass
        return total


def cpu_clock(pid):
    """The CPU-time clock of a process, as clock_getcpuclockid(3) has it. The sum over /proc/PID/task would lose a thread
    that ends between two readings, with all that it had used before: ours has threads that prepare rules and then end."""
    return (~pid << 3) | 2
