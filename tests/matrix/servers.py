"""The servers: what starts each as a process of our own, on a free port, with a folder for what it writes."""
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "wire"))
from harness import free_port  # noqa: E402

PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/go/bin")


def first(*patterns):
    return next((f for p in patterns for f in glob.glob(p)), None)


class Go:
    """The program of go/, built once."""
    lock = threading.Lock()

    @staticmethod
    def new_enough():
        said = subprocess.run([program("go"), "version"], stdout=subprocess.PIPE, check=False).stdout.decode()
        m = re.search(r"go(\d+)\.(\d+)", said)
        return m and (int(m[1]), int(m[2])) >= (1, 19)

    @classmethod
    def path(cls):
        path = os.path.join(ROOT, "build", "matrix-go")
        with cls.lock:
            sources = glob.glob(os.path.join(HERE, "go", "*"))
            if not os.path.exists(path) or os.path.getmtime(path) < max(map(os.path.getmtime, sources)):
                env = dict(os.environ, GOPROXY="off", GOTOOLCHAIN="local", GOFLAGS="-mod=mod", CGO_ENABLED="0")
                env.setdefault("HOME", os.path.join(ROOT, "build"))
                subprocess.run([program("go"), "build", "-o", path, "."], cwd=os.path.join(HERE, "go"), env=env, check=True)
        return path


def modules_of_apache():
    return first("/usr/lib/apache2/modules", "/usr/lib*/httpd/modules")


def echo_of_nginx():
    return first("/usr/lib/nginx/modules/ngx_http_echo_module.so", "/usr/share/nginx/modules/ngx_http_echo_module.so")


def missing(name):
    """What a server needs and is not here, or None."""
    needs = {"nginx": "nginx", "apache": "apache2", "node": "node", "go": "go", "haproxy": "haproxy", "python": PYTHON}
    if not program(needs[name]):
        return needs[name]
    if name == "go" and not Go.new_enough():
        return "Go 1.19"
    if name == "nginx" and not echo_of_nginx():
        return "nginx's echo module"
    if name == "apache" and not (modules_of_apache() and program("perl")):
        return "apache2's modules, perl"
    return None


class Server:
    """One server, answering the paths of the table, or (report: a file) writing down what it is asked."""

    def __init__(self, name, files, work, report=None):
        self.name, self.report = name, report
        self.work = os.path.join(work, name)
        os.makedirs(self.work, exist_ok=True)
        os.chmod(self.work, 0o755)
        self.port = free_port()
        self.address = "127.0.0.1:%d" % self.port
        env = dict(os.environ)
        if report:
            open(report, "a").close()
            env["REPORT"] = report
            reports = os.path.join(self.work, "reports")
            os.mkdir(reports)
            os.chmod(reports, 0o777)    # Apache's programs are another user's
        self.log = open(os.path.join(self.work, "said"), "wb")
        self.process = subprocess.Popen(self.command(files), env=env, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, start_new_session=True)
        self.wait()

    def command(self, files):
        if self.name == "nginx":
            return [program("nginx"), "-e", "stderr", "-c", self.config("nginx", files)]
        if self.name == "apache":
            if self.report:
                os.chmod(self.fill("report.pl", "report.pl", files), 0o755)
            return [program("apache2"), "-DFOREGROUND", "-f", self.config("apache", files)]
        if self.name == "haproxy":
            return [program("haproxy"), "-db", "-f", self.config("haproxy", files)]
        if self.name == "node":
            return [program("node"), os.path.join(HERE, "servers", "node.js"), str(self.port), files]
        if self.name == "go":
            return [Go.path(), "serve", str(self.port), files]
        return [PYTHON, os.path.join(HERE, "servers", "plain.py"), str(self.port), files]

    def config(self, name, files):
        return self.fill(name + (".report" if self.report else "") + ".conf", name + ".conf", files)

    def fill(self, template, name, files):
        """A file of servers/ with what is known now; its path."""
        with open(os.path.join(HERE, "servers", template), encoding="utf-8") as f:
            text = f.read()
        fill = ['X-Fill-%02d "%s"' % (i, "f" * 200) for i in range(30)]
        values = {
            "PORT": str(self.port), "ROOT": files, "WORK": self.work, "HERE": os.path.join(HERE, "servers"),
            "REPORT": self.report or "", "MODULES": modules_of_apache() or "", "ECHO": echo_of_nginx() or "",
            "CHUNKED": "\n".join("echo_duplicate 1000 %c;\necho_flush;" % (97 + i) for i in range(20)),
            "BIGHEAD": "\n".join("Header set " + f if self.name == "apache" else "add_header %s;" % f for f in fill),
        }
        for key, value in values.items():
            text = text.replace("@%s@" % key, value)
        path = os.path.join(self.work, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def said(self):
        with open(self.log.name, errors="replace") as f:
            return f.read()[-3000:]

    def wait(self):
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    raise RuntimeError("%s did not start:\n%s" % (self.name, self.said())) from None
                time.sleep(0.02)

    def stop(self):
        """Ends it and what it has started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                pass
            try:
                self.process.wait(1)
                break
            except subprocess.TimeoutExpired:
                pass
        self.log.close()
