"""Frames of HTTP/2, and what a connection of it received, stream by stream."""

import hpack
from messages import text_of

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 1, 1, 4, 8, 32
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INITIAL_WINDOW_SIZE, ENABLE_CONNECT_PROTOCOL = 4, 8
# What each side may send before it hears of a window.
WINDOW_BYTES = 65535
ERRORS = (
    "NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED FRAME_SIZE_ERROR "
    "REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM INADEQUATE_SECURITY HTTP_1_1_REQUIRED"
).split()


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def settings(values):
    return frame(SETTINGS, 0, 0, b"".join(k.to_bytes(2, "big") + v.to_bytes(4, "big") for k, v in values))


def error(number):
    return ERRORS[number] if number < len(ERRORS) else str(number)


class Stream:
    """What came on one stream."""

    def __init__(self, number):
        self.number, self.blocks, self.body, self.end = number, [], bytearray(), ""

    @property
    def is_answered(self):
        """Whether a final head came."""
        return any(dict(block).get(":status", "100")[0] != "1" for block in self.blocks)

    def shown(self):
        blocks = []
        for block in self.blocks:
            pseudo = [f"{n} {v}" for n, v in block if n.startswith(":")]
            fields = sorted((f for f in block if not f[0].startswith(":")), key=lambda f: f[0])
            blocks.append([*sorted(pseudo), *[f"{n}: {v}" for n, v in fields]])
        return {"heads": blocks, "body": text_of(self.body), "end": self.end or "open"}


class Frames:
    """Takes frames out of what a wire received, answers what must be answered."""

    def __init__(self, wire, is_server):
        self.wire, self.is_server, self.at = wire, is_server, 0
        self.decoder, self.streams, self.goaway = hpack.Decoder(), {}, ""
        self.block, self.settings, self.has_preface, self.fault = None, {}, not is_server, ""
        self.opened = []
        # What the peer has added to its windows less what was sent; 0 is the connection.
        self.windows = {}

    def stream(self, number):
        if number not in self.streams:
            self.streams[number] = Stream(number)
        return self.streams[number]

    def take(self):
        """Handles all frames that are there; True, so that it can be a condition's first half."""
        received = self.wire.received
        if not self.has_preface:
            if len(received) < len(PREFACE):
                return True
            self.has_preface, self.at = True, len(PREFACE)
        while len(received) - self.at >= 9 and not self.fault:
            length = int.from_bytes(received[self.at : self.at + 3], "big")
            if len(received) - self.at < 9 + length:
                break
            kind, flags = received[self.at + 3], received[self.at + 4]
            number = int.from_bytes(received[self.at + 5 : self.at + 9], "big") & 0x7FFFFFFF
            payload = bytes(received[self.at + 9 : self.at + 9 + length])
            self.at += 9 + length
            try:
                self.handle(kind, flags, number, payload)
            except (ValueError, IndexError) as fault:
                self.fault = str(fault)
        return True

    def handle(self, kind, flags, number, payload):
        if kind in (DATA, HEADERS) and flags & PADDED:
            payload = payload[1 : len(payload) - payload[0]]
        if kind == HEADERS:
            self.block = (number, payload[5:] if flags & HAS_PRIORITY else payload, flags & END_STREAM)
            self.finish_block(flags)
        elif kind == CONTINUATION:
            self.block = (self.block[0], self.block[1] + payload, self.block[2])
            self.finish_block(flags)
        elif kind == DATA:
            stream = self.stream(number)
            stream.body += payload
            if payload:
                for target in (0, number):
                    self.wire.send(frame(WINDOW_UPDATE, 0, target, len(payload).to_bytes(4, "big")))
            if flags & END_STREAM:
                stream.end = stream.end or "ended"
        elif kind == RST_STREAM:
            stream = self.stream(number)
            reset = f"reset {error(int.from_bytes(payload, 'big'))}"
            # What follows a reset is about frames that crossed it.
            if stream.end in ("", "ended"):
                stream.end = f"ended, {reset}" if stream.end else reset
        elif kind == GOAWAY:
            self.goaway = error(int.from_bytes(payload[4:8], "big"))
        elif kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload) - 5, 6):
                key = int.from_bytes(payload[at : at + 2], "big")
                self.settings[key] = int.from_bytes(payload[at + 2 : at + 6], "big")
            self.wire.send(frame(SETTINGS, ACK, 0))
        elif kind == WINDOW_UPDATE:
            self.windows[number] = self.windows.get(number, 0) + int.from_bytes(payload, "big")
        elif kind == PING and not flags & ACK:
            self.wire.send(frame(PING, ACK, 0, payload))

    def room(self, number):
        """How many bytes of a body the peer allows on a stream (RFC 9113, section 5.2)."""
        of_stream = self.settings.get(INITIAL_WINDOW_SIZE, WINDOW_BYTES) + self.windows.get(number, 0)
        return max(0, min(of_stream, WINDOW_BYTES + self.windows.get(0, 0)))

    def spend(self, number, count):
        for target in (0, number):
            self.windows[target] = self.windows.get(target, 0) - count

    def finish_block(self, flags):
        if not flags & END_HEADERS:
            return
        number, block, ends = self.block
        is_new = number not in self.streams
        stream = self.stream(number)
        stream.blocks.append(self.decoder.decode(block))
        if ends:
            stream.end = stream.end or "ended"
        if is_new and self.is_server:
            self.opened.append(stream)
