#!/bin/sh
# Guess: haproxy-stats, which reads the CSV of HAProxy's statistics page, knows quotes, as the manual of that CSV
# says that values with a comma are quoted.
# Seen: it splits at every comma. A server line with `cookie a,b` gives the column "a,b", and from there on each
# value stands under the name of the column before: the mode is `b"`, and the algorithm is `http`.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install --disable-pip-version-check haproxy-stats==1.5 requests==2.32.5
cat >"$dir/probe.py" <<'PY'
import http.server
import threading
from importlib.metadata import version
from haproxystats import HAProxyServer

# The columns that matter here, in HAProxy 3.2's order.
CSV = ('# pxname,svname,status,iid,sid,addr,cookie,mode,algo,\n'
       'app,s1,UP,3,1,192.0.2.1:80,"a,b",http,,\n'
       'app,BACKEND,UP,3,0,,S,http,roundrobin,\n')


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(CSV)))
        self.end_headers()
        self.wfile.write(CSV.encode())

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("haproxy-stats", version("haproxy-stats"))
found = HAProxyServer(f"127.0.0.1:{server.server_port}")
s1 = found.listeners[0]
seen = (s1.cookie, s1.mode, s1.algo)
print("cookie, mode, algo of the server:", seen)
print("mode of its backend, which has no comma:", found.backends[0].mode)
assert seen == ('"a', 'b"', "http") and found.backends[0].mode == "http", "it behaves otherwise now"
print("as described: columns behind a quoted comma are shifted by one")
PY
"$dir/v/bin/python" "$dir/probe.py"
