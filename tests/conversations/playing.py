"""Plays a table: starts a program, holds the conversations, and writes down what comes back."""

import contextlib
import os
import pathlib
import re
import select
import shlex
import signal
import socket
import subprocess
import time

START_SECONDS_MAX = 20
ANSWER_SECONDS_MAX = 10
# How long the first byte of an answer is waited for in a session: some lines have none there.
FIRST_SECONDS = 1.5
# What was whole may go on.
LINGER_SECONDS = 0.03
END_OF_ANSWER = re.compile(rb"(^|\n)\n$|> $|\+ $")
# Below those that the kernel gives to clients.
PORT_FIRST = 20001
POINTER = re.compile(r"\b0x[0-9a-f]+\b")


def play(table, program, place, host):
    """The answers of a program to the steps of a table."""
    player = Player(table, program, place, host)
    with contextlib.closing(player):
        player.start()
        return [answer for talk in table.talks for answer in player.hold(talk)]


class Player:
    """One program, and the directory where it runs."""

    def __init__(self, table, program, place, host):
        self.table, self.program, self.place, self.host = table, program, place, host
        self.process, self.ports, self.workers_seen = None, {}, set()

    def port(self, name):
        """A port of this host, which nothing else has: the same for a name each time."""
        return str(self.ports.setdefault(name, PORT_FIRST + len(self.ports)))

    def filled(self, text):
        text = text.replace("@DIR@", str(self.place)).replace("@HOST@", self.host)
        text = re.sub(r"@PORT:(\w+)@", lambda found: self.port(found[1]), text)
        text = re.sub(r"@FILE:(\w[\w.]*)@\n?", lambda found: (self.place / found[1]).read_text(), text)
        if "@MASTER@" in text or "@WORKER@" in text:
            workers = self.workers()
            text = text.replace("@MASTER@", str(self.process.pid)).replace("@WORKER@", str(workers[-1] if workers else 0))
        return text

    def workers(self):
        """The worker processes of the master, in the order of their start."""
        said = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        workers = sorted(int(pid) for pid in said.split())
        self.workers_seen.update(workers)
        return workers

    def start(self):
        for name, body in self.table.files.items():
            self.write(name, body)
        self.write("haproxy.cfg", self.table.configuration)
        said = open(self.place / "said", "wb")
        arguments = shlex.split(self.filled(self.table.arguments or "-db"))
        self.process = subprocess.Popen([self.program, *arguments, "-f", str(self.place / "haproxy.cfg")],
                                        cwd=self.place, stdout=said, stderr=said, start_new_session=True,
                                        env={"PATH": os.environ["PATH"], "HOME": "/root"})
        for name in sorted({talk.socket for talk in self.table.talks}):
            self.connected(name, START_SECONDS_MAX).close()

    def write(self, name, body):
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.filled(body))

    def connected(self, name, seconds=5.0):
        """A connection to a command socket, as soon as it is listened on."""
        end = time.monotonic() + seconds
        while True:
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(ANSWER_SECONDS_MAX)
            try:
                client.connect(str(self.place / name))
                return client
            except OSError:
                client.close()
                if time.monotonic() > end or self.process.poll() is not None:
                    raise SystemExit(f"{self.table.name}: {self.program} does not listen on {name}:\n"
                                     + (self.place / "said").read_text()) from None
                time.sleep(0.02)

    def hold(self, talk):
        """What comes back for each step of a conversation."""
        play = {"oneshot": self.one_by_one, "batch": self.at_once, "session": self.session}[talk.mode]
        # Each as soon as it is there, when the processes that it names still run.
        return [self.comparable(answer) for answer in play(talk)]

    def one_by_one(self, talk):
        for step in talk.steps:
            if step.text.startswith("!"):
                yield self.act(step.text)
                continue
            with self.connected(talk.socket) as client:
                client.sendall(self.filled(step.text).encode("latin-1") + b"\n")
                # Some lines keep the connection.
                said = answer_of(client)
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_WR)
                said += rest_of(client)
                yield said

    def at_once(self, talk):
        """All lines in one write; what comes back is the answer to the last one."""
        yield from [b""] * (len(talk.steps) - 1)
        with self.connected(talk.socket) as client:
            client.sendall(b"".join(self.filled(step.text).encode("latin-1") + b"\n" for step in talk.steps))
            client.shutdown(socket.SHUT_WR)
            yield rest_of(client)

    def session(self, talk):
        """Line by line over one connection, each after the answer to the one before."""
        with self.connected(talk.socket) as client:
            for number, step in enumerate(talk.steps):
                if step.text.startswith("!"):
                    yield self.act(step.text)
                    continue
                try:
                    client.sendall(self.filled(step.text).encode("latin-1") + b"\n")
                    if number + 1 == len(talk.steps):
                        client.shutdown(socket.SHUT_WR)
                        yield rest_of(client)
                    else:
                        yield answer_of(client)
                except OSError:
                    # It has closed the connection.
                    yield b""

    def act(self, text):
        """A step that is no line: `!write FILE`, `!remove FILE`, `!http PORT PATH`, `!signal NAME`."""
        head, _, body = text.partition("\n")
        word, *words = head.split(" ")
        if word == "!write":
            self.write(words[0], body + "\n")
        elif word == "!remove":
            pathlib.Path(self.place / words[0]).unlink()
        elif word == "!http":
            return self.http(words[0], words[1])
        elif word == "!wait":
            self.until(words[0], re.compile(words[1]), " ".join(words[2:]))
        else:
            raise SystemExit(f"{self.table.name}: no step is called {word}")
        return b""

    def until(self, name, wanted, command):
        """`!wait SOCKET PATTERN COMMAND`: until an answer has the pattern."""
        end = time.monotonic() + ANSWER_SECONDS_MAX
        while True:
            with self.connected(name) as client:
                client.sendall(self.filled(command).encode() + b"\n")
                said = rest_of(client).decode("latin-1")
            if wanted.search(said):
                return
            if time.monotonic() > end:
                raise SystemExit(f"{self.table.name}: {command!r} never answers {wanted.pattern!r}:\n{said}")
            time.sleep(0.02)

    def http(self, name, path):
        with socket.create_connection((self.host, int(self.port(name))), ANSWER_SECONDS_MAX) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: talk.example\r\nConnection: close\r\n\r\n".encode())
            return rest_of(client)

    def comparable(self, answer):
        """An answer without where and as which process the program runs."""
        text = answer.decode("latin-1").replace(str(self.place), "/DIR").replace(self.host, "HOST")
        text = re.sub(rf"\b{self.process.pid}\b", "MASTER", text)
        self.workers()
        for pid in self.workers_seen:
            text = re.sub(rf"\b{pid}\b", "WORKER", text)
        return POINTER.sub("POINTER", text)

    def close(self):
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def rest_of(client):
    """All that comes until the other side closes."""
    said = b""
    try:
        while piece := client.recv(65536):
            said += piece
    except OSError as fault:
        said += f"({type(fault).__name__})".encode()
    return said


def answer_of(client):
    """What comes until an answer is whole."""
    said = b""
    while True:
        wait = LINGER_SECONDS if END_OF_ANSWER.search(said) else FIRST_SECONDS
        if not select.select([client], [], [], wait)[0]:
            return said
        piece = client.recv(65536)
        if not piece:
            return said
        said += piece
