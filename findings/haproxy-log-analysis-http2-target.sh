#!/bin/sh
# Guess: haproxy_log_analysis reads the log lines of HTTP/2 requests as those of HTTP/1: method, path and version.
# Seen: HAProxy logs the whole target of such a request (`GET https://host/path HTTP/2.0`), which the library
# cannot divide: the line counts as valid, and method, path and protocol are the word `invalid`. All of a site's
# HTTP/2 traffic is then one path.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install --disable-pip-version-check haproxy_log_analysis==6.0.0
cat >"$dir/probe.py" <<'PY'
from importlib.metadata import version
from haproxy.line import Line

HEAD = ('Dec  9 13:01:26 lb haproxy[28029]: 192.0.2.7:39759 [09/Dec/2025:12:59:46.633] www~ app/s1 '
        '0/0/1/48/49 200 832 - - ---- 1/1/0/0/0 0/0 ')
print("haproxy_log_analysis", version("haproxy_log_analysis"))
seen = []
for request in ("GET /cart HTTP/1.1", "GET https://shop.example/cart HTTP/2.0"):
    line = Line(HEAD + f'"{request}"')
    seen.append((line.is_valid, line.http_request_method, line.http_request_path, line.http_request_protocol))
    print(request, "->", *seen[-1])
assert seen == [(True, "GET", "/cart", "HTTP/1.1"), (True, "invalid", "invalid", "invalid")], "it behaves otherwise now"
print("as described: the line of the HTTP/2 request has lost its method, its path and its version")
PY
"$dir/v/bin/python" "$dir/probe.py"
