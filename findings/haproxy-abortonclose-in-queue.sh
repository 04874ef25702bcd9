#!/bin/sh
# Guess: with `option abortonclose` a request that waits for a free slot at its server leaves the queue when its client
# closes the connection, as the manual says: aborted in the queue.
# Seen: in 2.6 only while its request is not whole. A client that has sent all of a GET and closes stays in the queue until
# the slot is free, and its request then goes to the server, which works for nobody. (3.2 takes both off the queue.)
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# On Debian 12 or what is built on it.
cd "$dir"
apt-get -q -o APT::Sandbox::User=root download haproxy=2.6.12-1+deb12u3 liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 libpcre2-8-0 >/dev/null
for package in *.deb; do dpkg -x "$package" root; done
LD_LIBRARY_PATH=$(find "$dir/root" -type d -name '*-linux-gnu' | tr '\n' ':')
export LD_LIBRARY_PATH
cat >"$dir/probe.py" <<'PY'
import contextlib
import pathlib
import socket
import subprocess
import sys
import threading
import time

home = pathlib.Path(sys.argv[1])
haproxy = home / "root/usr/sbin/haproxy"
seen, answers = [], threading.Event()

listener = socket.create_server(("127.0.0.1", 0))


def serve(client):
    """Notes each request, and answers when it may."""
    with contextlib.suppress(OSError), client:
        while head := client.recv(65536):
            seen.append(head.split(b" ")[1].decode())
            answers.wait()
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def accept():
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


threading.Thread(target=accept, daemon=True).start()
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
(home / "haproxy.cfg").write_text(f"""
global
  stats socket {home}/sock
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout queue 30s
frontend f
  bind 127.0.0.1:{port}
  default_backend b
backend b
  option abortonclose
  server s 127.0.0.1:{listener.getsockname()[1]} maxconn 1
""")


def queued():
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(str(home / "sock"))
        asked.sendall(b"show stat\n")
        lines = [line.split(",") for line in asked.makefile().read().splitlines() if line]
    rows = [dict(zip(lines[0], line)) for line in lines[1:]]
    return next(int(row["qcur"]) for row in rows if (row["# pxname"], row["svname"]) == ("b", "BACKEND"))


def until(holds):
    for _ in range(100):
        with contextlib.suppress(OSError):
            if holds():
                return True
        time.sleep(0.05)
    return False


def ask(text):
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(text)
    return client


print(subprocess.run([haproxy, "-v"], capture_output=True, text=True).stdout.splitlines()[0])
program = subprocess.Popen([haproxy, "-q", "-f", home / "haproxy.cfg"], stderr=subprocess.DEVNULL)
try:
    assert until(lambda: queued() == 0)
    busy = ask(b"GET /busy HTTP/1.1\r\nHost: a\r\n\r\n")
    assert until(lambda: seen == ["/busy"])
    part = ask(b"POST /part HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab")
    assert until(lambda: queued() == 1)
    part.close()
    left_part = until(lambda: queued() == 0)
    whole = ask(b"GET /whole HTTP/1.1\r\nHost: a\r\n\r\n")
    assert until(lambda: queued() == 1)
    whole.close()
    left_whole = until(lambda: queued() == 0)
    answers.set()
    until(lambda: "/whole" in seen)
finally:
    program.kill()
print("closed within the request: left the queue:", left_part)
print("closed behind the request: left the queue:", left_whole)
print("what the server was asked:", seen)
assert left_part and not left_whole and seen == ["/busy", "/whole"], "it behaves otherwise now"
print("as described: a whole request of a client that is gone is queued, and carried out")
PY
python3 "$dir/probe.py" "$dir"
