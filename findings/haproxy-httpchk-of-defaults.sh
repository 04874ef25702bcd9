#!/bin/sh
# Guess: `option httpchk GET /health` in `defaults` holds for a backend that adds `http-check expect status 200`: the
# request of the one is judged by the rule of the other, as where both words stand in the backend.
# Seen: the backend's rule replaces the request too. The check connects, sends nothing and waits, so a good server is
# DOWN with "Layer7 timeout", and `haproxy -c` finds nothing to say. (3.2 does the same.)
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

def config(shared, own):
    return f"""
global
  stats socket {home}/sock
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
  timeout check 300ms
{shared}
backend b
{own}
  server s 127.0.0.1:{port} check inter 100ms fall 2
"""


def state():
    """The state of the server and the status of its check."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(str(home / "sock"))
        asked.sendall(b"show stat\n")
        lines = [line.split(",") for line in asked.makefile().read().splitlines() if line]
    rows = [dict(zip(lines[0], line)) for line in lines[1:]]
    return next((row["status"], row["check_status"]) for row in rows if row["svname"] == "s")


def judged(lines):
    """The verdict once the server is down or a check has passed, and how many requests came."""
    requests.clear()
    program = run(lines)
    checked = subprocess.run([haproxy, "-c", "-q", "-f", home / "haproxy.cfg"], capture_output=True, text=True)
    assert checked.returncode == 0 and "check" not in checked.stderr, checked.stderr
    try:
        seen = ("", "")
        for _ in range(100):
            time.sleep(0.1)
            seen = state() if (home / "sock").exists() else seen
            if seen[0] == "DOWN" or seen[1] == "L7OK":
                break
    finally:
        program.kill()
        program.wait()
        (home / "sock").unlink(missing_ok=True)
    return seen, len(requests) > 0


requests = []
port = listen(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
OPTION, RULE = "  option httpchk GET /health", "  http-check expect status 200"
together = judged(config("", OPTION + "\n" + RULE))
apart = judged(config(OPTION, RULE))
print("option and rule in the backend: state, check, was asked:", *together)
print("option in defaults, rule in the backend:", *apart)
assert together == (("UP", "L7OK"), True), "it behaves otherwise now"
assert apart[0][0] == "DOWN" and apart[0][1].endswith("L7TOUT") and not apart[1], "it behaves otherwise now"
print("as described: no request is sent, and the server goes down")
PY
python3 "$dir/probe.py" "$dir"
