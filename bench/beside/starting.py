"""One program with the configurations of many scenarios in one file, which names and ports keep apart."""

import asyncio
import contextlib
import fcntl
import itertools
import os
import pathlib
import re
import signal
import socket
import tempfile
import typing

READY_SECONDS_MAX = 20
ANSWER_SECONDS_MAX = 10
LEVELS = ("admin", "operator", "user")
PLACE = re.compile(r"@(?:(bind|server|file|port|cert):)?([\w.-]+)@")
# Five digits, below those that the kernel gives to clients. Each run has a part of its own: what one holds without
# listening the kernel would give to another one, too.
PARTS = [range(start, start + 5000) for start in range(11000, 31000, 5000)]
PORTS = None


def take_ports():
    """Takes the first part of the ports that no other run has, until this process ends."""
    global PORTS
    for part in PARTS:
        with contextlib.suppress(OSError):
            lock = open(os.path.join(tempfile.gettempdir(), f"ballast-beside-{part.start}.lock"), "w")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            PORTS = PortsOfRun(lock, itertools.cycle(part))
            return
    raise SystemExit(f"{len(PARTS)} runs at a time are the most that this machine has ports for")


class PortsOfRun(typing.NamedTuple):
    """The ports of a run, and the file that it holds locked for them."""

    lock: typing.TextIO
    numbers: typing.Iterator[int]


def ears_of_free_port(addresses):
    """A port that is free on all of these addresses (lengths of what names it are then equal, too), and a socket
    that holds it on each."""
    for _ in PARTS[0]:
        port = next(PORTS.numbers)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            ears = {}
            for address in addresses:
                # With the protocol asyncio sends small frames at once, without it the kernel holds back all but
                # the first.
                ears[address] = stack.enter_context(socket.socket(proto=socket.IPPROTO_TCP))
                ears[address].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                ears[address].bind((address, port))
            stack.pop_all()
            return port, ears
    raise RuntimeError("no free port")


def free_port(addresses):
    """A port that is free on all of these addresses."""
    port, ears = ears_of_free_port(addresses)
    for ear in ears.values():
        ear.close()
    return port


class Plot:
    """The names and ports of one scenario within a file."""

    def __init__(self, scenario, number, addresses, certificates):
        self.scenario, self.tag, self.certificates = scenario, f"_x{number:03}x", certificates
        text = "\n".join(all_lines(scenario))
        binds = sorted({found[1] for found in re.finditer(r"@bind:([\w.-]+)@", text)})
        self.ports = {name: free_port(addresses) for name in binds}
        # Held from here on: a connection is refused until its server listens.
        held = {name: ears_of_free_port(addresses) for name in sorted(scenario.get("servers", {}))}
        self.server_ports = {name: port for name, (port, _) in held.items()}
        self.server_ears = {name: ears for name, (_, ears) in held.items()}

    def close(self):
        for ears in self.server_ears.values():
            for ear in ears.values():
                ear.close()

    def filled(self, text, side):
        """The text with the names of this scenario on this side."""

        def place(found):
            kind, name = found[1], found[2]
            if kind == "bind":
                return f"{side.address}:{self.ports.get(name, 1)}"
            if kind == "server":
                return f"{side.address}:{self.server_ports.get(name, 1)}"
            if kind == "port":
                return str(self.server_ports.get(name) or self.ports.get(name, 1))
            if kind == "file":
                return str(side.directory / f"{self.tag}.{name}")
            if kind == "cert":
                return f"{self.certificates}/{name}"
            if name == "log":
                return f"{side.address}:{side.log_ports[self.tag]}"
            return name + self.tag

        return PLACE.sub(place, text)

    def lines(self, side):
        """Its sections."""
        lines = []
        if defaults := self.scenario.get("defaults"):
            lines.append(f"defaults d{self.tag}")
            lines += [f"    {line}" for line in defaults]
        for section in self.scenario["sections"]:
            kind, *words = section["head"].split(" ")
            named = [words[0] + self.tag, *words[1:]] if words else words
            if defaults and kind in ("frontend", "backend", "listen"):
                named += ["from", f"d{self.tag}"]
            lines.append(" ".join([kind, *named]))
            lines += [f"    {line}" for line in section["lines"]]
        return [self.filled(line, side) for line in lines]

    def plain(self, text, side):
        """The text of an observation without what is of this run."""
        text = text.replace(self.tag, "").replace(str(side.directory), "DIR")
        for name, port in (self.ports | self.server_ports).items():
            text = text.replace(f"{side.address}:{port}", f"ADDRESS:{name}").replace(f":{port}", f":{name}")
        text = text.replace(side.address, "127.0.0.1")
        text = re.sub(r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(\.\d+)?", "TIME", text)
        text = re.sub(r"(?i)^(sec-websocket-key: ).*", r"\1KEY", text)
        text = re.sub(r"127\.0\.0\.1:[3-6]\d{4}\b", "127.0.0.1:CLIENT", text)
        return re.sub(r"[A-Z][a-z]{2}, \d\d[ -][A-Z][a-z]{2}[ -]\d{2,4} \d\d:\d\d:\d\d GMT", "DATE", text)


def all_lines(scenario):
    return [*scenario.get("defaults", []), *[line for part in scenario["sections"] for line in part["lines"]]]


class LogSink(asyncio.DatagramProtocol):
    """The log lines of one scenario, without what the protocol puts before them."""

    def __init__(self):
        self.lines = []

    def datagram_received(self, data, _):
        text = data.decode("latin-1").rstrip("\n")
        self.lines.append(re.sub(r"^<\d+>.*?\w+\[\d+\]: ", "", text))


class Side:
    """One of the two programs, with a directory and an address of its own."""

    def __init__(self, name, program, address, directory):
        self.name, self.program, self.address = name, program, address
        self.directory = pathlib.Path(directory) / name
        self.directory.mkdir(parents=True, exist_ok=True)
        self.process, self.logs, self.log_ports, self.transports = None, {}, {}, []
        self.file = self.directory / "haproxy.cfg"
        self.sockets = {level: str(self.directory / level) for level in LEVELS}

    async def open_logs(self, plots):
        loop = asyncio.get_running_loop()
        for plot in plots:
            transport, sink = await loop.create_datagram_endpoint(LogSink, local_addr=(self.address, 0))
            self.transports.append(transport)
            self.logs[plot.tag] = sink
            self.log_ports[plot.tag] = transport.get_extra_info("sockname")[1]

    def write(self, plots):
        """Writes the file; the plot of each of its lines."""
        lines = ["global", "    nbthread 1", "    maxconn 2000", "    stats maxconn 200"]
        lines += [f"    stats socket {path} mode 600 level {level}" for level, path in self.sockets.items()]
        owners = [None] * len(lines)
        for line in plots[0].scenario.get("global", []) if plots else []:
            lines.append(f"    {plots[0].filled(line, self)}")
            owners.append(plots[0])
        for plot in plots:
            for name, content in plot.scenario.get("files", {}).items():
                (self.directory / f"{plot.tag}.{name}").write_bytes(content.encode("latin-1"))
            more = plot.lines(self)
            lines += more
            owners += [plot] * len(more)
        self.file.write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
        return owners

    async def start(self, plots):
        """Starts the program; the plots that it refuses, which is all of them when it does not say."""
        owners = self.write(plots)
        for path in self.sockets.values():
            pathlib.Path(path).unlink(missing_ok=True)
        self.output = open(self.directory / "output", "wb")
        self.process = await asyncio.create_subprocess_exec(
            self.program,
            "-db",
            "-f",
            str(self.file),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
            start_new_session=True,
        )
        ended = asyncio.ensure_future(self.process.wait())
        deadline = asyncio.get_running_loop().time() + READY_SECONDS_MAX
        while not ended.done() and asyncio.get_running_loop().time() < deadline:
            with contextlib.suppress(OSError):
                if await self.ask("show version"):
                    return []
            await asyncio.wait([ended], timeout=0.004)
        if not ended.done():
            await self.stop()
        said = self.said()
        numbers = re.findall(rf"(?:ALERT|error)[^\n]*{re.escape(str(self.file))}:(\d+)", said)
        blamed = {id(owners[int(n) - 1]): owners[int(n) - 1] for n in numbers if int(n) <= len(owners)}
        return [plot for plot in blamed.values() if plot] or list(plots)

    def said(self):
        return (self.directory / "output").read_text(errors="replace")

    def alerts(self):
        """Why it did not start."""
        lines = [line for line in self.said().splitlines() if "ALERT" in line]
        return [re.sub(r"^\[ALERT\].*?(parsing )?\[\S+\] : ", "", line) for line in lines[:3]]

    @property
    def has_ended(self):
        return self.process.returncode is not None

    async def ask(self, text, level="admin"):
        reader, writer = await asyncio.open_unix_connection(self.sockets[level], limit=1 << 22)
        try:
            writer.write(text.encode("latin-1") + b"\n")
            said = await asyncio.wait_for(reader.read(-1), ANSWER_SECONDS_MAX)
        except asyncio.TimeoutError:
            return ""
        finally:
            writer.close()
        return said.decode("latin-1").strip()

    async def stop(self):
        if self.process and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
        if self.process:
            self.output.close()

    async def close(self):
        await self.stop()
        for transport in self.transports:
            transport.close()
