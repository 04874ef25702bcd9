"""The programs that `bench/chaos` runs: proxies that are changed, and the load on them."""

import atexit
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

from measuring.kernel import free_port, resident_bytes, tree  # noqa: F401
from measuring.peers import oracle  # noqa: F401

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
READY_SECONDS_MAX = 30
ANSWER_SECONDS_MAX = 30

HEAD = """\
global
    maxconn 8000
    stats socket unix@@SOCKET@ mode 600 level admin expose-fd listeners
defaults web
    mode http
    timeout connect 5s
    timeout client 1m
    timeout server 1m
    timeout tunnel 1h
"""


class Settings:
    """The options of the command line."""

    ballast = str(ROOT / "target/proof/ballast")
    haproxy = None
    load = str(ROOT / "target/proof/ballast-load")
    origin = str(ROOT / "target/proof/ballast-origin")
    short = False
    broken = False
    chroot = False
    directory = "."
    origin_pid = None

    @classmethod
    def scaled(cls, number, least=1):
        return max(least, number // 10) if cls.short else number


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def processor_seconds(pids):
    """Processor time of the processes and of their ended children."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{pid}/stat").read_text()
            fields = text.rsplit(")", 1)[1].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


class Proxy:
    """A program with a configuration; @PORT@ and @SOCKET@ in `text` are replaced."""

    count = 0

    def __init__(self, program, text, *words, also=None):
        Proxy.count += 1
        self.environment = os.environ | (also or {})
        self.base = pathlib.Path(Settings.directory) / f"p{Proxy.count}"
        self.port = free_port()
        self.socket = f"{self.base}.sock"
        self.file = f"{self.base}.cfg"
        self.program, self.words = program, words
        self.log = open(f"{self.base}.log", "w")
        self.write(text)
        # Processor time of earlier processes, before restarts.
        self.ended_seconds = 0.0
        self.process = self.spawn()
        self.ready()

    def filled(self, text):
        if Settings.chroot:
            jail = pathlib.Path(Settings.directory) / "jail"
            jail.mkdir(exist_ok=True)
            rights = f"global\n    chroot {jail}\n    user nobody\n    group nogroup\n"
            text = text.replace("global\n", rights, 1)
        return text.replace("@PORT@", str(self.port)).replace("@SOCKET@", self.socket)

    def write(self, text):
        self.text = self.filled(text)
        pathlib.Path(self.file).write_text(self.text)

    def spawn(self, *more):
        command = [self.program, "-db", "-f", self.file, *self.words, *more]
        log, environment = self.log, self.environment
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )

    def ready(self):
        """Waits until somebody listens and the socket answers."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        while True:
            with contextlib.suppress(OSError):
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    pass
                if self.ask("show info"):
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = pathlib.Path(f"{self.base}.log").read_text()[-2000:]
                raise RuntimeError(f"{self.program} is not ready:\n{said}")
            time.sleep(0.005)

    def ask(self, text):
        with socket.socket(socket.AF_UNIX) as desk:
            desk.settimeout(ANSWER_SECONDS_MAX)
            desk.connect(self.socket)
            desk.sendall(text.encode() + b"\n")
            pieces = []
            while piece := desk.recv(1 << 16):
                pieces.append(piece)
        return b"".join(pieces).decode(errors="replace").strip()

    def apply(self, text):
        said = self.ask(f"apply <<THE-END\n{self.filled(text)}THE-END")
        if "is in force" not in said and "Nothing to change" not in said:
            raise RuntimeError(f"apply: {said[:400]}")

    def restart(self, text=None):
        """Ends the process and starts another, which the measurements must notice."""
        if text:
            self.write(text)
        self.ended_seconds += processor_seconds(tree(self.process.pid))
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.process = self.spawn()
        self.ready()

    def hand_over(self, *words):
        """Starts another process that takes over, and asks this one to finish."""
        before = self.process
        self.process = self.spawn(*words, "-sf", str(before.pid))
        self.wait_for_answers(lambda pid: pid == self.process.pid, "nobody took over")
        return before

    def answering(self):
        """The process that answers on the socket: under a master its worker. None while nobody
        does, as when HAProxy is reloaded: its new process gives its socket the name of the old one
        before it listens."""
        with contextlib.suppress(OSError):
            found = re.search(r"^Pid: (\d+)", self.ask("show info"), re.M)
            return int(found[1]) if found else None
        return None

    def wait_for_answers(self, is_from, fault):
        """Waits until a process answers for whose number `is_from` holds."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not ((pid := self.answering()) and is_from(pid)):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(fault)
            time.sleep(0.005)

    def requests_counted(self):
        """The requests of the frontend, as `show stat` has them."""
        head, *lines = self.ask("show stat").splitlines()
        place = head.removeprefix("# ").split(",").index("req_tot")
        row = next(line for line in lines if line.startswith("www,FRONTEND,"))
        return int(row.split(",")[place])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in tree(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


class Load:
    """A running load generator."""

    def __init__(self, *words, wait_for=None):
        command = [Settings.load, *map(str, words), "--json"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # An interrupt must end it too.
        atexit.register(self.process.kill)
        self.said = []
        self.begun = threading.Event()
        threading.Thread(target=self.listen, args=(wait_for,), daemon=True).start()
        # A report does not fit in a pipe: unless it is read, the load would never end.
        self.report = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if wait_for and not self.begun.wait(READY_SECONDS_MAX):
            raise RuntimeError("the load does not begin")

    def listen(self, wait_for):
        for line in self.process.stderr:
            self.said.append(line)
            if wait_for and wait_for in line:
                self.begun.set()

    def read(self):
        self.report.append(self.process.stdout.read())

    def runs(self):
        return self.process.poll() is None

    def finish(self):
        """Waits for its end."""
        self.reader.join()
        self.process.wait()
        text = "".join(self.report)
        if not text.strip():
            raise RuntimeError(f"the load did not begin: {''.join(self.said)}")
        return json.loads(text)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.finish()


class Beat:
    """A fixed period: after a delay, missed periods are not made up for."""

    def __init__(self, seconds):
        self.seconds, self.next = seconds, time.monotonic()

    def wait(self):
        self.next += self.seconds
        now = time.monotonic()
        if self.next > now:
            time.sleep(self.next - now)
        else:
            self.next = now


def site(origins, front="", back="", servers=None, extra="", bind=""):
    lines = servers or [f" server s{n} 127.0.0.1:{port}" for n, port in enumerate(origins, 1)]
    return (
        f"{HEAD}frontend www\n bind 127.0.0.1:@PORT@{bind}\n{front}\n default_backend app\n"
        f"backend app\n{back}\n" + "\n".join(lines) + f"\n{extra}\n"
    )


def many(backends, servers_each, port):
    parts = []
    for n in range(backends):
        parts.append(f"backend b{n}\n balance roundrobin")
        parts += [f" server s{k} 127.0.0.1:{port}" for k in range(servers_each)]
    return "\n".join(parts)
