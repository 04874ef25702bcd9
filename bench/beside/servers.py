"""Plays the servers of a scenario, of HTTP/1 or HTTP/2: the n-th request gets the n-th answer, the last one repeatedly."""

import asyncio
import contextlib

import frames
import parts
from messages import Message, Reader, text_of
from tls import ENDED, TlsWire
from wire import OPEN, Wire

BACKLOG = 256
# How a handshake begins.
TLS_RECORD = b"\x16\x03"
# What is shown of a connection over TLS that carried nothing.
HANDSHAKE_ONLY = "ended without a byte"


class Server:
    """A server of a scenario: its listener, the connections that it took and what they carried."""

    def __init__(self, plan, events, contexts):
        self.plan, self.events, self.requests = plan, events, 0
        self.connections, self.tasks, self.listener = [], [], None
        # Connections over TLS whose handshake failed.
        self.failed = []
        self.context = contexts.server(plan["tls"]) if "tls" in plan else None

    async def listen(self, ear):
        if self.plan.get("refuses"):
            return
        loop = asyncio.get_running_loop()
        self.listener = await loop.create_server(self.wire, sock=ear, backlog=BACKLOG)

    def wire(self):
        return TlsWire(self.context, self.accept, self.failed.append) if self.context else Wire(self.accept)

    def accept(self, wire):
        speaks = self.plan.get("speaks", "h1")
        if self.context and wire.tls.selected_alpn_protocol():
            speaks = "h2" if wire.tls.selected_alpn_protocol() == "h2" else "h1"
        kind = {"h1": ConnectionH1, "h2": ConnectionH2, "tcp": ConnectionTcp}[speaks]
        connection = kind(wire, self)
        self.connections.append(connection)
        self.tasks.append(asyncio.ensure_future(connection.serve(len(self.connections) - 1)))

    def next_answer(self):
        answers = self.plan["answers"]
        self.requests += 1
        self.events.mark(f"request {self.requests}")
        return answers[min(self.requests, len(answers)) - 1] if answers else [["close"]]

    def shown(self):
        if not self.context:
            return [connection.shown() for connection in self.connections]
        seen = [self.over_tls(connection) for connection in self.connections]
        return seen + [HANDSHAKE_ONLY if wire.fault == ENDED else {"tls": wire.shown()} for wire in self.failed]

    def over_tls(self, connection):
        """Whether a handshake is over when its client goes is chance: a connection without a byte tells nothing."""
        wire = connection.wire
        if wire.received or wire.fault or wire.ended_here or wire.end == OPEN:
            return {"tls": wire.shown(), **connection.shown()}
        return HANDSHAKE_ONLY

    async def close(self):
        if self.listener:
            self.listener.close()
        for connection in self.connections:
            connection.wire.close()
        for task in self.tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


class Connection:
    """One connection that a server took."""

    def __init__(self, wire, server):
        self.wire, self.server, self.events = wire, server, server.events

    async def serve(self, number):
        greetings = self.server.plan.get("connections", [])
        if number < len(greetings):
            for step in greetings[number]:
                await parts.common_step(self, step)
        while not self.wire.ended_here and await self.one():
            pass
        if not self.wire.ended_here:
            # What the proxy ended, the server ends too.
            self.wire.close()
            self.wire.ended_here = False

    def take(self):
        return True

    def rest(self):
        return self.wire.received

    def ending(self):
        """Whether the proxy ended with a reset depends on what it had not read, which is chance."""
        if self.wire.ended_here:
            return "by the server"
        return "open" if self.wire.end == OPEN else "ended"


class ConnectionTcp(Connection):
    async def one(self):
        await self.wire.until(lambda: self.wire.received, parts.READ_SECONDS_MAX)
        for step in self.server.next_answer():
            await parts.common_step(self, step)
        await self.wire.until(lambda: False, parts.READ_SECONDS_MAX)
        return False

    def shown(self):
        received = self.wire.received
        # A TLS hello to a server without TLS is another each time.
        return {"received": "a TLS hello" if received.startswith(TLS_RECORD) else text_of(received), "end": self.ending()}


class ConnectionH1(Connection):
    def __init__(self, wire, server):
        super().__init__(wire, server)
        self.reader, self.framing = Reader(wire.received), None
        self.request = None

    async def one(self):
        """Answers one request; whether there may be another."""
        await self.wire.until(lambda: self.wait_for_head(), 3600)
        if self.request is None:
            return False
        for step in self.server.next_answer():
            if self.wire.ended_here:
                return False
            if not await parts.common_step(self, step):
                await self.step(step)
        if not self.wire.ended_here:
            await self.wire.until(self.take, parts.READ_SECONDS_MAX)
        is_whole, self.request = self.request.is_whole, None
        return is_whole and not self.wire.ended_here

    def wait_for_head(self):
        if self.request is None:
            self.request = self.reader.head()
            if self.request:
                self.reader.frame(self.request, True)
        return self.request

    def take(self):
        return self.request is None or self.reader.more()

    def rest(self):
        if self.request and not self.request.is_whole:
            self.take()
        return self.reader.rest()

    async def step(self, step):
        word = step[0]
        if word == "body":
            await self.wire.until(self.take, parts.READ_SECONDS_MAX)
        elif word == "some":
            await self.wire.until(lambda: self.take() or len(self.request.body) >= step[1], parts.READ_SECONDS_MAX)
        elif word == "interim":
            self.wire.send(head(step[1], step[2]))
        elif word == "head":
            self.framing = step[3] if len(step) > 3 else "none"
            self.wire.send(head(step[1], [*step[2], *framing_fields(self.framing)]))
        elif word == "data":
            is_chunked = self.framing == "chunked"
            self.wire.send(parts.chunk(step[1]) if is_chunked else step[1].encode("latin-1"))
        elif word == "end":
            self.wire.send(b"0\r\n\r\n" if self.framing == "chunked" else b"")
        elif word == "answer":
            body = step[3]
            fields = [*step[2], *framing_fields(f"length:{len(body)}")]
            self.wire.send(head(step[1], fields) + body.encode("latin-1"))
        elif word in ("cancel", "goaway"):
            self.wire.reset()
        else:
            raise ValueError(f"no step {word}")

    def shown(self):
        if self.reader.messages:
            # Nobody has read the body of a request that was answered, or refused, before it came.
            self.reader.more()
        seen = {"requests": [message.shown() for message in self.reader.messages], "end": self.ending()}
        if rest := self.reader.rest():
            seen["after them"] = text_of(rest)
        return seen


def head(status, fields):
    lines = [f"HTTP/1.1 {status} Said", *[f"{name}: {value}" for name, value in fields]]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def framing_fields(framing):
    if framing == "chunked":
        return [("Transfer-Encoding", "chunked")]
    return [("Content-Length", framing[7:])] if framing.startswith("length:") else []


class ConnectionH2(Connection):
    def __init__(self, wire, server):
        super().__init__(wire, server)
        self.frames, self.current = frames.Frames(wire, True), None
        self.served = 0
        more = [(frames.ENABLE_CONNECT_PROTOCOL, 1)] if server.plan.get("connect_protocol") else []
        wire.send(frames.settings([(3, 100), *more]))

    async def serve(self, number):
        greetings = self.server.plan.get("connections", [])
        if number < len(greetings):
            for step in greetings[number]:
                await parts.common_step(self, step)
        tasks = []
        while not self.wire.ended_here:
            await self.wire.until(lambda: self.take() and len(self.frames.opened) > self.served, 3600)
            if len(self.frames.opened) <= self.served:
                break
            stream = self.frames.opened[self.served]
            self.served += 1
            await self.answer(stream, self.server.next_answer())
        if not self.wire.ended_here:
            self.wire.close()
            self.wire.ended_here = False

    def take(self):
        return self.frames.take()

    def rest(self):
        self.take()
        return self.current.body if self.current else b""

    async def answer(self, stream, steps):
        self.current = stream
        for step in steps:
            if self.wire.ended_here:
                return
            if not await parts.common_step(self, step):
                await self.step(stream, step)

    async def step(self, stream, step):
        word, number = step[0], stream.number
        if word == "body":
            await self.wire.until(lambda: self.take() and stream.end, parts.READ_SECONDS_MAX)
        elif word == "some":
            enough = lambda: self.take() and (stream.end or len(stream.body) >= step[1])  # noqa: E731
            await self.wire.until(enough, parts.READ_SECONDS_MAX)
        elif word == "interim":
            self.wire.send(parts.block(status(step), number, False))
        elif word == "head":
            more = framing_fields(step[3]) if len(step) > 3 else []
            fields = status(step) + [(n.lower(), v) for n, v in more if n != "Transfer-Encoding"]
            self.wire.send(parts.block(fields, number, step[3:] == ["none"]))
        elif word == "data":
            self.wire.send(parts.data(step[1], number, False))
        elif word == "end":
            self.wire.send(parts.data("", number, True))
        elif word == "answer":
            fields = [*status(step), ("content-length", str(len(step[3])))]
            head = parts.block(fields, number, not step[3])
            if step[3]:
                await parts.send_body(self, number, head, step[3])
            else:
                self.wire.send(head)
        elif word == "cancel":
            self.wire.send(frames.frame(frames.RST_STREAM, 0, number, step[1].to_bytes(4, "big")))
        elif word == "goaway":
            payload = step[1].to_bytes(4, "big") + step[2].to_bytes(4, "big")
            self.wire.send(frames.frame(frames.GOAWAY, 0, 0, payload))
        else:
            raise ValueError(f"no step {word}")

    def shown(self):
        seen = {"streams": [stream.shown() for stream in self.frames.opened], "end": self.ending()}
        for name in ("goaway", "fault"):
            # Whether a farewell was read before the end is chance.
            if (said := getattr(self.frames, name)) and said != "NO_ERROR":
                seen[name] = said
        return seen


def status(step):
    return [(":status", str(step[1])), *[(n.lower(), v) for n, v in step[2]]]


__all__ = ["Message", "Server"]
