"""Plays the clients of a scenario: HTTP/1, HTTP/2, plain TCP, and the Runtime API."""

import asyncio
import os

import frames
import parts
from messages import Reader, text_of
from wire import OPEN, RESET, Wire, connected

# Whether the proxy closes a connection after its last response shows within this.
LINGER_SECONDS = 0.12
# After a half close by the client: whatever the proxy still does, it does within its timeouts.


class Client:
    """One connection of a client and what it saw."""

    def __init__(self, wire, events):
        self.wire, self.events, self.asked = wire, events, 0

    async def play(self, steps):
        for step in steps:
            if self.wire.ended_here:
                break
            if not await parts.common_step(self, step):
                await self.step(step)
        if not self.wire.ended_here:
            await self.wire.until(lambda: self.take() and False, LINGER_SECONDS)
        self.take()
        seen = self.shown()
        seen["end"] = "by the client" if self.wire.ended_here else self.ending()
        if not self.wire.ended_here:
            self.wire.close()
        return seen

    def ending(self):
        return self.wire.end

    def take(self):
        return True

    def rest(self):
        return self.wire.received

    async def step(self, step):
        raise ValueError(f"no step {step[0]}")

    def shown(self):
        return {"received": text_of(self.wire.received)}


class ClientH1(Client):
    def __init__(self, wire, events):
        super().__init__(wire, events)
        self.reader, self.methods, self.request = Reader(wire.received), [], None
        self.is_tunnel = False

    async def step(self, step):
        word = step[0]
        if word in ("ask", "head"):
            self.request = step[1]
            self.methods.append(self.request["method"])
            whole = parts.whole_h1 if word == "ask" else parts.head_h1
            self.wire.send(whole(self.request))
        elif word == "body":
            is_chunked = self.request and parts.is_chunked(self.request["fields"])
            self.wire.send(parts.chunk(step[1]) if is_chunked else step[1].encode("latin-1"))
        elif word == "end":
            if self.request and parts.is_chunked(self.request["fields"]):
                self.wire.send(b"0\r\n\r\n")
        elif word == "cancel":
            self.wire.reset()
        elif word == "read":
            await self.wire.until(self.has_response, parts.READ_SECONDS_MAX)
            self.has_response()
            self.asked += 1
        elif word == "interim":
            await self.wire.until(lambda: self.take() and self.reader.messages, parts.READ_SECONDS_MAX)
        else:
            await super().step(step)

    def responses(self):
        return [m for m in self.reader.messages if not m.line[9:10] == "1" or m.line[9:12] == "101"]

    def has_response(self):
        self.take()
        finals = self.responses()
        return len(finals) > self.asked and finals[self.asked].is_whole

    def take(self):
        while not self.is_tunnel:
            last = self.reader.messages[-1] if self.reader.messages else None
            if last and not last.is_whole:
                if not self.reader.more(self.wire.end != OPEN):
                    return True
            elif self.start():
                continue
            else:
                return True
        return True

    def start(self):
        message = self.reader.head()
        if message is None:
            return False
        index = len(self.responses()) - 1
        method = self.methods[index] if 0 <= index < len(self.methods) else "GET"
        self.reader.frame(message, False, method)
        status = message.line[9:12]
        if status == "101" or (method == "CONNECT" and status[:1] == "2"):
            message.is_whole = self.is_tunnel = True
        return True

    def rest(self):
        self.take()
        return self.reader.rest()

    def shown(self):
        seen = {"responses": [message.shown() for message in self.reader.messages]}
        if rest := self.reader.rest():
            seen["after them"] = text_of(rest)
        return seen


class ClientH2(Client):
    def __init__(self, wire, events):
        super().__init__(wire, events)
        self.frames, self.last = frames.Frames(wire, False), -1
        wire.send(frames.PREFACE + frames.settings([(2, 0)]))

    def read_number(self):
        return 2 * self.asked + 1

    async def step(self, step):
        word = step[0]
        if word in ("ask", "head"):
            self.last += 2
            request = step[1]
            body = request.get("body")
            ends = word == "ask" and body is None
            out = parts.block(parts.fields_h2(request), self.last, ends)
            if word == "ask" and body is not None:
                out += parts.data(body, self.last, True)
            self.wire.send(out)
        elif word == "body":
            self.wire.send(parts.data(step[1], self.last, False))
        elif word == "end":
            self.wire.send(parts.data("", self.last, True))
        elif word == "cancel":
            self.wire.send(frames.frame(frames.RST_STREAM, 0, self.last, b"\0\0\0\x08"))
        elif word == "read":
            await self.wire.until(self.has_response, parts.READ_SECONDS_MAX)
            self.asked += 1
        elif word == "interim":
            await self.wire.until(self.has_head, parts.READ_SECONDS_MAX)
        elif word == "frame":
            _, kind, flags, stream, payload = step
            self.wire.send(frames.frame(kind, flags, stream, payload.encode("latin-1")))
        else:
            await super().step(step)

    def has_head(self):
        return self.take() and self.frames.stream(self.read_number()).blocks

    def has_response(self):
        self.take()
        return self.frames.goaway or self.frames.stream(self.read_number()).end

    def take(self):
        return self.frames.take()

    def ending(self):
        """HAProxy leaves a client that it told to go away as much time again to do so, and tells it once more."""
        is_told = self.frames.goaway == "NO_ERROR" and self.wire.end != RESET
        return "told to go away" if is_told else self.wire.end

    def rest(self):
        self.take()
        return self.frames.stream(self.last).body

    def shown(self):
        streams = self.frames.streams
        seen = {f"stream {n}": streams[n].shown() for n in sorted(streams) if n}
        for name in ("goaway", "fault"):
            if said := getattr(self.frames, name):
                seen[name] = said
        return seen


class ClientTcp(Client):
    async def step(self, step):
        if step[0] in ("read", "ask", "head"):
            await super().step(step)
        else:
            await super().step(step)


async def converse(path, steps):
    """A conversation with the Runtime API: each command is sent when the last one was answered."""
    answers = []
    for _, text, *_ in steps:
        try:
            reader, writer = await asyncio.open_unix_connection(path, limit=1 << 20)
        except OSError as fault:
            answers.append([text, f"no connection: {os.strerror(fault.errno or 0)}"])
            continue
        writer.write(text.encode("latin-1") + b"\n")
        try:
            said = await asyncio.wait_for(reader.read(-1), parts.READ_SECONDS_MAX)
        except (asyncio.TimeoutError, OSError):
            said = b"no answer"
        writer.close()
        answers.append([text, said.decode("latin-1")])
    return answers


KINDS = {"h1": ClientH1, "h2": ClientH2, "tcp": ClientTcp}


async def play_client(client, address, ports, events, sockets):
    """Plays one client; what it saw, as plain data."""
    if client["speaks"] == "cli":
        return await converse(sockets[client["to"]], client["steps"])
    wire = await connected(address, ports[client["to"]])
    if wire is None:
        return "refused"
    return await KINDS[client["speaks"]](wire, events).play(client["steps"])


__all__ = ["Wire", "play_client"]
