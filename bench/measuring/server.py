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


def wait_for(server, ask):
    """Waits until `ask` gives what is expected: None. It gives what is wrong instead, or raises.
    Returns after how many seconds from now that was."""
    began = time.monotonic()
    fault = "no answer"
    while time.monotonic() - began < READY_SECONDS_MAX:
        if server.process.poll() is not None:
            raise RuntimeError(f"it ended with {server.process.returncode}")
        try:
            fault = ask()
            if fault is None:
                return time.monotonic() - began
        except (OSError, RuntimeError, http.client.HTTPException) as error:
            fault = str(error) or repr(error)
        time.sleep(0.002)
    raise RuntimeError(f"not ready: {fault}")


def http_fault(address, port, path, body_bytes=None, host=None, is_tls=False, name=None):
    """What is wrong with the answer to a request; None when nothing is. With `name` a server
    certificate is asked for (SNI)."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection((address, port), 5)
    with context.wrap_socket(plain, server_hostname=name) if is_tls else plain as connection:
        client = http.client.HTTPConnection(address, port)
        client.sock = connection
        client.request("GET", path, headers={"Host": host} if host else {})
        answer = client.getresponse()
        body = answer.read()
    if answer.status == 200 and body_bytes in (None, len(body)):
        return None
    return f"status {answer.status}, {len(body)} bytes"
