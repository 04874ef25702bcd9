"""All that surrounds a proxy while it is measured: a place, servers, a reader of logs, certificates."""

import contextlib
import itertools
import os
import pathlib
import socket
import subprocess
import typing

from measuring import clients, load
from measuring.kernel import free_port
from measuring.peers import PEERS
from measuring.server import LOAD_CPU, PROXY_CPU, Server, http_fault, wait_for
from measuring.template import fill

# The paths of the server, and the lengths of their bodies.
BODY_BYTES = {"/1k": 1000, "/1k?size=1000": 1000, "/up": 2}
FILES = {"/0": 0, "/100": 100, "/1000": 1000, "/10k": 10_000, "/100k": 100_000, "/1m": 1 << 20, "/10m": 10 << 20}
BODY_BYTES |= FILES
# What `openssl req -newkey` is told.
KEYS = {"p256": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "rsa": ["rsa:2048"]}


class Options(typing.NamedTuple):
    """What all measurements share."""

    directory: pathlib.Path
    seconds: int
    load: str
    origin: str


class Scene:
    """A context manager; at its end everything is stopped."""

    def __init__(self, place, options):
        self.place, self.seconds = place, options.seconds
        self.options = options
        self.directory = options.directory / place.name
        self.numbers = itertools.count(1)
        # Whether system calls are counted in this turn.
        self.counts_calls = False
        # Set once: the peak rate of HAProxy, for latencies at shares of it.
        self.peak_rate = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.place)
            self.directory.mkdir()
            os.chmod(self.directory, 0o755)  # nginx's worker is another user
            for path, length in FILES.items():
                (self.directory / path[1:]).write_bytes(b"x" * length)
            make_certificates(self.directory)
            with self.place.inside("proxy"):
                # Log lines go to a socket that is never read: the kernel drops what does not fit,
                # and the proxy has the full cost of sending.
                log = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
                log.bind(("127.0.0.1", 0))
            self.values = {
                "DIR": self.directory,
                "LOG": log.getsockname()[1],
                "ADDRESS": self.place.proxy,
                "SERVER": self.place.server,
                "BODY_1K": "x" * BODY_BYTES["/1k"],
            }
            for name in ("ORIGIN", "ORIGIN_TLS", "ORIGIN_UP"):
                self.values[name] = free_port()
            self.start_servers(stack)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start_servers(self, stack):
        """nginx, and ballast-origin: for uploads, which it reads to the end before it answers, and for
        HTTP/2, where nginx takes four times as long and would be what is measured."""
        file = self.directory / "origin.conf"
        file.write_text(fill((PEERS / "origin/nginx.conf").read_text(), self.values))
        uploads = f"{self.place.server}:{self.values['ORIGIN_UP']}"
        commands = {
            "ORIGIN": ["/usr/sbin/nginx", "-c", file],
            "ORIGIN_UP": [self.options.origin, "--listen", uploads],
        }
        for name, command in commands.items():
            log = self.directory / f"{name.lower()}.log"
            server = Server(command, LOAD_CPU, log, self.place.inside("server"))
            stack.enter_context(server)
            with self.place.inside("proxy"):
                wait_for(server, lambda name=name: http_fault(self.place.server, self.values[name], "/"))

    @contextlib.contextmanager
    def proxy(self, program, peer, **values):
        """A program that serves with its file of `bench/peers`, pinned and alone on its processor."""
        number = next(self.numbers)
        values = self.values | {"PORT": free_port(), "SOCKET": self.directory / f"{number}.sock"} | values
        template = PEERS / peer / program.file
        file = self.directory / f"{number}-{peer}-{template.name}"
        file.write_text(fill(template.read_text(), values))
        server = Server(
            program.command(file), PROXY_CPU, file.with_suffix(".log"), self.place.inside("proxy"),
            values["PORT"], str(values["SOCKET"]),
        )
        with server:
            try:
                yield server
            except Exception as fault:
                raise RuntimeError(f"{fault}\n{server.said()}".strip()) from fault

    def wait(self, server, path, port=None, **words):
        """Waits until the proxy answers with the whole body; returns how long it took."""
        address, length = self.place.proxy, BODY_BYTES.get(path)
        with self.place.inside("client"):
            return wait_for(server, lambda: http_fault(address, port or server.port, path, length, **words))

    def wait_h2(self, server):
        """The same for a proxy that may know nothing but HTTP/2."""
        with self.place.inside("client"):
            return wait_for(server, lambda: clients.client(self.place.proxy, server.port, None, True).close())

    def wrk(self, port, path, connections, seconds, **words):
        with self.place.inside("client"):
            return load.wrk(f"http://{self.place.proxy}:{port}{path}", connections, seconds, **words)

    def load(self, port, mode, connections, seconds, words=(), **more):
        with self.place.inside("client"):
            target = f"{self.place.proxy}:{port}"
            return load.ballast_load(self.options.load, target, mode, connections, seconds, words, **more)


def make_certificates(directory):
    """A certificate for each type of key, signed by itself, with its key in one file."""
    for name, words in KEYS.items():
        file = f"{directory}/{name}.pem"
        subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-newkey", *words, *subject]
        subprocess.run([*command, "-keyout", file, "-out", f"{file}.crt"], check=True, capture_output=True)
        with open(file, "a") as bundle:
            bundle.write(pathlib.Path(f"{file}.crt").read_text())
        os.unlink(f"{file}.crt")
