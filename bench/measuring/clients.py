"""Connections that carry one request each, and then stay."""

import concurrent.futures
import contextlib
import resource
import socket
import ssl

# Descriptors for everything else.
SPARE_DESCRIPTORS = 600
SECONDS_MAX = 20
# So many are opened at a time: a busy machine would take minutes for one after the other.
AT_A_TIME = 16
REQUEST = b"GET /up HTTP/1.1\r\nHost: idle.example.com\r\n\r\n"
ANSWER = b"ok"
# The preface, SETTINGS without push, and HEADERS of stream 1: GET http /up idle.example.com.
H2_BLOCK = b"\x82\x86\x04\x03/up\x01\x10idle.example.com"
H2_REQUEST = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + b"\0\0\6\4\0\0\0\0\0\0\2\0\0\0\0"
    + bytes([0, 0, len(H2_BLOCK), 1, 5, 0, 0, 0, 1])
    + H2_BLOCK
)


def raise_descriptors():
    """Allows as many descriptors as may be, to the programs that are started, too; returns how many."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def tls_context(protocol):
    """A context that takes any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    return context


@contextlib.contextmanager
def idle_clients(place, port, count, context=None, is_h2=False):
    """So many connections that have carried a request; `more(count)` opens more."""
    with contextlib.ExitStack() as stack:

        def one(_):
            with place.inside("client"):
                return client(place.proxy, port, context, is_h2)

        def more(count):
            with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
                for connection in pool.map(one, range(count)):
                    stack.enter_context(connection)

        more(count)
        yield more


def client(address, port, context, is_h2):
    """A connection that has carried one request."""
    connection = socket.create_connection((address, port), SECONDS_MAX)
    if context:
        connection = context.wrap_socket(connection)
    if is_h2:
        connection.sendall(H2_REQUEST)
        h2_answer(connection)
        return connection
    connection.sendall(REQUEST)
    answer = b""
    while not answer.endswith(b"\r\n\r\n" + ANSWER):
        piece = connection.recv(4096)
        if not piece:
            raise RuntimeError(f"the proxy closed after {answer!r}")
        answer += piece
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the proxy answered {answer!r}")
    return connection


def h2_answer(connection):
    """Reads to the end of stream 1, and acknowledges what must be."""
    received, body = bytearray(), b""
    while True:
        piece = connection.recv(4096)
        if not piece:
            raise RuntimeError(f"the proxy closed after {bytes(received)!r}")
        received += piece
        while len(received) >= 9 and len(received) >= 9 + int.from_bytes(received[:3], "big"):
            length, kind, flags = int.from_bytes(received[:3], "big"), received[3], received[4]
            payload = bytes(received[9 : 9 + length])
            del received[: 9 + length]
            if kind == 4 and not flags & 1:
                connection.sendall(b"\0\0\0\4\1\0\0\0\0")
            elif kind in (3, 7):
                raise RuntimeError(f"the proxy sent a frame of type {kind}: {payload!r}")
            elif kind == 0:
                body += payload
                if flags & 1:
                    if not body:
                        raise RuntimeError("the proxy answered without a body")
                    return
