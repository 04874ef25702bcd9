#!/bin/sh
# Guess: pyhaproxy keeps a `#` that stands in quotes: HAProxy reads it as a character of the value.
# Seen: it begins a comment there. Written out again the rule has lost the rest of its value, the closing quote and
# its condition, and HAProxy refuses the file.
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

RULE = 'http-request set-header X-Room "floor 2 # 14" if is_api'
path = sys.argv[1] + "/haproxy.cfg"
with open(path, "w") as file:
    file.write(f"global\n    daemon\n\ndefaults\n    mode http\n\nfrontend www\n    bind 127.0.0.1:80\n"
               f"    acl is_api path_beg /api\n    {RULE}\n    default_backend app\n\n"
               "backend app\n    server s1 192.0.2.1:80 check\n")
text = Render(Parser(path).build_configuration()).render_configuration()
seen = next(line.strip() for line in text.splitlines() if "X-Room" in line)
print("pyhaproxy", version("pyhaproxy"))
print("read:   ", RULE)
print("written:", seen)
assert seen == 'http-request set-header X-Room "floor 2', "it behaves otherwise now"
print("as described: the rule ends at the # in its quotes")
PY
"$dir/v/bin/python" "$dir/probe.py" "$dir"
