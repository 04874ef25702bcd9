#!/bin/sh
# Guess: `show ssl crt-list` prints the lines of a list as text, so that a script may read them line by line and write them
# to a file again.
# Seen: a line that sets `alpn` has a byte of value zero behind the protocols (in 3.2 too). grep takes such an answer for a
# binary file and shows nothing of it, a shell's variable drops the byte with a warning, and in a file it ends the line.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# On Debian 12 or what is built on it.
cd "$dir"
apt-get -q -o APT::Sandbox::User=root download haproxy=2.6.12-1+deb12u3 liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 libpcre2-8-0 >/dev/null
for package in *.deb; do dpkg -x "$package" root; done
LD_LIBRARY_PATH=$(find "$dir/root" -type d -name '*-linux-gnu' | tr '\n' ':')
export LD_LIBRARY_PATH
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=site.example -days 30 \
    -keyout site.key -out site.crt 2>/dev/null
cat site.crt site.key >site.pem
echo "$dir/site.pem [alpn h2,http/1.1] site.example" >list
cat >haproxy.cfg <<END
global
  stats socket $dir/sock level admin
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend f
  bind unix@$dir/web ssl crt-list $dir/list
END
cat >probe.py <<'PY'
import pathlib
import socket
import subprocess
import sys
import time

home = pathlib.Path(sys.argv[1])
haproxy = home / "root/usr/sbin/haproxy"
print(subprocess.run([haproxy, "-v"], stdout=subprocess.PIPE, text=True).stdout.splitlines()[0])
process = subprocess.Popen([haproxy, "-db", "-f", home / "haproxy.cfg"], stderr=subprocess.DEVNULL)


def ask(command):
    deadline = time.monotonic() + 10
    with socket.socket(socket.AF_UNIX) as desk:
        while desk.connect_ex(str(home / "sock")):
            if time.monotonic() > deadline:
                sys.exit("it does not answer")
            time.sleep(0.01)
        desk.sendall(command.encode() + b"\n")
        return b"".join(iter(lambda: desk.recv(65536), b""))


try:
    answer = ask(f"show ssl crt-list {home}/list").replace(str(home).encode(), b"DIR")
finally:
    process.kill()
print("the answer:", answer)
if answer != b"# DIR/list\nDIR/site.pem [alpn h2,http/1.1\0] site.example\n\n":
    sys.exit("changed: it is another now")
print("a zero byte behind the protocols of alpn")
PY
python3 -B probe.py "$dir"
