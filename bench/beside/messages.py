"""Messages of HTTP/1: just enough to know where each ends, and to compare them."""

import re

# The most of a body that is written into an observation; the rest is its length.
SHOWN_BYTES = 400


def text_of(raw):
    """Bytes as text, cut where they are many."""
    text = bytes(raw).decode("latin-1")
    return text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]}... ({len(text)} bytes)"


class Message:
    """One message: its first line, its fields, its body as far as it came."""

    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.line, self.fields = lines[0], [split(line) for line in lines[1:] if line]
        self.body, self.trailers, self.is_whole = bytearray(), "", False

    def values(self, name):
        return [value for field, value in self.fields if field == name]

    def shown(self):
        """Its fields are sorted by their names: an order is no promise."""
        fields = sorted(self.fields, key=lambda field: field[0])
        shown = [self.line, *[f"{name}: {value}" for name, value in fields]]
        body = text_of(self.body) + (f" trailers {self.trailers!r}" if self.trailers else "")
        return [*shown, f"body {'whole' if self.is_whole else 'cut'}: {body}"]


def split(line):
    name, _, value = line.partition(":")
    # Names are compared without their case, as they are meant.
    return name.lower(), value[1:] if value.startswith(" ") else value


class Reader:
    """Takes messages out of the bytes that a connection receives."""

    def __init__(self, received):
        self.received, self.at, self.messages = received, 0, []
        self.body = None

    def head(self):
        """The next message as soon as its head is there; None until then."""
        while self.received.startswith(b"\r\n", self.at):
            self.at += 2
        end = self.received.find(b"\r\n\r\n", self.at)
        if end < 0:
            return None
        message = Message(bytes(self.received[self.at : end + 2]))
        self.at = end + 4
        self.messages.append(message)
        return message

    def frame(self, message, is_request, method="GET"):
        """Decides how the body of the message ends."""
        lengths = message.values("content-length")
        status = re.match(r"HTTP/\d\.\d (\d+)", message.line)
        is_empty = status and (method == "HEAD" or status[1][0] == "1" or status[1] in ("204", "304"))
        if is_empty:
            self.body = ("length", 0)
        elif any("chunked" in value.lower() for value in message.values("transfer-encoding")):
            self.body = ("chunks", 0)
        elif lengths and lengths[0].strip().isdigit():
            self.body = ("length", int(lengths[0]))
        else:
            self.body = ("length", 0) if is_request else ("close", 0)

    def more(self, has_ended=False):
        """Takes what came of the last message's body; whether it is whole."""
        message = self.messages[-1]
        kind, left = self.body
        if message.is_whole:
            return True
        if kind == "chunks":
            return self.chunks(message)
        piece = self.received[self.at :] if kind == "close" else self.received[self.at : self.at + left]
        message.body += piece
        self.at += len(piece)
        if kind == "close":
            message.is_whole = has_ended
        else:
            self.body = (kind, left - len(piece))
            message.is_whole = left == len(piece)
        return message.is_whole

    def chunks(self, message):
        """A piece of a chunk is taken as well: what a server sent before it broke counts."""
        while True:
            left = self.body[1]
            if left:
                piece = self.received[self.at : self.at + left]
                message.body += piece
                self.at += len(piece)
                self.body = ("chunks", left - len(piece))
                if len(piece) < left:
                    return False
                if self.body[1] == 0:
                    self.body = ("chunks", 0)
            if self.received.startswith(b"\r\n", self.at) and message.body:
                self.at += 2
            end = self.received.find(b"\r\n", self.at)
            if end < 0:
                return False
            size = re.match(rb"[0-9a-fA-F]+", self.received[self.at : end])
            if not size:
                return False
            if int(size[0], 16) == 0:
                return self.trailer(message, end)
            self.at = end + 2
            self.body = ("chunks", int(size[0], 16))

    def trailer(self, message, end):
        if self.received.startswith(b"\r\n", end + 2):
            self.at = end + 4
        else:
            last = self.received.find(b"\r\n\r\n", end + 2)
            if last < 0:
                return False
            message.trailers = bytes(self.received[end + 2 : last]).decode("latin-1")
            self.at = last + 4
        message.is_whole = True
        return True

    def rest(self):
        """What came after the last message."""
        return bytes(self.received[self.at :])
