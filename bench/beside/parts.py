"""What clients and servers of a scenario have in common: steps that both know, events between them, requests as bytes."""

import asyncio

import frames
import hpack

# Longer than any timeout of a generated configuration: who waits so long waits for nothing.
READ_SECONDS_MAX = 2.0
# Who waits for a step of the other side waits no longer: the proxy may hold back what it waits for.
EVENT_SECONDS_MAX = 0.4
PAUSE_SECONDS = 0.05
# No frame is larger than what a peer takes that says nothing of it (RFC 9113, section 4.2).
FRAME_BYTES_MAX = 16384
# No field of these crosses to HTTP/2; a scenario has them for HTTP/1.
HOP_FIELDS = ("host", "transfer-encoding")


class Events:
    """Marks that one part sets and another waits for."""

    def __init__(self):
        self.events = {}

    def get(self, name):
        return self.events.setdefault(name, asyncio.Event())

    def mark(self, name):
        self.get(name).set()

    async def wait(self, name):
        try:
            await asyncio.wait_for(self.get(name).wait(), EVENT_SECONDS_MAX)
        except asyncio.TimeoutError:
            pass


async def common_step(part, step):
    """Plays a step that every part knows; False when it is none."""
    word = step[0]
    if word == "send":
        part.wire.send(step[1].encode("latin-1"))
    elif word == "half":
        part.wire.half_close()
    elif word == "close":
        part.wire.close()
    elif word == "cut":
        part.wire.cut()
    elif word == "fin":
        part.wire.end_without_alert()
    elif word == "notify":
        part.wire.notify()
    elif word == "reset":
        part.wire.reset()
    elif word == "stall":
        await part.wire.until(lambda: part.take() and False, READ_SECONDS_MAX)
    elif word == "mark":
        part.events.mark(step[1])
    elif word == "wait":
        await part.events.wait(step[1])
    elif word == "pause":
        await asyncio.sleep(PAUSE_SECONDS)
    elif word == "bytes":
        await part.wire.until(lambda: len(part.rest()) >= step[1], READ_SECONDS_MAX)
    else:
        return False
    return True


def head_h1(request):
    lines = [f"{request['method']} {request['target']} HTTP/{request.get('version', '1.1')}"]
    lines += [f"{name}: {value}" for name, value in request["fields"]]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def is_chunked(fields):
    return any(n.lower() == "transfer-encoding" and "chunked" in v.lower() for n, v in fields)


def chunk(text):
    return b"%x\r\n%s\r\n" % (len(text), text.encode("latin-1")) if text else b""


def whole_h1(request):
    body = request.get("body")
    if body is None:
        return head_h1(request)
    if is_chunked(request["fields"]):
        return head_h1(request) + chunk(body) + b"0\r\n\r\n"
    return head_h1(request) + body.encode("latin-1")


def fields_h2(request):
    if "raw" in request:
        return [tuple(field) for field in request["raw"]]
    host = next((v for n, v in request["fields"] if n.lower() == "host"), "a.example")
    fields = [(":method", request["method"])]
    if request["method"] != "CONNECT" or request.get("protocol"):
        fields += [(":scheme", request.get("scheme", "http")), (":path", request["target"])]
    fields.append((":authority", host))
    if request.get("protocol"):
        fields.append((":protocol", request["protocol"]))
    return fields + [(n.lower(), v) for n, v in request["fields"] if n.lower() not in HOP_FIELDS]


def block(fields, stream, ends):
    flags = frames.END_HEADERS | (frames.END_STREAM if ends else 0)
    return frames.frame(frames.HEADERS, flags, stream, hpack.encoded(fields))


async def send_body(peer, number, head, body):
    """Sends a head and its body on a stream, as far as the other side allows it."""
    flow = peer.frames

    def is_released():
        flow.take()
        # To a server the end of what it was asked is no end of its answer.
        end = flow.stream(number).end
        is_over = "reset" in end if flow.is_server else end
        return flow.goaway or is_over or flow.room(number)

    flow.take()
    while True:
        piece = body[: flow.room(number)]
        body = body[len(piece) :]
        flow.spend(number, len(piece))
        peer.wire.send(head + (data(piece, number, not body) if piece or not body else b""))
        if not body or not await peer.wire.until(is_released, READ_SECONDS_MAX) or not flow.room(number):
            return
        head = b""


def data(text, stream, ends):
    body = text.encode("latin-1")
    starts = range(0, len(body), FRAME_BYTES_MAX) or [0]
    flags = [frames.END_STREAM if ends and start == starts[-1] else 0 for start in starts]
    pieces = [body[start : start + FRAME_BYTES_MAX] for start in starts]
    return b"".join(frames.frame(frames.DATA, flag, stream, piece) for flag, piece in zip(flags, pieces))
