"""Header blocks of HTTP/2 (RFC 7541): an encoder that writes plain literals, and a whole decoder."""

STATIC = (
    [(":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/")]
    + [(":path", "/index.html"), (":scheme", "http"), (":scheme", "https")]
    + [(":status", str(status)) for status in (200, 204, 206, 304, 400, 404, 500)]
    + [("accept-charset", ""), ("accept-encoding", "gzip, deflate")]
    + [
        (name, "")
        for name in (
            "accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control "
            "content-disposition content-encoding content-language content-length content-location content-range "
            "content-type cookie date etag expect expires from host if-match if-modified-since if-none-match if-range "
            "if-unmodified-since last-modified link location max-forwards proxy-authenticate proxy-authorization range "
            "referer refresh retry-after server set-cookie strict-transport-security transfer-encoding user-agent vary "
            "via www-authenticate"
        ).split()
    ]
)
TABLE_BYTES = 4096
ENTRY_BYTES = 32

# The length of each symbol's code in bits. The code is canonical: codes of one length are consecutive, in the
# order of their symbols, and begin where those of the shorter lengths end.
CODE_BITS = [
    *(13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28),
    *(28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28),
    *(6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6),
    *(5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10),
    *(13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7),
    *(7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6),
    *(15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5),
    *(6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28),
    *(20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23),
    *(24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24),
    *(22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23),
    *(21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23),
    *(26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25),
    *(19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27),
    *(20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23),
    *(26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26),
]


def codes():
    """The symbol of each code; a code is a string of bits."""
    made, code, before = {}, 0, 0
    for symbol in sorted(range(256), key=lambda symbol: (CODE_BITS[symbol], symbol)):
        code <<= CODE_BITS[symbol] - before
        before = CODE_BITS[symbol]
        made[format(code, f"0{before}b")] = symbol
        code += 1
    return made


CODES = codes()


def unpacked(coded):
    """The bytes of a string in the Huffman code."""
    out, bits = bytearray(), ""
    for bit in "".join(format(byte, "08b") for byte in coded):
        bits += bit
        if bits in CODES:
            out.append(CODES[bits])
            bits = ""
    if len(bits) > 7 or "0" in bits:
        raise ValueError("a string that ends within a code")
    return bytes(out)


def packed_number(number, prefix_bits, flags):
    most = (1 << prefix_bits) - 1
    if number < most:
        return bytes([flags | number])
    out, number = bytearray([flags | most]), number - most
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def encoded(fields):
    """The fields as literals that no table keeps."""
    out = b""
    for name, value in fields:
        out += b"\0"
        for text in (name.encode("latin-1"), value.encode("latin-1")):
            out += packed_number(len(text), 7, 0) + text
    return out


class Decoder:
    """The table of one direction of a connection."""

    def __init__(self):
        self.table, self.limit = [], TABLE_BYTES

    def decode(self, block):
        """The fields of a block; ValueError when it is none."""
        self.block, self.at, fields = block, 0, []
        while self.at < len(block):
            first = block[self.at]
            if first & 128:
                fields.append(self.entry(self.number(7)))
            elif first & 224 == 32:
                self.limit = self.number(5)
                self.evict()
            else:
                index = self.number(6 if first & 64 else 4)
                field = (self.entry(index)[0] if index else self.text(), self.text())
                fields.append(field)
                if first & 64:
                    self.table.insert(0, field)
                    self.evict()
        return fields

    def evict(self):
        while sum(len(n) + len(v) + ENTRY_BYTES for n, v in self.table) > self.limit:
            self.table.pop()

    def entry(self, index):
        if not 0 < index <= len(STATIC) + len(self.table):
            raise ValueError(f"no entry {index} in the table")
        return STATIC[index - 1] if index <= len(STATIC) else self.table[index - len(STATIC) - 1]

    def byte(self):
        if self.at >= len(self.block):
            raise ValueError("a block that is cut")
        self.at += 1
        return self.block[self.at - 1]

    def number(self, prefix_bits):
        most = (1 << prefix_bits) - 1
        number, shift = self.byte() & most, 0
        while number >= most or shift:
            more = self.byte()
            number += (more & 127) << shift
            shift += 7
            if not more & 128:
                break
        return number

    def text(self):
        is_coded = self.block[self.at] & 128 if self.at < len(self.block) else 0
        length = self.number(7)
        raw = self.block[self.at : self.at + length]
        if len(raw) < length:
            raise ValueError("a string that is cut")
        self.at += length
        return (unpacked(raw) if is_coded else raw).decode("latin-1")
