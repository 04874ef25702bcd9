#!/bin/sh
# Guess: the flag `Q` of HAProxy's formats ("quote a string") puts quotes around whatever it stands at, in every format:
# `http-request set-header x-path %{+Q}[path]` sends `"/a"`, as `log-format %{+Q}[path]` logs it.
# Seen: in the fields of rules it quotes aliases only (`%{+Q}HM`). Around a sample there are none, and a sample that is
# missing is an empty value, not `""`; the same format in a log line has both. (3.2 does the same.)
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


def listen(answer):
    """A server that gives this answer to each request; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def received_by(client):
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(65536):
                yield piece

    def serve(client):
        received = b""
        for piece in received_by(client):
            received += piece
            while b"\r\n\r\n" in received:
                head, received = received.split(b"\r\n\r\n", 1)
                requests.append(head)
                client.sendall(answer)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def run(lines):
    (home / "haproxy.cfg").write_text(lines)
    return subprocess.Popen([haproxy, "-q", "-f", home / "haproxy.cfg"], stderr=subprocess.DEVNULL)


print(subprocess.run([haproxy, "-v"], capture_output=True, text=True).stdout.splitlines()[0])

log = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
log.bind(("127.0.0.1", 0))
log.settimeout(10)
requests = []
port = listen(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
with socket.create_server(("127.0.0.1", 0)) as free:
    bind = free.getsockname()[1]
program = run(f"""
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
listen l
  bind 127.0.0.1:{bind}
  log 127.0.0.1:{log.getsockname()[1]} local0
  log-format "sample %{{+Q}}[var(txn.path)] missing %{{+Q}}[var(txn.none)] alias %{{+Q}}HM"
  http-request set-var(txn.path) path
  http-request set-header x-sample %{{+Q}}[var(txn.path)]
  http-request set-header x-missing %{{+Q}}[var(txn.none)]
  http-request set-header x-alias %{{+Q}}HM
  server s 127.0.0.1:{port}
""")
try:
    for _ in range(100):
        time.sleep(0.1)
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", bind)) as client:
            client.sendall(b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            client.recv(65536)
            break
    line = log.recv(65536).decode().split(": ", 1)[1].strip()
finally:
    program.kill()
fields = {
    name: value.strip()
    for name, _, value in (field.partition(":") for field in requests[0].decode().split("\r\n"))
    if name.startswith("x-")
}
print("log line:", line)
print("fields that the server got:", fields)
assert line == 'sample "/a" missing "" alias "GET"', "it behaves otherwise now"
assert fields == {"x-sample": "/a", "x-missing": "", "x-alias": '"GET"'}, "it behaves otherwise now"
print("as described: quotes in the log line; in fields around the alias only")
PY
python3 "$dir/probe.py" "$dir"
