#!/bin/sh
# Guess: HAProxy's `option httpchk` reads over an interim response, such as 103 Early Hints, as every client of HTTP/1.1
# has to, and judges the response behind it.
# Seen: the interim response is the answer of the check. A server that sends 103 and then 200 is DOWN, "Layer7 wrong
# status, code: 103", while its users get their 200. (3.2 does the same.)
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
                client.sendall(answer)
                if b"POST" in head:
                    received = b""

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def run(lines):
    (home / "haproxy.cfg").write_text(lines)
    return subprocess.Popen([haproxy, "-q", "-f", home / "haproxy.cfg"], stderr=subprocess.DEVNULL)


print(subprocess.run([haproxy, "-v"], capture_output=True, text=True).stdout.splitlines()[0])

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
program = run(f"""
global
  stats socket {home}/sock
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
backend b
  option httpchk
  server plain 127.0.0.1:{listen(OK)} check inter 100ms
  server hints 127.0.0.1:{listen(HINTS + OK)} check inter 100ms
""")


def checks():
    """The state of each server, the status of its check and the code that it saw."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(str(home / "sock"))
        asked.sendall(b"show stat\n")
        lines = [line.split(",") for line in asked.makefile().read().splitlines() if line]
    names = lines[0]
    rows = [dict(zip(names, line)) for line in lines[1:]]
    return {row["svname"]: (row["status"], row["check_status"], row["check_code"]) for row in rows}


try:
    for _ in range(100):
        time.sleep(0.1)
        seen = checks() if (home / "sock").exists() else {}
        if seen.get("hints", ("UP",))[0] == "DOWN" and seen["plain"][1] == "L7OK":
            break
finally:
    program.kill()
for server in ("plain", "hints"):
    print(f"{server}: status, check, code:", seen[server])
assert seen["plain"] == ("UP", "L7OK", "200"), "it behaves otherwise now"
assert seen["hints"] == ("DOWN", "L7STS", "103"), "it behaves otherwise now"
print("as described: a 103 before the 200 takes the server down")
PY
python3 "$dir/probe.py" "$dir"
