"""A program that serves, pinned to a processor, with a configuration of its own."""

import http.client
import pathlib
import signal
import socket
import ssl
import subprocess
import time

PROXY_CPU, LOAD_CPU = "0", "1"
READY_SECONDS_MAX = 30
ANSWER_SECONDS_MAX = 60
STOP_SECONDS_MAX = 5


class Server:
    """A running program; a context manager. `inside` is the role it plays in a place."""

    def __init__(self, command, cpu, log, inside, port=None, control=None):
        self.command = ["taskset", "-c", cpu, *map(str, command)]
        self.log, self.inside = pathlib.Path(log), inside
        # Where it listens, and where it takes commands.
        self.port, self.control = port, control

    def __enter__(self):
        with self.inside, open(self.log, "w") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        return self

    @property
    def pid(self):
        return self.process.pid

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def said(self):
        """The end of what it wrote."""
        return self.log.read_text(errors="replace")[-2000:].strip()

    def ask(self, text):
        """What it answers to a command of the Runtime API."""
        with socket.socket(socket.AF_UNIX) as desk:
            desk.settimeout(ANSWER_SECONDS_MAX)
            desk.connect(self.control)
            desk.sendall(text.encode() + b"\n")
            pieces = []
            while piece := desk.recv(1 << 16):
                pieces.append(piece)
        return b"".join(pieces).decode(errors="replace").strip()


def wait_for(server, address, port, path, body_bytes=None, host=None, is_tls=False, name=None):
    """Waits until the port answers a request as it should; returns after how many seconds from now
    that was. With `name` a server certificate is asked for (SNI)."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    began = time.monotonic()
    fault = "no answer"
    while time.monotonic() - began < READY_SECONDS_MAX:
        if server.process.poll() is not None:
            raise RuntimeError(f"it ended with {server.process.returncode}: {server.said()}")
        try:
            plain = socket.create_connection((address, port), 5)
            with context.wrap_socket(plain, server_hostname=name) if is_tls else plain as connection:
                client = http.client.HTTPConnection(address, port)
                client.sock = connection
                client.request("GET", path, headers={"Host": host} if host else {})
                answer = client.getresponse()
                body = answer.read()
            if answer.status == 200 and body_bytes in (None, len(body)):
                return time.monotonic() - began
            fault = f"status {answer.status}, {len(body)} bytes"
        except (OSError, http.client.HTTPException) as error:
            fault = str(error) or repr(error)
        time.sleep(0.002)
    raise RuntimeError(f"not ready: {fault}; {server.said()}")
