#!/bin/sh
# Guess: a blank behind a comma separates nothing: `{ path, lower -m str /abc }` applies `lower` to the path, as
# `http-request set-var(txn.p) path, lower` does, and as `{ path,lower -m str /abc }` without the blank.
# Seen: in a condition the expression is its first word alone. `lower`, `-m` and `str` are taken for patterns beside
# `/abc`, so the path is compared as it is, and `haproxy -c` finds nothing to say. (3.2 does the same.)
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
ROWS = {
    "blank": "path, lower -m str /abc",
    "tight": "path,lower -m str /abc",
}
(home / "haproxy.cfg").write_text(f"""
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend f
  bind 127.0.0.1:{port}
  http-request set-var(txn.p) path, lower
  http-request return status 200 hdr x-rule "%[var(txn.p)]" hdr x-condition "applied" if {{ {{ROWS}} }}
  http-request return status 200 hdr x-rule "%[var(txn.p)]" hdr x-condition "not applied"
""")
template = (home / "haproxy.cfg").read_text()


def seen(row):
    """What the rule and the condition made of /ABC, and whether the check had something to say."""
    (home / "haproxy.cfg").write_text(template.replace("{ROWS}", row))
    checked = subprocess.run([haproxy, "-c", "-q", "-f", home / "haproxy.cfg"], capture_output=True, text=True)
    program = subprocess.Popen([haproxy, "-db", "-q", "-f", home / "haproxy.cfg"], stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ABC") as answer:
            return answer.headers["x-rule"], answer.headers["x-condition"], checked.returncode, checked.stderr
    finally:
        program.kill()
        program.wait()


found = {name: seen(row) for name, row in ROWS.items()}
for name, row in ROWS.items():
    print(f"/ABC under {{ {row} }}: the variable is {found[name][0]}, the condition is {found[name][1]}, -c says {found[name][2:]}")
assert found["tight"][:2] == ("/abc", "applied"), "it behaves otherwise now"
assert found["blank"] == ("/abc", "not applied", 0, ""), "it behaves otherwise now"
print("as described: behind a blank a converter is a pattern")
PY
python3 "$dir/probe.py" "$dir"
