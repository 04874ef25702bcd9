#!/bin/sh
# Guess: a file that pyhaproxy reads and writes without a change says the same as before.
# Seen: it takes every address for host and port and joins them with a colon. A bind on a UNIX socket
# (`unix@/run/x.sock`) becomes two words, and a server without a port, which uses the port of the client's
# connection, gets an empty one.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install --disable-pip-version-check pyhaproxy==0.3.7
cat >"$dir/probe.py" <<'PY'
import sys
from importlib.metadata import version
from pyhaproxy.parse import Parser
from pyhaproxy.render import Render

path = sys.argv[1] + "/haproxy.cfg"
with open(path, "w") as file:
    file.write("global\n    daemon\n\ndefaults\n    mode tcp\n\nfrontend www\n    bind unix@/run/www.sock mode 600\n"
               "    default_backend app\n\nbackend app\n    server s1 192.0.2.1 check\n")
text = Render(Parser(path).build_configuration()).render_configuration()
seen = [" ".join(line.split()) for line in text.splitlines() if "bind" in line or "server" in line]
print("pyhaproxy", version("pyhaproxy"))
print("written:", *seen, sep="\n  ")
assert seen == ["bind unix: @/run/www.sock mode 600", "server s1 192.0.2.1: check"], "it behaves otherwise now"
print("as described: addresses without a port are changed")
PY
"$dir/v/bin/python" "$dir/probe.py" "$dir"
