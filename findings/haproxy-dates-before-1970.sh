#!/bin/sh
# Guess: `%[int(-1),utime(%Y)]` is the second before 1970 and writes 1969, as `date -u -d @-1 +%Y` does.
# Seen: of the number of seconds the lower 55 bits count, so it is a second of the year 1141709097. `http_date` does the
# same, and with milliseconds it writes the fraction with its sign: `00:00:00.-1 GMT`. (So does 3.2.)
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
import urllib.request

home = pathlib.Path(sys.argv[1])
haproxy = home / "root/usr/sbin/haproxy"
print(subprocess.run([haproxy, "-v"], capture_output=True, text=True).stdout.splitlines()[0])
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
SAMPLES = {
    "x-year": "int(-1),utime(%Y)",
    "x-after": "int(1),utime(%Y)",
    "x-http": "int(-1),http_date",
    "x-milliseconds": "int(-1),http_date(0,ms)",
}
fields = " ".join(f'hdr {name} "%[{sample}]"' for name, sample in SAMPLES.items())
(home / "haproxy.cfg").write_text(f"""
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend f
  bind 127.0.0.1:{port}
  http-request return status 200 {fields}
""")
program = subprocess.Popen([haproxy, "-db", "-q", "-f", home / "haproxy.cfg"], stderr=subprocess.DEVNULL)
try:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.05)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
        seen = {name: answer.headers[name] for name in SAMPLES}
finally:
    program.kill()
    program.wait()
for name, sample in SAMPLES.items():
    print(f"%[{sample}] -> {seen[name]}")
assert seen["x-year"] == "1141709097" and seen["x-after"] == "1970", "it behaves otherwise now"
assert seen["x-http"].split()[3] == "1141709097", "it behaves otherwise now"
assert seen["x-milliseconds"].endswith("00:00:00.-1 GMT"), "it behaves otherwise now"
print("as described: a date before 1970 is of the year 1141709097")
PY
python3 "$dir/probe.py" "$dir"
