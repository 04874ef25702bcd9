"""What each row of `known.toml` explains, and what it must not: a table for `test_beside.py`."""

from grammars.common import asks, client, ok, request, server, site

# What a row of `known.toml` may have.
KEYS = set("place haproxy ballast both only more same_words scenario client also reason script".split())
# Faults that nobody means.
SAID = '["HTTP/1.1 200 Said", "content-length: 6", "body whole: abcdef"]'
PAGE = '["HTTP/1.1 503 Service Unavailable", "content-length: 0", "body whole: "]'
ONE = '["GET / HTTP/1.1", "host: a", "body whole: "]'
CARRIED = '{"requests": [%s], "end": "open"}'
CONNECTION = CARRIED % ONE
# Connections of HTTP/2 with one stream of a request, and with a second one of it.
H2_ONE = '{"streams": [{"heads": [[":method GET"]], "body": "", "end": "ended"}], "end": "open"}'
H2_TWICE = '{"streams": [{"heads": [[":method GET"]], "body": "", "end": "ended"}, {"heads": [[":method GET"]], "body": "", "end": "x"}]}'
LINE = '"GET /a HTTP/1.1 %s b=app s=s1 rc=0 hr= hs="'
ABSURD = (
    *(("clients.0.responses.0.0", '"HTTP/1.1 200 Said"', f'"HTTP/1.1 {now}"') for now in ("503 x", "500 x", "400 Bad request")),
    ("clients.0.responses.0.0", '"HTTP/1.1 503 Service Unavailable"', '"HTTP/1.1 200 Said"'),
    ("clients.0.responses.0", SAID, PAGE),
    ("clients.0.responses", f"[{SAID}]", "nothing"),
    ("clients.0.responses", "nothing", f"[{SAID}]"),
    ("clients.0.responses", f"[{SAID}]", f"[{SAID}, {SAID}]"),
    ("clients.0.responses.0", '["x-a: 1"]', "nothing"),
    ("clients.0.responses.0", "nothing", '["x-a: 1"]'),
    ("clients.0.responses.0.3", '"body whole: abcdef"', '"body whole: abcxxx"'),
    ("clients.0.responses.0.3", '"body whole: abcdef"', '"body cut: abc"'),
    *(("clients.0.stream 1.heads.0.0", '":status 200"', f'":status {status}"') for status in (500, 502, 503)),
    ("clients.0.stream 1.heads.0", '["x-a: 1"]', "nothing"),
    ("clients.0.stream 1.heads", '[[":status 200"]]', "nothing"),
    ("clients.0.stream 1.body", '"abcdef"', '"abcxxx"'),
    ("clients.0.stream 1.end", '"ended"', '"reset INTERNAL_ERROR"'),
    ("clients.0.end", '"open"', '"reset"'),
    ("clients.0.received", '"abcdef"', '"abcxxx"'),
    ("servers.s1.0.requests", f"[{ONE}]", f'[{ONE}, {ONE.replace("/ ", "/smuggled ")}]'),
    ("servers.s1", f"[{CONNECTION}]", f"[{CONNECTION}, {CONNECTION}]"),
    ("servers.s1", f"[{CONNECTION}]", "nothing"),
    ("servers.s1.0.requests.0", '["authorization: x"]', "nothing"),
    ("servers.s1.0.requests.0", "nothing", '["x-smuggled: 1"]'),
    ("servers.s1.0.requests.0.2", '"body whole: abcdef"', '"body whole: abcxxx"'),
    ("servers.s1.0.requests.0.2", '"body whole: abcdef"', '"body cut: abc"'),
    ("servers.s1.0.streams.0.heads.0", '["authorization: x"]', "nothing"),
    ("servers.s1.0.streams.0.body", '"abcdef"', '"abcxxx"'),
    ("servers.s1.0.after them", "nothing", '"GET /"'),
    *(("log.0", LINE % "200 ----", LINE % now) for now in ("503 SC--", "400 CR--", "200 SD--", "-1 CC--")),
    ("log.0", LINE % "200 SD--", LINE % "200 ----"),
    ("log", "nothing", f"[{LINE % '200 ----'}]"),
    ("stat.app s1.srv_abrt", "nothing", '"99"'),
    *((f"stat.app s1.{column}", '"1"', "nothing") for column in ("cli_abrt", "srv_abrt", "eresp")),
    *((f"stat.app s1.{column}", '"2"', '"3"') for column in ("stot", "connect", "reuse", "req_tot", "hrsp_5xx")),
    ("stat.web FRONTEND.hrsp_2xx", '"2"', '"1"'),
    *((f"stat.web FRONTEND.{column}", '"500"', '"90000000"') for column in ("bin", "bout")),
    ("ask.0.1", '"use=0 gpc0=1"', '"use=0 gpc0=2"'),
    ("ask.1.1", '"0xN /a one"', '"0xN /a two"'),
    ("ask.2.1", '"0xN /a"', '""'),
    ("counted.answer HTTP/1.1 200 Said", "100", "300"),
)
UP = ["head", request("POST", "/up", ["Content-Length", "10"])]
UPGRADE = ["head", request("GET", "/ws", ["Connection", "Upgrade"], ["Upgrade", "myproto"])]
TWICE = asks(request(), request())


def scene(*steps, answer=ok(), to_h2=False, speaks="h1", refuses=False, **more):
    """A scenario of one client and one server."""
    plan = server(answer, speaks="h2" if to_h2 else "h1", **({"refuses": True} if refuses else {}))
    words = " proto h2" if to_h2 else ""
    return site(clients=[client(list(steps), speaks)], servers={"s1": plan}, speaks=speaks, server_words=words, **more)


def over_tls(scenario):
    """The same, with a server that TLS tells of HTTP/2."""
    scenario["sections"][1]["lines"] = ["server s1 @server:s1@ ssl verify required ca-file @cert:ca.pem@ alpn h2"]
    return scenario


def sealed(mode, words):
    """Two clients over TLS, in front of a server over TLS."""
    made = site(clients=[client([], "tcp"), client([], "tcp")], server_words=f" {words}")
    made["defaults"] = [mode]
    made["sections"][0]["lines"][0] += " ssl crt @cert:a.pem@"
    return made


def beside_one_that_takes_them(scenario):
    """The same, with a server more that takes upgrades."""
    scenario["servers"]["s2"] = server(speaks="h2", connect_protocol=True)
    return scenario


# A row, a scenario that has what it names, what it explains there, and what it does not.
ROWS = (
    (
        "streams of a response that is cut",
        scene(*TWICE, answer=[["body"], ["head", 200, [], "chunked"], ["pause"], ["stall"]], base=["log-format %[fc_nb_streams]-%ST"]),
        ("log.0", '"GET 0 200"', '"GET 1 200"'),
        ("log.0", '"GET 1 200"', '"GET 0 200"'),
        ("log.0", '"GET 0 200"', '"GET 1 503"'),
    ),
    (
        "clients of HTTP/2 that end their side within a response without an end",
        scene(*TWICE, ["half"], answer=[["body"], ["head", 200, [], "close"], ["stall"]], speaks="h2"),
        ("log.0", LINE % "200 ----", LINE % "200 sD--"),
        ("log.0", LINE % "200 ----", LINE % "502 sD--"),
        ("log.0", LINE % "200 ----", LINE % "200 SD--"),
    ),
    (
        "connections of tries under http-reuse never",
        scene(*TWICE, base=["http-reuse never"], back=["retry-on 503"]),
        ("servers.s1", f"[{(CARRIED % (ONE + ', ' + ONE))}]", f"[{CONNECTION}, {CONNECTION}]"),
        ("servers.s1", f"[{(CARRIED % (ONE + ', ' + ONE))}]", f"[{CONNECTION}, {CONNECTION.replace('/ ', '/smuggled ')}]"),
    ),
    (
        "streams that are asked at once",
        scene(TWICE[0], TWICE[0], answer=[["close"]], to_h2=True, speaks="h2"),
        ("clients.0.stream 3.heads.0", '[":status 502", "a: b"]', '[":status 200"]'),
        ("clients.0.stream 3.heads.0", '[":status 502", "a: b"]', '[":status 403"]'),
    ),
    (
        "lengths that rules write",
        scene(*TWICE, front=["http-response del-header Content-Length"]),
        (
            "clients.0.responses",
            '[["HTTP/1.1 403 x"], ["HTTP/1.1 200 x", "connection: close", "x-b: [b]"]]',
            '[["HTTP/1.1 403 x"], ["HTTP/1.1 200 x", "transfer-encoding: chunked", "x-b: [b]"], ["HTTP/1.1 200 x"]]',
        ),
        (
            "clients.0.responses",
            '[["HTTP/1.1 403 x"], ["HTTP/1.1 200 x", "connection: close", "x-b: [b]"]]',
            '[["HTTP/1.1 403 x"], ["HTTP/1.1 503 x", "transfer-encoding: chunked", "x-b: [b]"], ["HTTP/1.1 200 x"]]',
        ),
    ),
    (
        "lines under logasap that are written twice",
        scene(*TWICE, base=["option logasap"]),
        ("log.0", '"web /a ---- +0"', '"web /a SC-- +217"'),
        ("log.0", '"web /a SC-- +0"', '"web /a PR-- +217"'),
    ),
    (
        "upgrades that a kept connection lost",
        scene(*TWICE, UPGRADE, answer=[*ok(), ["reset"]]),
        (
            "servers.s1",
            '[{"requests": ["GET /"], "end": "by the server", "after them": "GET /ws"}]',
            '[{"requests": ["GET /"], "end": "by the server", "after them": "GET /ws"}, {"requests": [], "after them": "GET /ws"}]',
        ),
        (
            "servers.s1",
            '[{"requests": ["GET /"], "end": "by the server", "after them": "GET /ws"}]',
            '[{"requests": ["GET /smuggled"], "end": "by the server", "after them": "GET /ws"}, {"requests": []}]',
        ),
    ),
    (
        "bodies that their client cuts, or whose server does not wait for them",
        scene(UP, ["body", "01234"], ["pause"], ["close"]),
        ("servers.s1.0.requests.0.3", '"body whole: abcdef"', '"body cut: abc"'),
        ("servers.s1.0.requests.0.3", '"body cut: abc"', '"body whole: abcdef"'),
        ("servers.s1.0.requests.0.3", '"body cut: abc"', '"body cut: xyz"'),
    ),
    (
        "order of the fields of an upgrade",
        scene(UPGRADE),
        ("servers.s1.0.after them", '"GET /\\r\\nupgrade: a\\r\\nhost: b"', '"GET /\\r\\nhost: b\\r\\nupgrade: a"'),
        ("servers.s1.0.after them", '"GET /\\r\\nupgrade: a\\r\\nauthorization: b"', '"GET /\\r\\nhost: b\\r\\nupgrade: a"'),
    ),
    (
        "servers that end with their response, within an upload",
        scene(UP, ["read"], answer=[["some", 1], ["answer", 200, [], ""], ["close"]]),
        ("log.0", '"POST /up 200 SD-- b=5"', '"POST /up 200 ---- b=5"'),
        ("log.0", '"POST /up 200 SD-- b=5"', '"POST /up 502 SD-- b=7"'),
        ("log.0", '"GET /x 200 SD-- b=5"', '"GET /x 200 ---- b=5"'),
        ("stat.app s1.srv_abrt", "nothing", '"99"'),
    ),
    (
        "clients that reset before they are answered",
        scene(["ask", request()], ["pause"], ["reset"]),
        ("log.0", LINE % "504 sH--", LINE % "400 CD--"),
        ("log.0", LINE % "200 ----", LINE % "400 CR--"),
        ("log.0", LINE % "200 ----", LINE % "503 SC--"),
    ),
    (
        "lengths that rules write",
        scene(*TWICE, front=["http-response set-header Content-Length 3"]),
        ("clients.0.responses.0", '["content-length: 3"]', "nothing"),
        ("clients.0.responses", f"[{SAID}]", "nothing"),
        ("clients.0.responses.0.0", '"HTTP/1.1 200 Said"', '"HTTP/1.1 503 x"'),
        ("clients.0.responses.0", '["x-a: 1"]', "nothing"),
    ),
    (
        "lengths that rules write into requests",
        scene(*TWICE, front=["http-request add-header Content-Length 3"]),
        ("servers.s1.0.requests.0", '["content-length: 3"]', "nothing"),
        ("servers.s1.0.requests", f"[{ONE}]", f"[{ONE}, {ONE}]"),
        ("servers.s1.0.requests.0", '["authorization: x"]', "nothing"),
    ),
    (
        "payload with a key alone",
        {"clients": [client([["send", "add map @file:m.map@ <<\nk\n\n"]], "prompt", "admin")]},
        ("ask.1.1", '"0xN /a one\\n0xN k /p"', '"0xN /a one"'),
        ("ask.1.1", '"0xN /a one"', '"0xN /a two"'),
        ("clients.0.responses.0.0", '"HTTP/1.1 200 OK"', '"HTTP/1.1 503 x"'),
    ),
    (
        "heads of the statistics page",
        scene(*TWICE, front=["stats uri /a"]),
        ("clients.0.responses.0", '["connection: close"]', "nothing"),
        ("clients.0.responses", f"[{SAID}]", "nothing"),
        ("clients.0.responses", '[["HTTP/1.1 200 OK", "connection: close"]]', "nothing"),
    ),
    (
        "streams above the last one of a GOAWAY",
        scene(*TWICE, answer=[["goaway", 0, 0]], to_h2=True, speaks="h2"),
        ("clients.0.stream 1.heads.0.0", '":status 504"', '":status 200"'),
        ("clients.0.stream 1.heads.0.0", '":status 200"', '":status 500"'),
        ("clients.0.stream 1.body", '"abc"', '"abd"'),
    ),
    (
        "streams of a connection that a rule closed",
        scene(*TWICE, base=["log-format %[fc_nb_streams]-%ST"], front=["http-request reject"]),
        ("log.0", '"GET 0 200"', '"GET 1 200"'),
        ("log.0", '"GET 0 200"', '"GET 0 503"'),
        ("log.0", '"GET 0 200"', '"PUT 1 200"'),
    ),
    (
        "bodies behind a response that has none",
        scene(*asks(request("HEAD"))),
        ("stat.web FRONTEND.bout", '"5000"', '"500"'),
        ("stat.web FRONTEND.bout", '"500"', '"90000000"'),
    ),
    (
        "clients of TCP that close at once",
        site(base=["mode tcp"], clients=[client([["send", "hi"], ["close"]], "tcp")]),
        ("log.0", '"CD b=app s=s1 U=5"', '"-- b=app s=s1 U=5"'),
        ("log.0", '"CD b=app s=s1 U=5"', '"-- b=web s=s1 U=5"'),
        ("log.0", '"CD b=app s=s1 U=5"', '"-- b=app s=s1 U=0"'),
        ("stat.app s1.cli_abrt", "nothing", '"7"'),
    ),
    (
        "lines of streams that went out again",
        scene(*TWICE, to_h2=True, speaks="h2", front=["option dontlog-normal"]),
        ("stat.app BACKEND.wretr", "nothing", '"1"'),
        ("log", "nothing", f"[{LINE % '200 ----'}]"),
    ),
    (
        "retries of streams that went out again",
        scene(*TWICE, to_h2=True, speaks="h2"),
        ("log.0", LINE % "200 ----", (LINE % "200 ----").replace("rc=0", "rc=1")),
        ("log.0", LINE % "200 ----", (LINE % "503 SC--").replace("rc=0", "rc=1")),
        ("log.0", (LINE % "200 ----").replace("rc=0", "rc=1"), LINE % "200 ----"),
    ),
    (
        "bytes for a server of an upgrade that closed",
        scene(UPGRADE, ["body", "hello"], answer=[["head", 101, [], "none"], ["half"]]),
        ("servers.s1.0.after them", "nothing", '"hello"'),
        ("servers.s1.0.after them", '"hello"', '"hellohello"'),
    ),
    (
        "resets behind the last bytes of a TCP server",
        site(
            base=["mode tcp"],
            clients=[client([["stall"]], "tcp")],
            servers={"s1": server([["send", "bye"], ["reset"]], speaks="tcp")},
        ),
        ("stat.app s1.eresp", "nothing", '"1"'),
        ("stat.app s1.eresp", '"1"', "nothing"),
        ("stat.app s1.cli_abrt", "nothing", '"1"'),
    ),
    (
        "resets between two timeouts of one length",
        site(
            base=["mode tcp", "timeout client 200ms", "timeout server 200ms"],
            clients=[client([["stall"]], "tcp")],
            servers={"s1": server([["reset"]], speaks="tcp")},
        ),
        ("stat.app s1.eresp", "nothing", '"1"'),
        ("stat.app s1.eresp", '"1"', "nothing"),
        ("stat.app s1.cli_abrt", "nothing", '"1"'),
    ),
    (
        "statuses out of range that a rule denies",
        scene(*asks(request()), front=["http-response deny"], answer=[["send", "HTTP/1.1 2 x\r\n\r\n"]]),
        ("servers.s1.0.end", '"open"', '"ended"'),
        ("servers.s1.0.end", '"ended"', '"open"'),
    ),
    (
        "interim responses to HTTP/1.0 before a 204",
        scene(["ask", request(version="1.0")], ["read"]),
        (
            "clients.0.responses",
            '[["HTTP/1.1 102 Processing", "body whole: "], ["HTTP/1.1 204 No Content", "content-length: 2", "body whole: "]]',
            '[["HTTP/1.1 204 No Content", "body whole: "]]',
        ),
        (
            "clients.0.responses",
            '[["HTTP/1.1 102 Processing", "body whole: "], ["HTTP/1.1 204 No Content", "content-length: 2", "body whole: "]]',
            '[["HTTP/1.1 502 Bad Gateway", "body whole: "]]',
        ),
    ),
    (
        "streams that go out again for a client of HTTP/1",
        scene(*TWICE, to_h2=True, answer=[["answer", 200, [], ""], ["reset"]]),
        ("servers.s1", f"[{H2_ONE}]", f"[{H2_ONE}, {H2_ONE}]"),
        ("servers.s1", f"[{H2_ONE}]", "nothing"),
    ),
    (
        "uploads to a server that goes away",
        scene(UP, ["stall"], to_h2=True, answer=[["goaway", 0, 0]]),
        ("clients.0.responses", "nothing", '[["HTTP/1.1 502 Bad Gateway"]]'),
        ("clients.0.responses", "nothing", '[["HTTP/1.1 200 OK"]]'),
        ("clients.0.responses.0", '["HTTP/1.1 200 OK"]', '["HTTP/1.1 502 Bad Gateway"]'),
    ),
    (
        "streams that a server would not process",
        scene(*TWICE, to_h2=True, answer=[["goaway", 1, 13]]),
        ("servers.s1.0.streams.1.end", '"ended, reset NO_ERROR"', '"ended"'),
        ("servers.s1.0.streams.1.end", '"ended"', '"ended, reset NO_ERROR"'),
    ),
    (
        "lines of tunnels that a server refuses or ends",
        scene(["head", request("CONNECT", "/ws")], ["close"], front=["option dontlog-normal"]),
        ("log", '["GET /ws HTTP/2.0 200 SD-- b=app"]', "nothing"),
        ("log", '["GET /ws HTTP/2.0 502 SH-- b=app"]', "nothing"),
    ),
    (
        "chunks of a body that was waited for",
        scene(UP, base=["option http-buffer-request"]),
        (
            "servers.s1.0.after them",
            r'"POST /up\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n"',
            r'"POST /up\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n"',
        ),
        (
            "servers.s1.0.after them",
            r'"POST /up\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n"',
            r'"POST /up\r\n\r\n5\r\n01234\r\n0\r\n\r\n"',
        ),
    ),
    (
        "samples whose head is gone, before bytes of the request",
        scene(*asks(request("PATCH")), base=['log-format "%[method] %[bytes_in]"']),
        ("log.0", '"- 200"', '"PATCH 199"'),
        ("log.0", '"PATCH 200"', '"- 200"'),
    ),
    (
        "continuations of forms",
        scene(["ask", request("POST", "/a", ["Expect", "100-continue"])], speaks="h2", front=["stats uri /a"]),
        ("clients.0.stream 1.heads", '[[":status 100"], [":status 303", "a: b"]]', '[[":status 303", "a: b"]]'),
        ("clients.0.stream 1.heads", '[[":status 100"], [":status 303", "a: b"]]', '[[":status 403", "a: b"]]'),
    ),
    (
        "retries behind an interim response",
        scene(*asks(request()), back=["retry-on empty-response"], answer=[["interim", 103, []], ["close"]]),
        ("clients.0.responses", '[["HTTP/1.1 103 Said"]]', '[["HTTP/1.1 103 Said"], ["HTTP/1.1 200 OK"]]'),
        ("clients.0.responses", '[["HTTP/1.1 200 OK"]]', '[["HTTP/1.1 200 OK"], ["HTTP/1.1 200 OK"]]'),
    ),
    (
        "tunnels whose server closes at once",
        scene(UPGRADE, ["close"], to_h2=True, answer=[["head", 200, [], "none"], ["close"]]),
        ("log.0", LINE % "101 ----", LINE % "101 SD--"),
        ("log.0", LINE % "101 SD--", LINE % "101 ----"),
    ),
    (
        "streams to a server that wakes as they come",
        site(
            clients=[client([["stall"]], "h2"), client(list(TWICE), "h2")],
            speaks="h2",
            server_words=" proto h2",
            servers={"s1": server(ok(), speaks="h2", connections=[[["stall"]], [["reset"]]])},
        ),
        ("clients.1.stream 3.heads.0", '[":status 404"]', '[":status 502"]'),
        ("clients.0.stream 3.heads.0", '[":status 404"]', '[":status 502"]'),
        ("clients.1.stream 3.heads.0", '[":status 404"]', '[":status 200"]'),
    ),
    (
        "streams that share a server's connection",
        scene(*TWICE, to_h2=True, speaks="h2"),
        ("stat.app s1.connect", '"2"', '"1"'),
        ("stat.app s1.hrsp_2xx", '"2"', '"1"'),
    ),
    (
        "connections that streams share",
        scene(*TWICE, to_h2=True, speaks="h2"),
        ("servers.s1", '[{"streams": []}, {"streams": []}]', '[{"streams": []}]'),
        ("servers.s1", '[{"streams": []}]', "nothing"),
        ("servers.s1", '[{"streams": []}]', '[{"streams": []}, {"streams": []}]'),
    ),
    (
        "streams that a shared connection lost",
        scene(*TWICE, to_h2=True, speaks="h2"),
        ("clients.0.stream 1.end", '"ended"', '"reset REFUSED_STREAM"'),
        ("clients.0.stream 1.heads.0.0", '":status 200"', '":status 504"'),
    ),
    (
        "retries after malformed responses of HTTP/2",
        scene(*TWICE, answer=ok("", ("Keep-Alive", "x")), to_h2=True, base=["retry-on all-retryable-errors"]),
        ("stat.app s1.eresp", '"2"', '"1"'),
        ("servers.s1", f"[{CONNECTION}]", f"[{CONNECTION}, {CONNECTION}]"),
    ),
    (
        "responses that nobody asked for",
        scene(*TWICE, answer=[*ok(), ["pause"], ["answer", 200, [], "second"]]),
        ("clients.0.responses.1.0", '"HTTP/1.1 200 Said"', '"HTTP/1.1 502 Bad Gateway"'),
        ("clients.0.responses.1.0", '"HTTP/1.1 200 Said"', '"HTTP/1.1 400 Bad request"'),
    ),
    (
        "which of several idle connections is used",
        scene(*TWICE, speaks="h2"),
        ("servers.s1.spread", f"[[{ONE}, {ONE}], [{ONE}]]", f"[[{ONE}], [{ONE}, {ONE}]]"),
        ("servers.s1.0.requests", f"[{ONE}]", f"[{ONE}, {ONE}]"),
    ),
    (
        "requests of clients that leave with an answer unread",
        scene(["ask", request()], ["ask", request("GET", "/b")]),
        ("servers.s1", f"[{CONNECTION}, {CARRIED % ONE.replace('/ ', '/b ')}]", f"[{CONNECTION}]"),
        ("servers.s1", f"[{CONNECTION}]", "nothing"),
        ("servers.s1", f"[{CONNECTION}]", f"[{CARRIED % ONE.replace('/ ', '/b ')}]"),
    ),
    (
        "dates before 1970",
        site(front=["http-request set-header x-conv-2 <%[query,cpl,utime(%Y)]>"], clients=[client(asks(request()))]),
        ("servers.s1.0.requests.0.1", '"x-conv-2: <1141709097>"', '"x-conv-2: <1969>"'),
        ("servers.s1.0.requests.0.1", '"x-conv-2: <2026>"', '"x-conv-2: <2025>"'),
    ),
    (
        "requests of a monitor in lines of rules",
        scene(*asks(request()), front=["monitor-uri /", "http-after-response do-log"]),
        ("log.0", '"<BADREQ> hs="', '"GET hs="'),
        ("log.0", '"<BADREQ> hs="', '"<BADREQ> 200"'),
        ("log.0", '"GET hs="', '"POST hs="'),
    ),
    (
        "statistics page",
        scene(*TWICE, front=["stats uri /a"]),
        ("clients.0.responses.0.3", '"body whole: Statistics Report"', '"body whole: <p>Statistics Report"'),
        ("clients.0.responses", '[["HTTP/1.1 200 OK", "body whole: Statistics Report"]]', "nothing"),
    ),
    (
        "interim responses to HTTP/1.0",
        scene(*asks(request(version="1.0")), answer=[["interim", 103, []], *ok()]),
        ("clients.0.responses", f'[["HTTP/1.1 103 Early", "body whole: "], {SAID}]', f"[{SAID}]"),
        ("clients.0.responses", f'[["HTTP/1.1 103 Early", "body whole: "], {SAID}]', f"[{PAGE}]"),
    ),
    (
        "patterns of delimiters only",
        scene(*TWICE, front=["http-request add-header x-match 1 if { path -m dir -- / }"]),
        ("servers.s1.0.requests.0", '["x-match: 1"]', "nothing"),
        ("servers.s1.0.requests.0", '["x-conv-1: 1"]', "nothing"),
        ("servers.s1.0.requests.0", '["x-match: 1", "authorization: x"]', "nothing"),
    ),
    (
        "answers to requests that a kept connection lost",
        scene(*TWICE, answer=[*ok(), ["close"]]),
        ("clients.0.responses", f"[{SAID}]", f"[{SAID}, {PAGE}]"),
        ("clients.0.responses", f"[{SAID}]", f"[{PAGE}, {PAGE}]"),
        ("clients.0.responses", f"[{SAID}, {SAID}]", f"[{SAID}]"),
    ),
    (
        "connections that a request went out again on",
        scene(*TWICE, answer=[*ok(), ["close"]]),
        ("servers.s1", f"[{CONNECTION}]", f"[{CONNECTION}, {CONNECTION}]"),
        ("servers.s1", f"[{CONNECTION}]", f"[{CONNECTION}, {CONNECTION.replace('/ ', '/smuggled ')}]"),
    ),
    (
        "servers of HTTP/2 that refuse connections",
        scene(*TWICE, to_h2=True, refuses=True),
        ("clients.0.responses.0.0", '"HTTP/1.1 502 Bad Gateway"', '"HTTP/1.1 503 Service Unavailable"'),
        ("clients.0.responses.0.0", '"HTTP/1.1 200 OK"', '"HTTP/1.1 503 Service Unavailable"'),
    ),
    (
        "upgrades that a server of HTTP/2 does not take",
        scene(UPGRADE, to_h2=True),
        ("clients.0.responses", "nothing", '[["HTTP/1.1 502 Bad Gateway", "body whole: "]]'),
        ("clients.0.responses.0.0", '"HTTP/1.1 200 OK"', '"HTTP/1.1 502 Bad Gateway"'),
    ),
    (
        "retries of upgrades that a server of HTTP/2 does not take",
        scene(UPGRADE, to_h2=True, base=["retry-on conn-failure"]),
        ("log.0", '"GET /ws 502 SH-- rc=3"', '"GET /ws 502 SH-- rc=0"'),
        ("log.0", '"GET /ws 200 ---- rc=3"', '"GET /ws 502 SH-- rc=0"'),
        ("stat.web FRONTEND.hrsp_2xx", '"2"', '"1"'),
    ),
    (
        "responses to HEAD that their stream does not end",
        scene(*asks(request("HEAD")), answer=[["head", 200, [], "length:30"]], to_h2=True),
        ("log.0", '"HEAD /a 200 SD-- s=s1"', '"HEAD /a 200 ---- s=s1"'),
        ("log.0", '"GET /a 200 SD-- s=s1"', '"GET /a 200 ---- s=s1"'),
        ("stat.app s1.hrsp_2xx", '"1"', "nothing"),
    ),
    (
        "servers that are full beside one that refuses",
        scene(*TWICE, refuses=True, back=["server s2 @server:s2@ maxconn 2"], name="crowds"),
        ("counted.answer HTTP/1.1 503 Service Unavailable", "160", "nothing"),
        ("counted.answer HTTP/1.1 503 Service Unavailable", "nothing", "160"),
        ("counted.answer HTTP/1.1 200 Said", "300", "100"),
    ),
    (
        "connects of retries",
        scene(*TWICE, base=["retry-on 503"]),
        ("stat.app s1.connect", '"4"', '"6"'),
        ("stat.app s1.connect", '"6"', '"4"'),
    ),
    (
        "an upload that goes on after its answer",
        scene(UP, ["read"]),
        ("log.0", '"POST /up 200 CD--"', '"POST /up 200 ----"'),
        ("log.0", '"POST /up 503 CD--"', '"POST /up 200 ----"'),
    ),
    (
        "what a client sends to a closed connection",
        scene(*TWICE),
        ("clients.0.end", '"reset"', '"closed"'),
        ("clients.0.end", '"closed"', '"reset"'),
    ),
    (
        "tunnels that a server refuses or ends",
        scene(["head", request("CONNECT", "a:443")], ["stall"]),
        ("log.0", LINE % "200 SD--", LINE % "200 ----"),
        ("log.0", LINE % "200 SD--", LINE % "503 ----"),
        ("stat.app s1.eresp", '"9"', "nothing"),
    ),
    (
        "heads that the kernel holds back",
        scene(["ask", request()], ["pause"], ["close"], answer=[["head", 200, [], "length:30"], ["stall"]]),
        ("clients.0.responses", "nothing", '[["HTTP/1.1 200 Said", "body cut: "]]'),
        ("clients.0.responses", '[["HTTP/1.1 200 Said", "body cut: "]]', "nothing"),
        ("clients.0.responses", "nothing", f"[{SAID}]"),
    ),
    (
        "samples whose head is gone",
        scene(*TWICE, base=['log-format "%[status] %ST"']),
        ("log.0", '"- 200"', '"200 200"'),
        ("log.0", '"- 200"', '"200 503"'),
    ),
    (
        "interim responses before a malformed one",
        scene(*TWICE, answer=[["interim", 103, []], ["interim", 103, [["Upgrade", "h2c"]]], *ok()], to_h2=True),
        ("clients.0.responses", f'[["HTTP/1.1 103 Early", "body whole: "], {PAGE}]', f"[{PAGE}]"),
        ("clients.0.responses", f"[{SAID}]", f"[{PAGE}]"),
    ),
    (
        "pages that 3.2 does not send",
        scene(["head", request("POST", "/", ["Content-Length", "1"], ["Content-Length", "2"])]),
        ("clients.0.responses", "nothing", '[["HTTP/1.1 400 Bad request", "body whole: "]]'),
        ("clients.0.responses", f"[{SAID}]", '[["HTTP/1.1 400 Bad request", "body whole: "]]'),
    ),
    (
        "ends in lines of rules",
        scene(*TWICE, front=["http-request do-log"]),
        ("log.0", LINE % "302 ----", LINE % "302 LR--"),
        ("log.0", LINE % "302 ----", LINE % "403 LR--"),
    ),
    (
        "statuses out of range",
        scene(*TWICE, answer=[["body"], ["send", "HTTP/1.1 2 x\r\n\r\n"], ["close"]]),
        ("clients.0.responses.0.0", '"HTTP/1.1 2 x"', '"HTTP/1.1 502 Bad Gateway"'),
        ("clients.0.responses.0.0", '"HTTP/1.1 200 OK"', '"HTTP/1.1 404 x"'),
    ),
    (
        "silent drops of streams",
        scene(*TWICE, front=["http-request silent-drop"], speaks="h2"),
        ("clients.0.stream 1.end", '"reset REFUSED_STREAM"', '"open"'),
        ("clients.0.stream 1.end", '"ended"', '"open"'),
    ),
    (
        "streams that a kept connection lost",
        scene(*TWICE, answer=[*ok(), ["close"]], speaks="h2"),
        ("clients.0.stream 3.end", '"reset REFUSED_STREAM"', '"ended"'),
        ("clients.0.stream 3.end", '"ended"', '"reset REFUSED_STREAM"'),
    ),
    (
        "a byte of the inner form of a request",
        scene(*asks(request("POST", "/", body="x")), base=["log-format %[bytes_in]-%ST"], speaks="h2"),
        ("log.0", '"POST 101 200"', '"POST 100 200"'),
        ("log.0", '"POST 101 200"', '"POST 101 503"'),
    ),
    (
        "chunks to HTTP/1.0 that keeps its connection",
        scene(*asks(request("GET", "/", ["Connection", "keep-alive"], version="1.0")), answer=[["head", 200, [], "chunked"], ["end"]]),
        ("clients.0.responses.0", '["connection: keep-alive", "transfer-encoding: chunked"]', '["connection: close"]'),
        ("clients.0.responses.0", '["connection: keep-alive", "transfer-encoding: chunked"]', "nothing"),
        ("clients.0.responses.0", '["connection: keep-alive", "x-a: 1"]', '["connection: close"]'),
    ),
    (
        "tickets to clients that get nothing",
        sealed("mode tcp", "ssl verify required ca-file @cert:other.pem@"),
        ("clients.1.tls.resumed", "true", "false"),
        ("clients.0.tls.resumed", "true", "false"),
        ("log.1", '"SC again=1 v=TLSv1.3"', '"CC again=0 v=TLSv1.3"'),
    ),
    (
        "bytes of a large body in the tarpit",
        scene(*asks(request("POST", "/", body="b" * 20000)), front=["http-request tarpit deny_status 500"]),
        ("stat.web FRONTEND.bin", '"20055"', '"16439"'),
        ("stat.web FRONTEND.bin", '"20055"', '"90000"'),
        ("stat.app s1.bin", '"20055"', '"16439"'),
    ),
    (
        "bytes of interim responses to HTTP/1.0",
        scene(*asks(request(version="1.0")), base=['log-format "%HM %ST %B"'], answer=[["interim", 103, []], *ok()]),
        ("log.0", '"GET 200 245"', '"GET 200 209"'),
        ("log.0", '"GET 200 245"', '"GET 502 209"'),
        ("log.0", '"GET 200 245"', "nothing"),
    ),
    (
        "interim responses to HTTP/1.0 before a kept connection is lost",
        scene(*asks(request(), request(version="1.0")), answer=[["interim", 103, []], ["close"]]),
        ("clients.0.responses.1", '["HTTP/1.1 103 Said", "body whole: "]', '["HTTP/1.1 502 Bad Gateway"]'),
        ("clients.0.responses.1", '["HTTP/1.1 200 Said", "body whole: "]', '["HTTP/1.1 502 Bad Gateway"]'),
        ("clients.0.responses.1", '["HTTP/1.1 103 Said", "body whole: "]', '["HTTP/1.1 503 Service Unavailable"]'),
    ),
    (
        "a payload that is cut in a line, without prompts",
        {"clients": [client([["send", "prompt i\nshow table @seen@\nadd map @file:m.map@ <<x\n/q"], ["answered"]], "prompt")]},
        ("clients.0.received", "nothing", '["# table: seen"]'),
        ("clients.0.received", '["# table: seen"]', '["# table: app"]'),
        ("ask.1.1", "nothing", '"0xN /a two"'),
    ),
    (
        "levels that a session lowered",
        {"clients": [client([["send", "prompt\nuser\nshow table @seen@\n"]], "prompt", "admin")]},
        ("clients.0.received.2", '"> # table: seen"', '"> # contents not dumped due to insufficient privileges"'),
        ("clients.0.received.2", '"> # table: seen"', '"> "'),
    ),
    (
        "what a client asks after it was silent while a server was tried",
        scene(UP, ["interim"], ["body", "01234"], ["read"], *asks(request()), refuses=True),
        ("servers.s2", "nothing", f"[{CONNECTION}]"),
        ("servers.s2", f"[{CONNECTION}]", "nothing"),
    ),
    (
        "requests behind a response to HEAD that its stream does not end",
        scene(*asks(request("HEAD"), request()), answer=[["head", 200, [], "close"]], to_h2=True),
        (
            "servers.s1.0.streams",
            '[{"heads": [[":method HEAD"]], "end": "ended"}]',
            '[{"heads": [[":method HEAD"]], "end": "ended, reset CANCEL"}, {"heads": []}]',
        ),
        ("servers.s1.0.streams", "nothing", '[{"heads": [[":method HEAD"]], "end": "ended"}]'),
    ),
    (
        "retries after a 101 that nobody asked for",
        scene(*TWICE, answer=[["head", 101, [], "none"], ["close"]], base=["retry-on junk-response"]),
        ("log.0", '"GET /a 502 SH-- rc=2 hr="', '"GET /a 502 SH-- rc=3 hr="'),
        ("log.0", '"GET /a 200 ---- rc=2 hr="', '"GET /a 502 SH-- rc=3 hr="'),
        ("log.0", '"GET /a 502 SH-- rc=3 hr="', '"GET /a 502 SH-- rc=2 hr="'),
    ),
    (
        "responses that nobody asked for on one of several idle connections",
        scene(*TWICE, answer=[*ok(), ["pause"], ["answer", 200, [], "second"]], speaks="h2"),
        ("clients.0.stream 5.body", '"x"', '"second"'),
        ("clients.0.stream 5.body", '"x"', '"y"'),
        ("clients.0.stream 5.end", '"ended"', '"open"'),
    ),
    (
        "queues of a server that refuses",
        scene(*TWICE, refuses=True, back=["server s2 @server:s2@ maxconn 2"], name="crowds"),
        ("counted.line 503 sQ s=<NOSRV> rc=0", "107", "nothing"),
        ("counted.line 503 sQ s=<NOSRV> rc=0", "nothing", "107"),
        ("counted.line 200 -- s=s1 rc=0", "107", "nothing"),
    ),
    (
        "first requests that a kept connection lost",
        scene(*TWICE, answer=[["cancel", 0]], to_h2=True, base=["http-reuse aggressive"]),
        ("clients.0.responses", "nothing", f"[{PAGE}]"),
        ("clients.0.responses", f"[{SAID}]", f"[{PAGE}]"),
    ),
    (
        "connections that a server closes behind an upload that was given up",
        site(
            server_words=" proto h2",
            clients=[client([UP, ["stall"]]), client([*TWICE])],
            servers={"s1": server([["body"], ["head", 200, [], "chunked"], ["pause"], ["close"]], speaks="h2")},
        ),
        ("clients.1.responses", f"[{SAID}, {SAID}]", f"[{SAID}]"),
        ("clients.1.responses", f"[{SAID}, {SAID}]", f"[{PAGE}]"),
        ("clients.0.responses", f"[{SAID}, {SAID}]", f"[{SAID}]"),
    ),
    (
        "servers that wait for the end of such a client",
        scene(
            *asks(request()), ["half"], answer=[["head", 200, [], "none"], ["bytes", 3], ["send", "back"]], speaks="h2"
        ),
        ("clients.0.stream 1.body", '"back"', '""'),
        ("clients.0.stream 1.body", '""', '"back"'),
        ("clients.0.stream 1.body", '"part"', '""'),
    ),
    (
        "lengths that rules write into requests and that are none",
        scene(*TWICE, front=["http-request replace-header Content-Length (.) <>"]),
        ("clients.0.responses.0", '["HTTP/1.1 500 Internal Server Error", "content-length: 97"]', SAID),
        ("clients.0.responses.0", PAGE, SAID),
        ("clients.0.responses.0", SAID, '["HTTP/1.1 500 Internal Server Error", "content-length: 97"]'),
    ),
    (
        "servers of HTTP/2 that refuse connections",
        scene(*TWICE, to_h2=True, refuses=True),
        ("clients.0.responses", '[["HTTP/1.1 502 Bad Gateway"]]', f"[{PAGE}, {SAID}]"),
        ("clients.0.responses", f"[{SAID}]", f"[{PAGE}, {SAID}]"),
    ),
    (
        "streams of uploads that their client ends at once",
        scene(UP, ["body", "01234"], ["half"], to_h2=True),
        ("servers.s1.2.streams", "nothing", '[{"heads": [[":method PUT"]], "body": "01234", "end": "reset CANCEL"}]'),
        ("servers.s1.2.streams", "nothing", '[{"heads": [[":method PUT"]], "body": "01234", "end": "ended"}]'),
        ("servers.s1.2.streams", '[{"heads": [[":method PUT"]], "body": "01234", "end": "reset CANCEL"}]', "nothing"),
    ),
    (
        "servers that end with their response, within an upload",
        scene(UP, ["stall"], answer=[["head", 200, [], "none"], ["close"]]),
        ("log.0", '"POST /up 200 cL-- b=5"', '"POST /up 200 SL-- b=5"'),
        ("log.0", '"POST /up 200 cL-- b=5"', '"POST /up 502 SL-- b=5"'),
        ("stat.app s1.srv_abrt", '"1"', '"3"'),
    ),
    (
        "heads that the kernel holds back",
        scene(["ask", request()], answer=[["head", 200, [], "length:30"], ["stall"]]),
        ("clients.0.responses", f"[{SAID}]", f'[{SAID}, ["HTTP/1.1 200 Said", "body cut: part"]]'),
        ("clients.0.responses", f"[{SAID}]", f'[{PAGE}, ["HTTP/1.1 200 Said", "body cut: part"]]'),
    ),
    (
        "clients that reset within a response without an end",
        scene(["ask", request()], ["interim"], ["reset"], answer=[["head", 200, [], "chunked"], ["data", "part"], ["stall"]]),
        ("stat.app s1.srv_abrt", '"2"', '"1"'),
        ("stat.app s1.srv_abrt", '"9"', '"1"'),
    ),
    (
        "tries beside a request that is answered",
        scene(*TWICE, speaks="h2", base=["retry-on all-retryable-errors"]),
        ("servers.s1", f"[{CARRIED % f'{SAID}, {ONE}'}, {CONNECTION}]", f"[{CARRIED % SAID}, {CONNECTION}, {CONNECTION}]"),
        ("servers.s1", f"[{CARRIED % f'{SAID}, {ONE}'}, {CONNECTION}]", f"[{CARRIED % ONE}, {CONNECTION}, {CONNECTION}]"),
        ("servers.s1", f"[{CARRIED % f'{SAID}, {ONE}'}, {CONNECTION}]", "nothing"),
    ),
    (
        "heads that the kernel holds back",
        scene(["ask", request()], answer=[["head", 200, [], "close"]]),
        ("clients.0.responses", "nothing", '[["HTTP/1.1 200 Said", "body cut: "]]'),
        ("clients.0.responses", '[["HTTP/1.1 200 Said", "body cut: "]]', "nothing"),
    ),
    (
        "answers to requests that a kept connection lost",
        scene(*TWICE, answer=[*ok(), ["close"]]),
        ("clients.0.responses", '[["HTTP/1.1 200 Said", "sec-websocket-accept: x", "a: b"]]', f'[["HTTP/1.1 200 Said", "a: b"], {PAGE}]'),
        ("clients.0.responses", '[["HTTP/1.1 200 Said", "set-cookie: x", "a: b"]]', f'[["HTTP/1.1 200 Said", "a: b"], {PAGE}]'),
    ),
    (
        "clients that reset within a response without an end",
        scene(*asks(request()), ["pause"], ["cancel"], answer=[["head", 200, [], "close"], ["data", "part"], ["stall"]]),
        ("stat.app s1.cli_abrt", '"1"', '"2"'),
        ("stat.app s1.cli_abrt", '"1"', '"9"'),
    ),
    (
        "streams to servers that are given up",
        scene(UP, ["interim"], ["body", "01234"], to_h2=True),
        ("servers.s1.0.streams.0.end", '"open"', '"reset CANCEL"'),
        ("servers.s1.0.streams.0.end", '"open"', '"ended"'),
    ),
    (
        "lengths that rules write into requests",
        scene(*asks(request("POST", "/", body="x", version="1.0")), front=["http-request del-header Content-Length"]),
        ("servers.s1.0.requests.0.2", '"content-length: 0"', '"content-length: 1"'),
        ("servers.s1.0.requests.0.2", '"x-a: 0"', '"x-a: 1"'),
    ),
    (
        "bytes of a large body that nobody reads",
        scene(*asks(request("POST", "/", body="b" * 20000), request("POST", "/", body="b" * 20000)), speaks="h2"),
        ("stat.web FRONTEND.bin", '"30560"', '"32896"'),
        ("stat.web FRONTEND.bin", '"15280"', '"48000"'),
    ),
    (
        "responses without a body that rules give another status",
        scene(*TWICE, answer=ok("", status=204), front=["http-after-response set-status 201"]),
        ("clients.0.responses.0", '["body whole: HTTP/1.1 408 Request Time-out"]', '["content-length: 0", "body whole: "]'),
        ("clients.0.responses.0", '["body whole: abc"]', '["content-length: 0", "body whole: "]'),
    ),
    (
        "responses to HEAD that their stream does not end",
        over_tls(scene(*asks(request("HEAD")), answer=[["head", 200, [], "close"], ["fin"]])),
        ("clients.0.end", '"closed"', '"open"'),
        ("clients.0.end", '"open"', '"closed"'),
    ),
    (
        "upgrades that a server of HTTP/2 does not take",
        beside_one_that_takes_them(scene(UPGRADE, to_h2=True)),
        ("clients.0.responses", "nothing", '[["HTTP/1.1 502 Bad Gateway", "body whole: "]]'),
        ("clients.0.responses", "nothing", '[["HTTP/1.1 503 Service Unavailable", "body whole: "]]'),
    ),
    (
        "streams above the last one of a GOAWAY",
        scene(["ask", request()], answer=[["goaway", 0, 2]], to_h2=True, speaks="h2"),
        ("servers.s1", f"[{CONNECTION}]", f"[{CONNECTION}, {CONNECTION}]"),
        ("servers.s1", f"[{CONNECTION}]", f"[{CONNECTION}, {CONNECTION.replace('/ ', '/smuggled ')}]"),
        ("log.0", LINE % "504 sH--", LINE % "400 SH--"),
    ),
    (
        "streams that a server refuses",
        scene(["ask", request()], answer=[["cancel", 7]], to_h2=True),
        ("servers.s1.0.streams", '[{"heads": []}]', '[{"heads": []}, {"heads": []}]'),
        ("servers.s1.0.streams", '[{"heads": []}]', '[{"heads": []}, {"heads": [":path /smuggled"]}]'),
        ("clients.0.responses.0", PAGE, SAID),
        ("clients.0.responses.0.0", '"HTTP/1.1 200 Said"', '"HTTP/1.1 502 Bad Gateway"'),
    ),
    (
        "streams that a server resets after a retry",
        scene(*TWICE, answer=[["some", 1], ["cancel", 2]], to_h2=True, speaks="h2", back=["retry-on junk-response"]),
        ("clients.0.stream 1.heads", "nothing", '[[":status 502", "content-length: 107"]]'),
        ("clients.0.stream 1.heads", "nothing", '[[":status 503", "content-length: 107"]]'),
        ("clients.0.stream 1.heads", '[[":status 200"]]', '[[":status 502"]]'),
    ),
    (
        "answers that go on behind a GOAWAY",
        scene(*TWICE, answer=[["head", 200, [], "chunked"], ["pause"], ["goaway", 1, 7]], to_h2=True),
        ("log.1", LINE % "200 SD--", LINE % "200 sD--"),
        ("log.1", LINE % "200 SD--", LINE % "502 sD--"),
        ("stat.app s1.eresp", '"4"', '"9"'),
    ),
    (
        "clients that end their side of a tunnel that a server refuses",
        scene(
            *(["head", request("CONNECT", "/ws", protocol="websocket")], ["interim"], ["half"]),
            answer=[["body"], ["head", 200, [], "length:30"], ["stall"]],
            speaks="h2",
        ),
        ("log.0", LINE % "200 sD--", LINE % "200 CD--"),
        ("log.0", LINE % "200 sD--", LINE % "400 CD--"),
        ("clients.0.end", '"open"', '"reset"'),
        ("clients.0.stream 1.end", '"ended"', '"open"'),
    ),
    (
        "clients of HTTP/2 that end their side within a response",
        scene(["ask", request()], answer=[["head", 200, [], "length:30"]], speaks="h2"),
        ("log.0", LINE % "200 CD--", LINE % "200 sD--"),
        ("log.0", LINE % "200 CD--", LINE % "504 sD--"),
        ("log.0", LINE % "200 ----", LINE % "200 sD--"),
        ("stat.app s1.srv_abrt", "nothing", '"4"'),
    ),
    (
        "clients that leave with an answer unread",
        scene(["ask", request()], answer=[]),
        ("stat.app s1.eresp", '"3"', '"2"'),
        ("stat.app s1.eresp", '"3"', '"9"'),
    ),
    (
        "lengths that rules write into requests and that are none",
        scene(["ask", request("POST", "/", ["Content-Length", "2"])], front=[r"http-request replace-header Content-Length (.) <\1>"]),
        ("servers.s1.0.after them", '"POST / HTTP/1.1\\r\\n"', "nothing"),
        ("clients.0.responses.0.0", '"HTTP/1.1 200 Said"', '"HTTP/1.1 502 Bad Gateway"'),
        ("servers.s1.0.after them", "nothing", '"POST / HTTP/1.1\\r\\n"'),
        ("servers.s1.0.requests.0", "nothing", '["authorization: x"]'),
    ),
    (
        "hosts that rules write into requests of HTTP/2",
        scene(*asks(request("GET", "/", ["X-A", "x y"])), front=["http-request add-header Host %[req.hdr(x-a)]"], speaks="h2"),
        ("clients.0.stream 1.heads.0.0", '":status 503"', '":status 500"'),
        ("clients.0.stream 1.heads.0.0", '":status 500"', '":status 200"'),
        ("clients.0.stream 1.heads.0.0", '":status 200"', '":status 502"'),
    ),
    (
        "servers that are full beside one that refuses",
        scene(
            *TWICE,
            answer=[["body"], ["close"]],
            base=["option redispatch 2"],
            back=["retry-on all-retryable-errors", "server s2 @server:s2@ maxconn 2"],
            name="crowds",
        ),
        ("counted.answer HTTP/1.1 502 Bad Gateway", "90", "nothing"),
        ("counted.answer HTTP/1.1 502 Bad Gateway", "nothing", "90"),
        ("counted.answer HTTP/1.1 200 Said", "300", "100"),
    ),
    (
        "hosts that cannot be reached",
        {"clients": [client([["command", "set server app/s1 addr 1.2.3.4"]], "cli", "admin")]},
        ("clients.1.responses", "nothing", f"[{PAGE}]"),
        ("clients.1.responses.0.0", '"HTTP/1.1 200 OK"', '"HTTP/1.1 503 x"'),
    ),
    (
        "sessions of a page while http-after-response logs it",
        scene(*TWICE, rules=["http-after-response do-log"], log='log-format "%hsl %bc %B"'),
        ("log.0", '"1 0"', '"0 0"'),
        ("log.0", '"0 0"', '"1 0"'),
        ("log.0", '"503 1 209"', '"200 0 209"'),
    ),
    (
        "silent clients of an unanswered tunnel",
        scene(UPGRADE, ["interim"], answer=[], back=["option abortonclose"]),
        ("log.0", '"GET /ws HTTP/1.1 400 cD-- b=app s=s1 rc=1"', '"GET /ws HTTP/1.1 504 sH-- b=app s=s1 rc=3"'),
        ("log.0", '"GET /ws HTTP/1.1 400 cD-- b=app s=s1 rc=1"', '"GET /ws HTTP/1.1 502 SH-- b=app s=s1 rc=3"'),
        ("log.0", '"GET /ws HTTP/1.1 400 CD-- b=app s=s1 rc=1"', '"GET /ws HTTP/1.1 504 ---- b=app s=s1 rc=3"'),
    ),
    (
        "silent clients of an unanswered tunnel, without a line",
        {**scene(UPGRADE, ["interim"], answer=[], back=["option abortonclose"]), "defaults": ["mode http"]},
        ("clients.0.responses.0.0", '"HTTP/1.1 400 Bad request"', '"HTTP/1.1 504 Gateway Time-out"'),
        ("clients.0.responses.0.0", '"HTTP/1.1 400 Bad request"', '"HTTP/1.1 502 Bad Gateway"'),
    ),
    (
        "tunnels that end with their connection",
        scene(["head", request("CONNECT", "a:443")], to_h2=True, base=["http-reuse never"]),
        ("servers.s1.0.streams.0.end", '"open"', '"ended"'),
        ("servers.s1.0.streams.0.end", '"ended"', '"open"'),
        ("servers.s1.0.streams.0.end", '"open"', '"ended, reset PROTOCOL_ERROR"'),
    ),
    (
        "tries for a client that has left",
        scene(
            TWICE[0],
            ["pause"],
            ["close"],
            answer=[["interim", 103, []], ["pause"], ["answer", 503, [], "x"]],
            speaks="h2",
            back=["retry-on all-retryable-errors"],
        ),
        ("servers.s1.0.requests", f"[{ONE}, {ONE}]", f"[{ONE}, {ONE}, {ONE}]"),
        ("servers.s1.0.requests", f"[{ONE}, {ONE}, {ONE}]", f"[{ONE}, {ONE}]"),
        ("servers.s1.0.requests", f"[{ONE}]", f"[{ONE}, {ONE}, {ONE}]"),
    ),
    (
        "first requests that a connection of tries lost",
        scene(*TWICE, answer=[["reset"]], back=["retry-on 404"]),
        ("clients.0.responses", "nothing", '[["HTTP/1.1 502 Bad Gateway", "body whole: x"]]'),
        ("clients.0.responses", '[["HTTP/1.1 502 Bad Gateway", "body whole: x"]]', "nothing"),
        ("clients.0.responses", "nothing", f"[{SAID}]"),
    ),
    (
        "ends at the same moment",
        scene(
            TWICE[0],
            ["pause"],
            ["close"],
            answer=[["head", 200, [], "close"], ["data", "part"], ["pause"], ["goaway", 0, 1]],
            to_h2=True,
            speaks="h2",
        ),
        ("log.0", LINE % "200 CD--", LINE % "200 sD--"),
        ("log.0", LINE % "200 CD--", LINE % "200 ----"),
        ("log.0", LINE % "200 CD--", LINE % "502 SD--"),
    ),
    (
        "stalls as long as the tries",
        {**scene(*TWICE, back=["retry-on all-retryable-errors"]), "servers": {"s1": server(speaks="h2", connections=[[["reset"]], [["stall"]]])}},
        ("servers.s1.1.end", '"by the server"', '"open"'),
        ("servers.s1.1.end", '"by the server"', '"reset"'),
        ("servers.s1.1.end", '"ended"', '"open"'),
    ),
    (
        "paths that rules write without a slash",
        scene(["ask", request("OPTIONS", "*")], speaks="h2", rules=["http-request set-path x"]),
        ("servers.s1.0.requests.0.0", '"OPTIONS * HTTP/1.1"', '"OPTIONS x HTTP/1.1"'),
        ("servers.s1.0.requests.0.0", '"OPTIONS * HTTP/1.1"', '"OPTIONS /x HTTP/1.1"'),
        ("servers.s1.0.requests.0.0", '"OPTIONS x HTTP/1.1"', '"OPTIONS * HTTP/1.1"'),
    ),
    (
        "entities of a page while http-after-response logs it",
        scene(*TWICE, rules=["http-after-response do-log", "http-request return status 200"], log='log-format "%ST %[last_entity] %B"'),
        ("log.0", '"200 - 2"', '"200 DIR/haproxy.cfg:9 2"'),
        ("log.0", '"200 - 2"', '"503 DIR/haproxy.cfg:9 2"'),
        ("log.0", '"200 DIR/haproxy.cfg:9 2"', '"200 - 2"'),
    ),
    (
        "answers that come to another client for a length that a rule wrote",
        scene(
            *TWICE,
            answer=[["answer", 408, [], "yy"], ["answer", 200, [], "second"]],
            rules=["http-response add-header Content-Length 1"],
        ),
        ("clients.1.responses.0.0", '"HTTP/1.1 504 Said"', '"HTTP/1.1 200 Said"'),
        ("clients.0.responses.0.0", '"HTTP/1.1 504 Said"', '"HTTP/1.1 200 Said"'),
        ("clients.1.responses.0.0", '"HTTP/1.1 200 Said"', '"HTTP/1.1 503 Service Unavailable"'),
    ),
    (
        "tables that are set without a key",
        {"clients": [client([["command", "set table @seen@"]], "cli", "admin")]},
        ("ask.0.1", '"# table: seen, type: ip, size:100, used:1\\n0xN: key=1"', '"# table: seen, type: ip, size:100, used:2\\n0xN: key=2"'),
        ("ask.0.1", '"# table: seen, type: ip, size:100, used:1\\n0xN: key=1"', '"No such table\\n"'),
        ("ask.0.1", '"No such table\\n"', '"# table: seen, type: ip, size:100, used:2\\n0xN: key=2"'),
    ),
)
