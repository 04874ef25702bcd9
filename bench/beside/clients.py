"""Plays the clients of a scenario: HTTP/1, HTTP/2 and plain TCP; those of the Runtime API are in conversations.py."""

import asyncio

import frames
import parts
from conversations import converse, hold_conversation
from messages import Reader, text_of
from tls import TlsWire
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
                await parts.send_body(self, self.last, out, body)
            else:
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
        """A stream that has ended gets none: to wait on would give the servers of one program more time."""
        self.take()
        stream = self.frames.stream(self.read_number())
        return self.frames.goaway or stream.blocks or stream.end

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


KINDS = {"h1": ClientH1, "h2": ClientH2, "tcp": ClientTcp}


async def over_tls(client, address, port, contexts):
    """A client's connection when its handshake is over."""
    plan = client["tls"]
    key, context = contexts.client(plan)
    key = (client["to"], plan.get("sni"), *key)
    session = contexts.sessions.get(key) if plan.get("resume") else None
    wire = TlsWire(context, name=plan.get("sni"), session=session)
    try:
        await asyncio.get_running_loop().create_connection(lambda: wire, address, port)
    except OSError:
        return None, key
    await wire.until(lambda: wire.is_secure, parts.READ_SECONDS_MAX)
    return wire, key


async def play_over_tls(client, address, port, contexts, events):
    """Plays a client over TLS, which speaks what the handshake agreed on."""
    wire, key = await over_tls(client, address, port, contexts)
    if wire is None:
        return "refused"
    seen = {}
    if wire.is_secure:
        alpn = wire.tls.selected_alpn_protocol()
        kind = client["speaks"] if alpn is None or client["speaks"] == "tcp" else {"h2": "h2"}.get(alpn, "h1")
        seen = await KINDS[kind](wire, events).play(client["steps"])
        contexts.sessions[key] = wire.tls.session
    else:
        wire.close()
    return {"tls": wire.shown(), **seen}


async def play_client(client, address, ports, events, sockets, contexts):
    """Plays one client; what it saw, as plain data."""
    if client["speaks"] == "cli":
        return await converse(sockets[client["to"]], client["steps"])
    if client["speaks"] == "prompt":
        return await hold_conversation(sockets[client["to"]], client["steps"])
    if "tls" in client:
        return await play_over_tls(client, address, ports[client["to"]], contexts, events)
    wire = await connected(address, ports[client["to"]])
    if wire is None:
        return "refused"
    return await KINDS[client["speaks"]](wire, events).play(client["steps"])


__all__ = ["Wire", "play_client"]
