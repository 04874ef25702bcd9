#!/bin/sh
# Guess: in the arguments of HAProxy's samples a backslash makes the character behind it an ordinary one, a comma too, as it
# does a blank or a quote: `field(2,\,)` is the second part between commas, and `str(a\,b)` is the text `a,b`.
# Seen: a comma ends its argument whatever stands before it, and the backslash is a character of the argument. `field(2,\,)`
# is the second part between backslashes, with an empty third argument (which stands for all parts that follow); `str(a\,b)`
# is refused, for it has an argument too many. In quotes a comma is a character. (3.2 does the same.)
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
import pathlib
import socket
import subprocess
import sys
import time

home = pathlib.Path(sys.argv[1])
haproxy = home / "root/usr/sbin/haproxy"
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]


def configure(sample):
    (home / "haproxy.cfg").write_text(f"""
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend f
  bind 127.0.0.1:{port}
  http-request return status 200 content-type text/plain lf-string '%[{sample}]'
""")


def said(sample):
    """What a configuration with this sample is refused for, or what the sample gives."""
    configure(sample)
    checked = subprocess.run([haproxy, "-c", "-f", home / "haproxy.cfg"], capture_output=True, text=True)
    if checked.returncode:
        return "refused"
    running = subprocess.Popen([haproxy, "-q", "-f", home / "haproxy.cfg"], stderr=subprocess.DEVNULL)
    try:
        for _ in range(500):
            try:
                client = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-List: one,two\\three\r\nConnection: close\r\n\r\n")
        answer = b""
        while piece := client.recv(4096):
            answer += piece
        return answer.split(b"\r\n\r\n", 1)[1].decode()
    finally:
        running.terminate()
        running.wait()


print(subprocess.run([haproxy, "-v"], capture_output=True, text=True).stdout.splitlines()[0])
seen = {sample: said(sample) for sample in (
    r"req.fhdr(x-list),field(2,\,)",
    r'req.fhdr(x-list),field(2,",")',
    r"str(a\,b)",
    r'str("a,b")',
    r"str(a\ b)",
)}
for sample, outcome in seen.items():
    print(f"{sample:32} {outcome}")
if seen != {
    r"req.fhdr(x-list),field(2,\,)": "three",
    r'req.fhdr(x-list),field(2,",")': "two\\three",
    r"str(a\,b)": "refused",
    r'str("a,b")': "a,b",
    r"str(a\ b)": "a b",
}:
    raise SystemExit("this is not what was seen before")
PY
python3 "$dir/probe.py" "$dir"
