"""Scenarios with names, each for one kind of behaviour; all of them are played before generated ones."""

from grammars.common import HOST, asks, client, defaults, ok, request, section, server, site

SCENARIOS = {}
WEBSOCKET = (
    *(["Connection", "Upgrade"], ["Upgrade", "websocket"], ["Sec-WebSocket-Version", "13"]),
    ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="],
)
SWITCHED = [["Connection", "Upgrade"], ["Upgrade", "websocket"], ["Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="]]


def scenario(make):
    """Registers a scenario under its function's name."""

    def named():
        return make() | {"name": name}

    name = make.__name__.replace("_", "-")
    named.__doc__ = make.__doc__
    SCENARIOS[name] = named
    return make


def extended(protocol, *fields):
    return request("CONNECT", "/ws", *fields, protocol=protocol)


def tunnel(asked):
    """Asks for a tunnel, sends into it, and waits for what comes back."""
    return [["head", asked], ["interim"], ["body", "hello"], ["bytes", 4], ["close"]]


def echo(status=101, fields=SWITCHED):
    return [["head", status, fields, "none"], ["bytes", 5], ["send", "back"]]


@scenario
def plain_exchange():
    """A request and its answer, in HTTP/1."""
    return site(clients=[client(asks(request(), request("POST", "/p", body="x")))])


@scenario
def plain_exchange_h2():
    """A request and its answer, in HTTP/2."""
    return site(clients=[client(asks(request(), request("POST", "/p", body="x")), "h2")], speaks="h2")


@scenario
def extended_connect_protocols():
    """`:protocol` of an extended CONNECT: h2c and h2 are no protocols of a tunnel."""
    switched = [["Connection", "Upgrade"], ["Upgrade", "h2c"]]
    clients = [
        client(tunnel(extended(protocol, ["http2-settings", "AAMAAABkAAQAAP__"])), "h2")
        for protocol in ("h2c", "H2C", "h2", "connect-udp", "other")
    ]
    return site(speaks="h2", clients=clients, servers={"s1": server(echo(101, switched))})


@scenario
def upgrade_protocols():
    """`Upgrade` of HTTP/1 to h2c and others."""
    clients = []
    for protocol in ("h2c", "h2", "HTTP/2.0", "TLS/1.0", "websocket", "a, b"):
        fields = (["Connection", "Upgrade, HTTP2-Settings"], ["Upgrade", protocol], ["HTTP2-Settings", "AAMAAABkAAQAAP__"])
        clients.append(client(tunnel(request("GET", "/up", *fields))))
    return site(clients=clients, servers={"s1": server(echo(101, [["Connection", "Upgrade"], ["Upgrade", "h2c"]]))})


@scenario
def methods_of_other_versions():
    """PRI and CONNECT as methods of a request."""
    return site(
        clients=[
            client([["send", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], ["stall"]]),
            client([["send", f"PRI * HTTP/1.1\r\nHost: {HOST}\r\n\r\n"], ["read"]]),
            client([["send", f"PRI / HTTP/1.1\r\nHost: {HOST}\r\n\r\n"], ["read"]]),
        ]
    )


@scenario
def pri_over_h2():
    """PRI as a method in HTTP/2."""
    return site(speaks="h2", clients=[client(asks(request("PRI", "/")), "h2"), client(asks(request("PRI", "*")), "h2")])


def hop_fields(speaks, server_speaks):
    """Requests and answers whose fields speak of one connection only."""
    fields = (
        *(("TE", "trailers"), ("TE", "gzip, trailers"), ("Connection", "X-A"), ("Keep-Alive", "timeout=1")),
        *(("Proxy-Connection", "close"), ("Upgrade", "foo"), ("HTTP2-Settings", "AAMAAABkAAQAAP__"), ("Trailer", "X-T")),
    )
    clients = [client(asks(request("GET", "/", list(field), ["X-A", "1"])), speaks) for field in fields]
    answers = [ok("ok", field, ["X-A", "1"]) for field in fields]
    plan = server(*answers, speaks=server_speaks)
    words = " proto h2" if server_speaks == "h2" else ""
    return site(speaks=speaks, clients=clients, servers={"s1": plan}, server_words=words)


@scenario
def hop_fields_h1_h1():
    """Fields of one connection, HTTP/1 to HTTP/1."""
    return hop_fields("h1", "h1")


@scenario
def hop_fields_h1_h2():
    """Fields of one connection, HTTP/1 to HTTP/2."""
    return hop_fields("h1", "h2")


@scenario
def hop_fields_h2_h1():
    """Fields of one connection, HTTP/2 to HTTP/1."""
    return hop_fields("h2", "h1")


@scenario
def hop_fields_h2_h2():
    """Fields of one connection, HTTP/2 to HTTP/2."""
    return hop_fields("h2", "h2")


@scenario
def interim_responses():
    """1xx with fields of the connection, with a body, and 101 that nobody asked for."""
    answers = [
        [["body"], ["interim", 103, [["Connection", "close"], ["Link", "x"]]], *ok()],
        [["body"], ["interim", 102, [["Content-Length", "3"]]], *ok()],
        [["body"], ["interim", 100, []], ["interim", 103, [["Upgrade", "h2c"]]], *ok()],
        [["body"], ["head", 101, [["Connection", "Upgrade"], ["Upgrade", "foo"]], "none"], ["send", "tunnel"], ["pause"], ["close"]],
    ]
    return site(clients=[client(asks(request())) for _ in answers], servers={"s1": server(*answers)})


@scenario
def forwardfor_if_none_in_backend():
    """`if-none` of a backend beside a plain `option forwardfor` of its frontend."""
    asked = request("GET", "/", ["X-Forwarded-For", "10.9.9.9"])
    return site(front=["option forwardfor"], back=["option forwardfor if-none"], clients=[client(asks(asked, request()))])


def tracked_glitches(level):
    """What a client of HTTP/2 does wrong, in the table that is tracked at a level."""
    bad = [["ask", request(target="noslash")], ["read"], ["ask", request(target="noslash")], ["read"]]
    return site(
        speaks="h2",
        front=[
            f"{level} track-sc1 src table @seen@",
            "http-request return status 200 hdr x-count %[sc1_glitch_cnt(@seen@)]",
        ],
        clients=[client([*bad, *asks(request())], "h2"), client(asks(request()), "h2")],
        ask=["show table @seen@"],
    )


def with_table(made, types):
    made["sections"].append(section("backend seen", f"stick-table type ip size 1k expire 5m store {types}"))
    return made


@scenario
def glitches_tracked_at_connections():
    """Glitches of a connection that is tracked by `tcp-request connection`."""
    return with_table(tracked_glitches("tcp-request connection"), "glitch_cnt,glitch_rate(10m),conn_cnt,http_req_cnt")


@scenario
def glitches_tracked_at_sessions():
    """Glitches of a connection that is tracked by `tcp-request session`."""
    return with_table(tracked_glitches("tcp-request session"), "glitch_cnt,glitch_rate(10m),conn_cnt,http_req_cnt")


@scenario
def glitches_tracked_at_requests():
    """Glitches of a connection that is tracked by `http-request`."""
    return with_table(tracked_glitches("http-request"), "glitch_cnt,glitch_rate(10m),conn_cnt,http_req_cnt")


@scenario
def directories_end_at_question_marks():
    """Words of `-m dir`."""
    targets = ("/admin?x", "/admin/x", "/x?admin", "/adminx", "/a/admin", "/?admin/b", "/admin;x")
    front = [
        "http-request return status 200 hdr x-url yes if { url_dir admin }",
        "http-request return status 200 hdr x-two yes if { url_dir admin/x admin?x }",
        "http-request return status 200 hdr x-none yes",
    ]
    return site(front=front, clients=[client(asks(*[request(target=target) for target in targets]))])


def without_room(rule):
    answer = ok("ok", ["X-Long", "v" * 8000])
    return site(base=["log-format %ST-%tsc"], front=rule, clients=[client(asks(request()))], servers={"s1": server(answer)})


@scenario
def after_response_without_room():
    """`http-after-response` that finds no room."""
    return without_room(["http-after-response set-header x-policy %[res.hdr(x-long)]%[res.hdr(x-long)]"])


@scenario
def response_rewrite_without_room():
    """`http-response` that finds no room."""
    return without_room(["http-response set-header x-policy %[res.hdr(x-long)]%[res.hdr(x-long)]"])


@scenario
def request_rewrite_without_room():
    """`http-request` that finds no room."""
    asked = request("GET", "/", ["X-Long", "v" * 8000])
    front = ["http-request set-header x-policy %[req.hdr(x-long)]%[req.hdr(x-long)]"]
    return site(base=["log-format %ST-%tsc"], front=front, clients=[client(asks(asked))])


def used_up(speaks, retry_on, end):
    """A request on a kept server connection all of whose tries fail."""
    base = ["retries 2", *([f"retry-on {retry_on}"] if retry_on else [])]
    answers = [ok(), [["body"], end]]
    return site(
        speaks=speaks,
        base=base,
        clients=[client(asks(request(), request(target="/dies"), request(target="/dies")), speaks)],
        servers={"s1": server(*answers)},
    )


@scenario
def retries_used_up():
    """Retries that are used up on a kept connection: the client gets an answer, the log a line."""
    return used_up("h1", "empty-response", ["close"])


@scenario
def retries_used_up_h2():
    """Retries that are used up on a kept connection, of a client of HTTP/2."""
    return used_up("h2", "empty-response", ["close"])


@scenario
def retries_used_up_by_resets():
    """Retries that are used up by resets."""
    return used_up("h1", "all-retryable-errors", ["reset"])


@scenario
def kept_connection_dies_without_retries():
    """A PUT whose kept connection dies is not repeated, nor is anything under `retry-on none`."""
    made = used_up("h1", "none", ["close"])
    made["clients"].append(client(asks(request("PUT", "/", body="x"), request("PUT", "/", body="y"))))
    return made


def websocket(mode, speaks="h1"):
    asked = extended("websocket", *WEBSOCKET[2:]) if speaks == "h2" else request("GET", "/ws", *WEBSOCKET)
    return site(
        speaks=speaks, base=[mode] if mode else [], clients=[client(tunnel(asked), speaks)], servers={"s1": server(echo())}
    )


@scenario
def websocket_and_server_close():
    """The `Connection` field of an upgrade under `option http-server-close`."""
    return websocket("option http-server-close")


@scenario
def websocket_and_close():
    """The `Connection` field of an upgrade under `option httpclose`."""
    return websocket("option httpclose")


@scenario
def websocket_and_keep_alive():
    """The `Connection` field of an upgrade."""
    return websocket("")


@scenario
def websocket_and_server_close_h2():
    """The `Connection` field of an upgrade that comes over HTTP/2."""
    return websocket("option http-server-close", "h2")


@scenario
def websocket_with_a_wrong_key():
    """A server of HTTP/1 that answers an extended CONNECT with a wrong accept key."""
    wrong = echo(101, [["Connection", "Upgrade"], ["Upgrade", "websocket"], ["Sec-WebSocket-Accept", "bm8="]])
    return websocket("", "h2") | {"servers": {"s1": server(wrong)}}


@scenario
def websocket_over_h2():
    """An upgrade to a server of HTTP/2 that takes extended CONNECT, for websocket and for others."""
    plan = server([["head", 200, [], "length:"], ["data", "back"]], speaks="h2", connect_protocol=True)
    other = request("GET", "/ws", ["Connection", "Upgrade"], ["Upgrade", "myproto"])
    clients = [client(tunnel(request("GET", "/ws", *WEBSOCKET))), client(tunnel(other))]
    return site(clients=clients, servers={"s1": plan}, server_words=" proto h2")


@scenario
def retried_uploads_h2():
    """A POST of HTTP/2 whose body comes with its head is repeated as one of HTTP/1 is."""
    answers = [[["body"], ["answer", 503, [], "no"]], ok()]
    base = ["retries 1", "retry-on 503"]
    return site(
        speaks="h2", base=base, clients=[client(asks(request("POST", "/", body="x" * 100)), "h2")], servers={"s1": server(*answers)}
    )


@scenario
def retried_uploads_h1():
    """A POST of HTTP/1 that is repeated."""
    return retried_uploads_h2() | {
        "clients": [client(asks(request("POST", "/", body="x" * 100)))],
        "sections": site()["sections"],
    }


def reuse(word):
    one = asks(*[request(target=f"/{number}") for number in range(4)])
    return site(speaks="h2", base=[f"http-reuse {word}"], clients=[client(one, "h2"), client(one, "h2")])


@scenario
def reuse_never_h2():
    """`http-reuse never` with streams of HTTP/2."""
    return reuse("never")


@scenario
def reuse_safe_h2():
    """`http-reuse safe` with streams of HTTP/2."""
    return reuse("safe")


@scenario
def reuse_aggressive_h2():
    """`http-reuse aggressive` with streams of HTTP/2."""
    return reuse("aggressive")


@scenario
def version_of_long_lines():
    """`capture.req.ver` and `%HV` of a request line that is longer than the log keeps."""
    front = ["http-request set-header x-ver <%[capture.req.ver]>", "http-response set-header x-ver <%[capture.req.ver]>"]
    asked = [request(target="/" + "u" * length) for length in (900, 1010, 1018, 1019, 1020, 1100, 2000)]
    return site(base=["log-format <%[capture.req.ver]><%HV>"], front=front, clients=[client(asks(*asked))])


@scenario
def observed_answers_that_are_retried():
    """`observe layer7` counts answers that are retried, too."""
    words = " check inter 60s observe layer7 error-limit 2 on-error mark-down"
    answers = [[["body"], ["answer", 503, [], "no"]]]
    made = site(
        base=["retries 3", "retry-on 503"], clients=[client(asks(request(), request()))], servers={"s1": server(*answers)}
    )
    made["sections"][1]["lines"] = [f"server s1 @server:s1@{words}"]
    return made


@scenario
def bytes_of_retried_requests():
    """Bodies of requests that are repeated, in counters and log lines."""
    answers = [[["body"], ["answer", 503, [], "n" * 5000]], [["body"], ["answer", 503, [], "n" * 5000]], ok("y" * 3000)]
    base = ["retries 2", "retry-on 503", "log-format %U-%B"]
    asked = request("POST", "/", body="x" * 4000)
    return site(base=base, clients=[client(asks(asked))], servers={"s1": server(*answers)})


@scenario
def bytes_of_pages_after_a_server_was_chosen():
    """Pages of the proxy after a server was chosen count for backend and server."""
    page = "http-response return status 200 content-type text/plain string " + "p" * 4000
    return site(back=[page], clients=[client(asks(request()))])


@scenario
def unread_bytes_when_a_response_is_cut():
    """A response is cut while its client has sent what nobody read: the client sees an end, not a reset."""
    answers = [["head", 200, [], "chunked"], ["data", "part"]]
    steps = [["head", request("GET", "/")], ["interim"], ["send", "what nobody reads"], ["stall"]]
    return site(clients=[client(steps)], servers={"s1": server(answers)})


@scenario
def heads_that_come_slowly():
    """Heads that take longer than `timeout client` in all, or than `timeout http-request`."""
    slow = [["send", "GET / HT"], ["wait", "nothing"], ["send", "TP/1.1\r\nHo"], ["wait", "nothing"], ["send", "st: a\r\n\r\n"]]
    late = [["wait", "nothing"], ["send", "GET"], ["stall"]]
    made = site(front=["timeout http-request 500ms"], clients=[client(slow + [["read"]], to="web"), client(late, to="web")])
    made["sections"].append(section("listen other", "bind @bind:other@", "server s1 @server:s1@"))
    made["clients"] += [client(slow + [["read"]], to="other"), client(late, to="other")]
    return made


@scenario
def servers_that_go_away_and_answer():
    """GOAWAY names an earlier stream than the one that is being answered."""
    answers = [["body"], ["head", 200, [], "chunked"], ["data", "a"], ["pause"], ["goaway", 0, 0], ["pause"], ["data", "b"], ["end"]]
    plan = server(answers, speaks="h2")
    clients = [client(asks(request(), request())), client(asks(request()))]
    return site(clients=clients, servers={"s1": plan}, server_words=" proto h2")


@scenario
def streams_without_an_answer():
    """Streams that end without an answer are refused."""
    front = ["errorfile 403 /dev/null", "errorfile 503 /dev/null", "http-request deny if { path /denied }"]
    cut = [["head", request("POST", "/", ["Content-Length", "10"])], ["body", "01234"], ["pause"], ["half"], ["read"]]
    made = site(speaks="h2", front=[*front, "use_backend @none@ if { path /none }"], servers={"s1": server([["stall"]])})
    made["sections"].append(section("backend none"))
    made["clients"] = [client(asks(request(target=path)), "h2") for path in ("/denied", "/none")] + [client(cut, "h2")]
    return made


@scenario
def accept_keys_across_versions():
    """Keys of WebSockets and answers to them, with and without HTTP/2 on either side."""
    asked = request("GET", "/ws", *WEBSOCKET)
    wrong = ["Sec-WebSocket-Accept", "bm8="]
    plan = server([["head", 200, [], "length:"]], [["head", 200, [wrong], "length:"]], speaks="h2", connect_protocol=True)
    steps = [["head", asked], ["interim"], ["close"]]
    return site(clients=[client(steps), client(steps)], servers={"s1": plan}, server_words=" proto h2")


@scenario
def streams_that_end_with_their_head():
    """A response of HTTP/2 that ends with its head, to clients of each version."""
    plan = server([["body"], ["head", 200, [], "none"]], speaks="h2")
    made = site(clients=[client(asks(request("POST", "/", body="x"), request()))], servers={"s1": plan}, server_words=" proto h2")
    made["sections"].append(section("listen second", "bind @bind:second@ proto h2", "server s1 @server:s1@ proto h2"))
    made["clients"].append(client(asks(request(), request("HEAD", "/")), "h2", to="second"))
    return made


@scenario
def rejected_connections():
    """Connections that rules refuse, before and after their handshakes."""
    made = site(front=["tcp-request connection reject"], clients=[client(asks(request())), client([["stall"]])])
    made["sections"].append(section("listen other", "bind @bind:other@", "tcp-request session reject", "server s1 @server:s1@"))
    made["clients"] += [client(asks(request()), to="other"), client([["stall"]], to="other")]
    return made


@scenario
def silent_drops():
    """`silent-drop` of requests and responses: no client hears of the end."""
    made = {"defaults": defaults(), "sections": [], "servers": {"s1": server()}, "clients": []}
    for number, rule in enumerate(("http-request", "http-response")):
        for speaks in ("h1", "h2"):
            name = f"{speaks}{number}"
            lines = [f"bind @bind:{name}@" + (" proto h2" if speaks == "h2" else ""), f"{rule} silent-drop", "server s1 @server:s1@"]
            made["sections"].append(section(f"listen {name}", *lines))
            made["clients"].append(client([["ask", request()], ["pause"]], speaks, to=name))
    return made


@scenario
def pages_without_a_server():
    """Uploads to a backend without a server."""
    made = site(clients=[client([["head", request("POST", "/", ["Content-Length", "10"])], ["pause"], ["body", "01234"]])])
    made["clients"] += [client(asks(request("POST", "/", body="0123456789"), request()))]
    made["sections"][1]["lines"] = []
    return made


@scenario
def intercepted_requests():
    """Statistics, redirects and returned pages, in a listener."""
    lines = ["bind @bind:web@", "http-request redirect location /x if { path /r }", "stats enable", "stats uri /s"]
    more = ["http-request return status 200 if { path /p }", "server s1 @server:s1@"]
    return {
        "defaults": defaults(),
        "sections": [section("listen web", *lines, *more)],
        "servers": {"s1": server()},
        "clients": [client(asks(request(target="/r"), request(target="/p"), request(target="/a")))],
    }


@scenario
def upgrades_in_front_of_rules():
    """What a server gets of an upgrade that a rule denies."""
    front = ["http-request deny if { path_beg /ws }"]
    return site(speaks="h2", front=front, clients=[client(tunnel(extended(word)), "h2") for word in ("h2c", "websocket")])


@scenario
def options_forwarding_both_sides():
    """All options about the client's address, in a frontend and in its backend."""
    front = ["option forwardfor except 10.0.0.0/8", "option originalto", "option forwarded"]
    back = ["option forwardfor header X-Client if-none", "option originalto header X-Dst", "option forwarded proto for"]
    asked = request("GET", "/", ["X-Client", "10.9.9.9"], ["X-Forwarded-For", "10.9.9.9"], ["Forwarded", "for=10.9.9.9"])
    return site(front=front, back=back, clients=[client(asks(asked, request()))])


@scenario
def levels_of_the_runtime_api():
    """What a socket of each level may do with tables, servers and maps."""
    commands = (
        *("show table @seen@", "show table @seen@ key 1.2.3.4", "set table @seen@ key 1.2.3.5 data.gpc0 1"),
        *("clear table @seen@ key 1.2.3.5", "clear table @seen@", "disable server @app@/s1", "get weight @app@/s1"),
        *("set weight @app@/s1 50%", "set server @app@/s1 state drain", "show servers state @app@"),
        *("set maxconn frontend @web@ 10", "clear counters", "shutdown sessions server @app@/s1"),
    )
    made = with_table(site(), "gpc0,conn_cnt")
    fill = client([["command", "set table @seen@ key 1.2.3.4 data.gpc0 2"]], "cli", "admin")
    made["clients"] = [fill]
    for level in ("user", "operator"):
        made["clients"].append(client([["command", command] for command in commands], "cli", level))
    return made | {"alone": True}
