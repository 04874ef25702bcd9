"""Exchanges: clients and servers of HTTP/1 and HTTP/2 that do each thing in each phase."""

from grammars.common import HOST, bind, client, defaults, ok, request, section

METHODS = ("GET", "GET", "GET", "POST", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "TRACE")
STATUSES = (200, 200, 200, 201, 204, 206, 302, 304, 400, 401, 403, 404, 408, 421, 425, 429, 500, 501, 502, 503, 504)
TARGETS = ("/", "/a", "/a?b=c", "/a/../b", "//a", "*", "http://www.a.example/x", "/%41?x=%20", "/a;b")
RETRY_ON = (
    *("none", "conn-failure", "empty-response", "junk-response", "response-timeout", "0rtt-rejected"),
    *("all-retryable-errors", "503 500", "404", "conn-failure empty-response"),
)
REUSE = ("never", "safe", "aggressive", "always")
# Options by the sections that take them, besides `defaults`: elsewhere 3.2 refuses the file.
FRONT_OPTIONS = (
    *("option dontlognull", "option dontlog-normal", "option logasap", "option log-separate-errors"),
    *("option http-use-proxy-header", "option http-ignore-probes", "option idle-close-on-response"),
    "option accept-unsafe-violations-in-http-request",
)
BACK_OPTIONS = (
    *("option abortonclose", "option redispatch", "option http-pretend-keepalive", "option prefer-last-server"),
    *("option accept-unsafe-violations-in-http-response", "option persist", "option redispatch 1"),
)
BOTH_OPTIONS = (
    *("option http-server-close", "option httpclose", "option http-keep-alive", "option http-buffer-request"),
    *("option http-no-delay", "option forwardfor", "option forwardfor if-none", "option forwarded", "option originalto"),
    *("no option http-server-close", "option nolinger", "option independent-streams"),
)


def an_option(random, base, front, back):
    """Writes an option where it may stand."""
    at, options = random.choice(
        ((base, FRONT_OPTIONS), (base, BACK_OPTIONS), (base, BOTH_OPTIONS), (front, FRONT_OPTIONS), (back, BACK_OPTIONS))
        + ((front, BOTH_OPTIONS), (back, BOTH_OPTIONS))
    )
    at.append(random.choice(options))


REQUEST_FIELDS = (
    *(("Connection", "close"), ("Connection", "keep-alive"), ("Connection", "Upgrade, X-Hop"), ("X-Hop", "1")),
    *(("TE", "trailers"), ("TE", "gzip"), ("te", "trailers, deflate"), ("Keep-Alive", "timeout=5"), ("Upgrade", "myproto")),
    *(("X-Blank", "  a b  "), ("X-Blank", "a\t"), ("X-Empty", ""), ("Cookie", "a=b; c=d"), ("Cookie", ""), ("Expect", "100-continue")),
    *(("X-Forwarded-For", "10.1.2.3"), ("Forwarded", "for=10.1.2.3"), ("Proxy-Connection", "close"), ("Accept", "a, b")),
    *(("X-High", "caf\xe9"), ("Accept", "c"), ("User-Agent", "t"), ("Range", "bytes=0-1"), ("HTTP2-Settings", "AAMAAABkAAQAAP__")),
)
RESPONSE_FIELDS = (
    *(("Connection", "close"), ("Connection", "keep-alive"), ("Connection", "X-Hop"), ("X-Hop", "1"), ("Keep-Alive", "timeout=5")),
    *(("X-Blank", "  a b  "), ("X-Empty", ""), ("Set-Cookie", "s=1; path=/"), ("Set-Cookie", "t=2"), ("Upgrade", "h2c")),
    *(("Cache-Control", "no-cache"), ("Trailer", "X-T"), ("Server", "x"), ("Vary", "Accept"), ("X-High", "caf\xe9")),
    *(("TE", "trailers"), ("Proxy-Connection", "close"), ("WWW-Authenticate", "Basic realm=x"), ("Location", "/b")),
)
ENDS = ("close", "reset", "half", "stall")
CODES = (0, 1, 2, 7, 8, 11, 13)


def some(random, choices, most):
    return [list(random.choice(choices)) for _ in range(max(0, random.randint(-most, most)))]


def body_of(random):
    return random.choice(("", "x", "hello world", "0123456789" * 30, "b" * 20000 if random.random() < 0.1 else "yy"))


def generate(random):
    speaks = random.choice(("h1", "h1", "h2"))
    server_speaks = random.choice(("h1", "h1", "h1", "h2"))
    names = ["s1"] if random.random() < 0.8 else ["s1", "s2"]
    servers = {name: a_server(random, server_speaks) for name in names}
    if random.random() < 0.05:
        servers["s1"]["refuses"] = True
    words = " proto h2" if server_speaks == "h2" else ""
    base, back, front = [], [], []
    if random.random() < 0.5:
        base.append(f"retries {random.randint(0, 2)}")
    if random.random() < 0.5:
        back.append(f"retry-on {random.choice(RETRY_ON)}")
    if random.random() < 0.4:
        base.append(f"http-reuse {random.choice(REUSE)}")
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        an_option(random, base, front, back)
    clients = [client(steps_of(random, speaks), speaks) for _ in range(random.choice((1, 1, 1, 2)))]
    return {
        "defaults": defaults(*base),
        "sections": [
            section("frontend web", bind(speaks), "default_backend @app@", *front),
            section("backend app", *back, *[f"server {name} @server:{name}@{words}" for name in names]),
        ],
        "servers": servers,
        "clients": clients,
    }


def a_server(random, speaks):
    answers = [an_answer(random, speaks) for _ in range(random.choice((1, 2, 3)))]
    made = {"speaks": speaks, "answers": answers}
    if random.random() < 0.08:
        made["connections"] = [[[random.choice(("close", "reset", "stall"))]] for _ in range(random.choice((1, 2)))]
    if speaks == "h2" and random.random() < 0.4:
        made["connect_protocol"] = True
    return made


def an_answer(random, speaks):
    kinds = (plain, plain, plain, streamed, early, twice, partly, partly, never, interim, switching, refusing)
    return random.choice(kinds)(random, speaks)


def plain(random, speaks):
    return ok(body_of(random), *some(random, RESPONSE_FIELDS, 2), status=random.choice(STATUSES))


def streamed(random, speaks):
    framing = random.choice(("chunked", "close", "chunked"))
    steps = [["body"], ["head", random.choice((200, 404)), some(random, RESPONSE_FIELDS, 2), framing]]
    steps += [["data", body_of(random)] for _ in range(random.randint(0, 2))]
    return [*steps, ["end"], *([["close"]] if framing == "close" and speaks == "h1" else [])]


def early(random, speaks):
    """An answer before the body was read, of which some may have been."""
    begun = random.choice(([], [["some", 1]]))
    answer = ["answer", random.choice(STATUSES), some(random, RESPONSE_FIELDS, 1), body_of(random)]
    return [*begun, answer, *random.choice(([], [], [["close"]], [["pause"], ["reset"]], [["half"]]))]


def twice(random, speaks):
    more = ["answer", 200, [], "second"]
    return [*plain(random, speaks), *random.choice(([], [["pause"]])), more]


def partly(random, speaks):
    """A part of an answer, and then an end of each kind."""
    end = ending(random, speaks)
    if speaks == "h1" and random.random() < 0.4:
        piece = random.choice(("H", "HTTP/1.1 200 OK\r\nA: b", "HTTP/1.1 ", "HTTP/1.1 200 OK\r\n", "SSH-2.0-x\r\n", "\r\n\r\n", "HTTP/1.1 2 x\r\n\r\n"))
        return [["body"], ["send", piece], end]
    framing = random.choice(("length:30", "chunked", "close"))
    steps = [["body"], ["head", 200, some(random, RESPONSE_FIELDS, 1), framing]]
    return [*steps, *random.choice(([], [["data", "part"]])), ["pause"], end]


def never(random, speaks):
    return [*random.choice(([], [["body"]], [["some", 1]])), ending(random, speaks)]


def ending(random, speaks):
    if speaks == "h2" and random.random() < 0.5:
        return random.choice((["cancel", random.choice(CODES)], ["goaway", random.choice((0, 1, 100)), random.choice(CODES)]))
    return [random.choice(ENDS)]


def interim(random, speaks):
    statuses = random.choices((100, 102, 103, 199), k=random.choice((1, 1, 2)))
    steps = [["interim", status, some(random, RESPONSE_FIELDS, 2)] for status in statuses]
    return [*steps, *random.choice(([], [["close"]], [["pause"]])), *plain(random, speaks)]


def switching(random, speaks):
    """A tunnel, whether it was asked for or not."""
    protocol = random.choice(("websocket", "myproto", "h2c", ""))
    fields = [["Connection", "Upgrade"], ["Upgrade", protocol]] if protocol else []
    status = 101 if speaks == "h1" and random.random() < 0.8 else 200
    more = random.choice(([], [["send", "tunnel"]], [["bytes", 3], ["send", "back"]]))
    return [["head", status, fields, "none"], *(more if speaks == "h1" else []), *random.choice(([], [["close"]], [["half"]]))]


def refusing(random, speaks):
    return [[random.choice(("close", "reset"))]]


def steps_of(random, speaks):
    steps = []
    for number in range(random.choice((1, 1, 2, 2, 3))):
        steps += an_ask(random, speaks, number + 1)
        if steps[-1][0] in ("close", "reset", "stall"):
            break
    return steps


def a_request(random, speaks):
    method = random.choice(METHODS)
    fields = some(random, REQUEST_FIELDS, 3)
    target = random.choice(TARGETS) if random.random() < 0.3 else "/a"
    body = body_of(random) if method in ("POST", "PUT", "PATCH") or random.random() < 0.05 else None
    version = "1.0" if random.random() < 0.07 else "1.1"
    # In 1.0 it is refused here: the turns of servers and the answers behind it would differ all through a scenario.
    if body is not None and version == "1.1" and random.random() < 0.3:
        fields.append(["Transfer-Encoding", "chunked"])
    return request(method, target, *fields, body=body, version=version)


def an_ask(random, speaks, number):
    kinds = (whole, whole, whole, whole, in_pieces, abandoned, cut_upload, upgrade, connect, pipelined)
    return random.choice(kinds)(random, speaks, number)


def whole(random, speaks, number):
    return [["ask", a_request(random, speaks)], ["read"]]


def pipelined(random, speaks, number):
    return [["ask", a_request(random, speaks)], ["ask", a_request(random, speaks)], ["read"], ["read"]]


def upload(random, framing=None):
    framing = framing or random.choice(("length", "chunked"))
    fields = some(random, REQUEST_FIELDS, 1)
    fields.append(["Content-Length", "10"] if framing == "length" else ["Transfer-Encoding", "chunked"])
    return request(random.choice(("POST", "PUT")), "/up", *fields)


def in_pieces(random, speaks, number):
    between = random.choice(([["pause"]], [["wait", f"request {number}"]], [["interim"]]))
    return [["head", upload(random)], *between, ["body", "01234"], *between, ["body", "56789"], ["end"], ["read"]]


def cut_upload(random, speaks, number):
    begun = [["head", upload(random)], *random.choice(([], [["body", "01234"]]))]
    wait = random.choice(([["pause"]], [["wait", f"request {number}"]]))
    end = random.choice(([["close"]], [["reset"]], [["half"], ["read"]], [["stall"]], [["cancel"], ["read"]], [["read"]]))
    return [*begun, *wait, *end]


def abandoned(random, speaks, number):
    """A request whose client goes before the answer, or within it."""
    wait = random.choice(([], [["wait", f"request {number}"]], [["interim"]]))
    end = random.choice(([["close"]], [["reset"]], [["half"], ["read"]], [["cancel"]]))
    return [["ask", a_request(random, speaks)], *wait, ["pause"], *end]


def upgrade(random, speaks, number):
    protocol = random.choice(("websocket", "websocket", "myproto", "h2c", "h2", "H2C"))
    more = [["Sec-WebSocket-Version", "13"], ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="]] if protocol == "websocket" else []
    if speaks == "h2":
        asked = request("CONNECT", "/ws", *more, protocol=protocol)
    else:
        asked = request("GET", "/ws", ["Connection", random.choice(("Upgrade", "keep-alive, Upgrade"))], ["Upgrade", protocol], *more)
    return [["head", asked], ["interim"], ["body", "hello"], ["bytes", 4], *random.choice(([["close"]], [["half"]], [["stall"]]))]


def connect(random, speaks, number):
    asked = request("CONNECT", f"{HOST}:443")
    return [["head", asked], ["interim"], ["body", "hello"], ["bytes", 4], *random.choice(([["close"]], [["half"]], [["stall"]]))]
