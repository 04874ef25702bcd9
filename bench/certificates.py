"""Certificates on P-256 for measurements, by the thousand a second, with Python's standard library.

One nonce signs everything, which tells the authority's key to anybody who compares two signatures.
It is known to this process only, and lives as long as a measurement.
"""

import base64
import datetime
import hashlib
import ipaddress
import itertools
import pathlib
import secrets
import tempfile
import textwrap

from programs import Settings

# The curve P-256: y^2 = x^3 - 3x + b over the integers modulo P; G generates the ORDER points.
P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)

SEQUENCE, SET, INTEGER, BITS, OCTETS, OID, TEXT, TIME = 0x30, 0x31, 2, 3, 4, 6, 12, 23
EC_PUBLIC_KEY = bytes.fromhex("2a8648ce3d0201")
PRIME256V1 = bytes.fromhex("2a8648ce3d030107")
ECDSA_WITH_SHA256 = bytes.fromhex("2a8648ce3d040302")
COMMON_NAME, ALTERNATIVE_NAMES, BASIC_CONSTRAINTS = (bytes.fromhex(f"55{one}") for one in ("0403", "1d11", "1d13"))


def plus(a, b):
    """The sum of two points of the curve, neither of which is the other's negative."""
    if a == b:
        slope = 3 * (a[0] * a[0] - 1) * pow(2 * a[1], -1, P)
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(number, point):
    """The sum of `number` times the point."""
    found = None
    while number:
        if number & 1:
            found = plus(found, point) if found else point
        number, point = number >> 1, plus(point, point)
    return found


def der(tag, *parts):
    """One value in DER."""
    content = b"".join(parts)
    if len(content) < 0x80:
        return bytes([tag, len(content)]) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def integer(number):
    return der(INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def pem(label, content):
    body = "\n".join(textwrap.wrap(base64.b64encode(content).decode(), 64))
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"


def in_days(days):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)
    return der(TIME, at.strftime("%y%m%d%H%M%SZ").encode())


def subject(name):
    return der(SEQUENCE, der(SET, der(SEQUENCE, der(OID, COMMON_NAME), der(TEXT, name.encode()))))


def alternative(name):
    try:
        return der(0x87, ipaddress.ip_address(name).packed)
    except ValueError:
        return der(0x82, name.encode())


def point_bits(point):
    return der(BITS, b"\0\4", *(number.to_bytes(32, "big") for number in point))


def key_type():
    return der(SEQUENCE, der(OID, EC_PUBLIC_KEY), der(OID, PRIME256V1))


class Authority:
    """Signs certificates; `certificate` is its own, in PEM."""

    numbers = itertools.count(1)

    def __init__(self, name):
        self.name = name
        self.secret = 1 + secrets.randbelow(ORDER - 1)
        nonce = 1 + secrets.randbelow(ORDER - 1)
        self.nonce_inverse = pow(nonce, -1, ORDER)
        self.r = times(nonce, G)[0] % ORDER
        # Keys follow each other, so that one addition makes the next.
        self.key = secrets.randbelow(ORDER >> 1)
        self.point = times(self.key, G)
        constraints = der(SEQUENCE, der(1, b"\xff"))
        self.certificate = self.sign(name, times(self.secret, G), BASIC_CONSTRAINTS, constraints)

    def sign(self, name, point, extension, content):
        """A certificate for this name and public key, with one extension."""
        algorithm = der(SEQUENCE, der(OID, ECDSA_WITH_SHA256))
        critical = der(1, b"\xff") if extension == BASIC_CONSTRAINTS else b""
        said = der(
            SEQUENCE,
            der(0xA0, integer(2)),
            integer(next(Authority.numbers)),
            algorithm,
            subject(self.name),
            der(SEQUENCE, in_days(-1), in_days(30)),
            subject(name),
            der(SEQUENCE, key_type(), point_bits(point)),
            der(0xA3, der(SEQUENCE, der(SEQUENCE, der(OID, extension), critical, der(OCTETS, content)))),
        )
        digest = int.from_bytes(hashlib.sha256(said).digest(), "big")
        s = self.nonce_inverse * (digest + self.r * self.secret) % ORDER
        signature = der(SEQUENCE, integer(self.r), integer(s))
        return pem("CERTIFICATE", der(SEQUENCE, said, algorithm, der(BITS, b"\0", signature)))

    def issue(self, *names):
        """A new certificate for these names and addresses, and its new key: what `crt` reads."""
        self.key, self.point = self.key + 1, plus(self.point, G)
        content = der(SEQUENCE, *map(alternative, names))
        leaf = self.sign(names[0], self.point, ALTERNATIVE_NAMES, content)
        inner = der(SEQUENCE, integer(1), der(OCTETS, self.key.to_bytes(32, "big")))
        key = der(SEQUENCE, integer(0), key_type(), der(OCTETS, inner))
        return leaf + pem("PRIVATE KEY", key)


class TlsSite:
    """What the `bind` line of a site over TLS says, and what its clients know."""

    NAME = "www.example.com"

    def __init__(self, alpn="http/1.1"):
        self.authority = Authority("bench")
        folder = tempfile.mkdtemp(dir=Settings.directory)
        self.file = f"{folder}/site.pem"
        known = pathlib.Path(folder, "ca.pem")
        known.write_text(self.authority.certificate)
        pathlib.Path(self.file).write_text(self.issue())
        self.bind = f" ssl crt {self.file} alpn {alpn}"
        self.load = ["--tls", "--sni", self.NAME, "--cacert", known]

    def issue(self):
        return self.authority.issue(self.NAME)


def renew(ask, file, content):
    """Puts a certificate in the place of the one of this file, by commands."""
    said = ask(f"set ssl cert {file} <<END\n{content}END") + ask(f"commit ssl cert {file}")
    if "Transaction created" not in said or "Success!" not in said:
        raise RuntimeError(f"{file}: {said[:400]}")
    return said
