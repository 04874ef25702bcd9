#!/bin/sh
# Guess: `balance url_param NAME` of HAProxy looks for the parameter in the query, and in the body of a POST only with
# `check_post`, as the manual says of that word.
# Seen: the body of each POST decides, with the word or without it. So a POST whose body has `user=` goes to the server
# of that user under a plain `balance url_param user`, and its server is not asked before the body has come. (3.2, too.)
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

def page(name):
    return f"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{name}".encode()


with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
servers = "".join(f"  server {name} 127.0.0.1:{listen(page(name))}\n" for name in "abcd")
program = run(f"""
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
listen l
  bind 127.0.0.1:{port}
  balance url_param user
{servers}""")


def chosen(target, body):
    """The server that a POST is sent to."""
    for _ in range(100):
        try:
            client = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    with client:
        head = f"POST {target} HTTP/1.1\r\nHost: a.example\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)
        client.shutdown(socket.SHUT_WR)
        return client.makefile("rb").read()[-1:].decode()


try:
    with_body = {user: {chosen("/", f"user={user}".encode()) for _ in range(4)} for user in ("alpha", "beta", "gamma")}
    with_query = {user: {chosen(f"/?user={user}", b"x=1") for _ in range(4)} for user in with_body}
    without = [chosen("/", b"x=1") for _ in range(4)]
finally:
    program.kill()
print("servers of four POSTs each, by the user in the body:", with_body)
print("by the user in the query:", with_query)
print("without one:", without)
assert all(len(servers) == 1 for servers in with_body.values()), "it behaves otherwise now"
assert with_body == with_query and len(set(without)) == 4, "it behaves otherwise now"
print("as described: the body is read without check_post")
PY
python3 "$dir/probe.py" "$dir"
