#!/bin/sh
# Guess: asyncio switches Nagle's algorithm off for every TCP connection (TCP_NODELAY), so that a server that binds
# its socket itself and hands it over, create_server(sock=...), sends small frames as soon as one that names a
# port; and uvloop, which replaces the event loop, does the same.
# Seen: asyncio asks for the socket's protocol number. socket.socket() has 0 there, and what it accepts has 0, too:
# Nagle's algorithm stays on, also for socket.create_server(). With IPPROTO_TCP it is off. uvloop switches it off
# for all of them. A test server of HTTP/2 that writes two small frames and closes loses the second one now and
# then under asyncio alone: the kernel holds it back, and a reset drops it.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check uvloop==0.22.1
cat >probe.py <<'PY'
import asyncio
import platform
import socket

import uvloop


async def is_nagle_off(**how):
    loop = asyncio.get_running_loop()
    seen = loop.create_future()

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport):
            own = transport.get_extra_info("socket")
            seen.set_result(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)

    server = await loop.create_server(Accepted, **how)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    answer = await seen
    writer.close()
    server.close()
    return answer


def bound(protocol):
    ear = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    ear.bind(("127.0.0.1", 0))
    return ear


async def all_forms():
    return {
        "host and port": await is_nagle_off(host="127.0.0.1", port=0),
        "socket.socket()": await is_nagle_off(sock=bound(0)),
        "socket.socket(proto=IPPROTO_TCP)": await is_nagle_off(sock=bound(socket.IPPROTO_TCP)),
        "socket.create_server()": await is_nagle_off(sock=socket.create_server(("127.0.0.1", 0))),
    }


seen = [list(asyncio.run(all_forms()).items()), list(uvloop.run(all_forms()).items())]
print(f"Python {platform.python_version()}, uvloop {uvloop.__version__}; whether Nagle's algorithm is off:")
for name, forms in zip(("asyncio", "uvloop"), seen):
    print(f"  {name}: " + ", ".join(f"{form} {is_off}" for form, is_off in forms))
if [is_off for forms in seen for _, is_off in forms] != [True, False, True, False, True, True, True, True]:
    raise SystemExit("it behaves otherwise now")
print("as described: asyncio leaves it on for a socket whose protocol number is 0, uvloop for none")
PY
venv/bin/python probe.py
