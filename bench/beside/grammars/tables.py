"""Tables: each type of data, counted at each level that can track, in HTTP/1, HTTP/2 and TCP."""

from grammars.common import asks, bind, client, defaults, ok, request, section, server

TYPES = (
    *("conn_cnt", "conn_cur", "sess_cnt", "http_req_cnt", "http_err_cnt", "http_fail_cnt", "bytes_in_cnt", "bytes_out_cnt", "gpc0"),
    *("gpc1", "gpt0", "glitch_cnt", "server_id", "conn_rate(1h)", "sess_rate(1h)", "http_req_rate(1h)", "http_err_rate(1h)"),
    *("http_fail_rate(1h)", "gpc0_rate(1h)", "glitch_rate(1h)", "gpt(2)", "gpc(2)", "gpc_rate(2,1h)", "server_key"),
)
LEVELS = (
    *("tcp-request connection", "tcp-request session", "tcp-request content", "http-request", "http-response", "http-after-response"),
)
KEYS = {"ip": "src", "integer": "src_port,mul(0)", "string len 20": "hdr(x-k)", "ipv6": "src", "binary len 4": "hdr(x-k)"}
EARLY = ("tcp-request connection", "tcp-request session")
HTTP_ACTIONS = ("sc-inc-gpc0(0)", "sc-inc-gpc1(0)", "sc-set-gpt0(0) 5", "sc-add-gpc(1,0) 3", "sc-inc-gpc(0,0)", "sc-set-gpt(1,0) int(7)")
FETCHES = (
    *("sc0_conn_cnt", "sc0_http_req_cnt", "sc0_http_err_cnt", "sc0_conn_cur", "sc0_sess_cnt", "sc_glitch_cnt(0)", "sc_get_gpc0(0)"),
    *("sc_get_gpt0(0)", "sc0_tracked", "src_conn_cnt(@seen@)", "src_http_req_cnt(@seen@)", "sc_http_fail_cnt(0)", "sc_key(0)", "sc0_kbytes_in"),
    *("table_cnt(@seen@)", "src,in_table(@seen@)", "src,table_http_req_cnt(@seen@)", "src_updt_conn_cnt(@seen@)", "sc_get_gpc(1,0)"),
)


def generate(random):
    speaks = random.choice(("h1", "h2", "h1", "tcp"))
    kind, key = random.choice(list(KEYS.items())) if random.random() < 0.4 else ("ip", "src")
    types = ",".join(random.sample(TYPES, random.choice((3, 6))))
    front, back = [], []
    for number in range(random.choice((1, 1, 2))):
        level = random.choice(LEVELS[:3] if speaks == "tcp" else LEVELS)
        source = "src" if "hdr" in key and not level.startswith("http-") else key
        if level == "http-after-response":
            continue
        place = back if level.startswith("http-") and random.random() < 0.3 else front
        place.append(f"{level} track-sc{number} {source} table @seen@")
    if speaks != "tcp":
        for _ in range(random.choice((0, 1, 2))):
            word = random.choice(("http-request", "http-response", "http-after-response"))
            random.choice((front, back)).append(f"{word} {random.choice(HTTP_ACTIONS)}")
        for number in range(3):
            front.append(f"http-request set-header x-{number} %[{random.choice(FETCHES)}]")
            if random.random() < 0.3:
                front.append(f"http-request deny if {{ {random.choice(FETCHES)} gt 3 }}")
    made = {
        "defaults": defaults(mode="tcp" if speaks == "tcp" else "http", log="log-format %ts"),
        "sections": [
            section("frontend web", bind(speaks), *front, "default_backend @app@"),
            section("backend app", *back, "server s1 @server:s1@"),
            section("backend seen", f"stick-table type {kind} size 100 expire 1h store {types}"),
        ],
        "ask": ["show table @seen@"],
    }
    if speaks == "tcp":
        made["servers"] = {"s1": {"speaks": "tcp", "answers": [[["send", "answer"]]]}}
        made["clients"] = [client([["send", "hello"], ["bytes", 6]], "tcp") for _ in range(2)]
    else:
        made["servers"] = {"s1": server(*[ok(status=random.choice((200, 200, 404, 500, 503, 401))) for _ in range(3)])}
        made["clients"] = [client(requests_of(random, speaks), speaks) for _ in range(2)]
    return made


def requests_of(random, speaks):
    steps = []
    for _ in range(random.choice((1, 2, 3))):
        target = random.choice(("/", "/", "/b")) if speaks == "h1" else random.choice(("/", "/", "noslash"))
        method = random.choice(("GET", "POST"))
        steps += asks(request(method, target, ["X-K", random.choice("ab")], body="x" * 2000 if method == "POST" else None))
    if speaks == "h1" and random.random() < 0.3:
        steps += [["send", "GARBAGE\r\n\r\n"], ["stall"]]
    return steps
