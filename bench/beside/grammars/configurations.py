"""Configurations: options on both sides, rules of each set, captures, cookies, pages, balance, log formats."""

from grammars.common import HOST, SHORT_LOG, bind, client, defaults, ok, request, section
from grammars.exchanges import RETRY_ON, REUSE, a_request, an_answer

# Options by their variants; the sections besides `defaults` that take them: f, b.
OPTIONS = {
    "forwardfor": (("", "if-none", "except 127.0.0.0/8", "header X-Client", "header X-Client if-none", "except 10.0.0.0/8"), "fb"),
    "originalto": (("", "except 10.0.0.1", "header X-Dst"), "fb"),
    "forwarded": (("", "proto", "for", "proto for", "host", "by", "host by for"), "b"),
    "http-server-close": (("",), "fb"),
    "httpclose": (("",), "fb"),
    "http-keep-alive": (("",), "fb"),
    "http-buffer-request": (("",), "fb"),
    "http-no-delay": (("",), "fb"),
    "independent-streams": (("",), "fb"),
    "http-restrict-req-hdr-names": (("preserve", "delete", "reject"), "fb"),
    "abortonclose": (("",), "b"),
    "http-pretend-keepalive": (("",), "b"),
    "checkcache": (("",), "b"),
    "redispatch": (("", "1", "2"), "b"),
    "prefer-last-server": (("",), "b"),
    "allbackups": (("",), "b"),
    "accept-unsafe-violations-in-http-request": (("",), "f"),
    "accept-unsafe-violations-in-http-response": (("",), "b"),
    "dontlognull": (("",), "f"),
    "dontlog-normal": (("",), "f"),
    "logasap": (("",), "f"),
    "log-separate-errors": (("",), "f"),
    "http-ignore-probes": (("",), "f"),
    "http-use-proxy-header": (("",), "f"),
    "idle-close-on-response": (("",), "f"),
    "disable-h2-upgrade": (("",), "f"),
}
NEGATABLE = ("http-server-close", "httpclose", "http-keep-alive", "http-buffer-request", "dontlognull", "redispatch", "checkcache")
REQUEST_CONDITIONS = (
    *("path /a", "path_beg /a", "method POST", "method GET HEAD", "hdr(x-a) -m found", "hdr_cnt(x-a) gt 1", "src 127.0.0.0/8"),
    *("always_true", "always_false", "url_param(b) -m str c", "req.ver 1.0", "hdr(host) -i www.A.example", "req.body_len gt 0"),
    *("cook(a) b", "req.body -m sub l", "var(txn.v) -m found", "sc0_conn_cnt gt 0", "nbsrv(@app@) eq 1", "path_end .html"),
)
RESPONSE_CONDITIONS = ("status 200", "status 400:499", "res.hdr(x-b) -m found", "method POST", "var(txn.v) -m found", "always_true")
VALUES = ("v", "%[path]", "%[src]", "%[req.hdr(x-a)]", "%[method]-%[req.ver]", '"a b"', "%[var(txn.v)]", "%ci", "%[query]", "%[str(x),upper]")
RESPONSE_VALUES = ("v", "%[status]", "%[res.hdr(x-b)]", "%[var(txn.v)]", '"a  b"', "%[capture.req.uri]", "%[path]", "%[srv_name]", "%[be_name]")
LOG_WORDS = (
    *("%HM", "%HP", "%HPO", "%HQ", "%HU", "%HV", "%ST", "%ts", "%tsc", "%CC", "%CS", "%b", "%f", "%ft", "%s", "%rc", "%hr", "%hs"),
    *("%hrl", "%hsl", "%ac", "%bc", "%sc", "%sq", "%bq", "%{+Q}r", "%r", "%[var(txn.v)]", "%[capture.req.hdr(0)]"),
    *("%[capture.res.hdr(0)]", "%[src]", "%[method]", "%[status]", "%[res.hdr(x-b)]", "%[capture.req.method]", "%[capture.req.ver]"),
    *("%[srv_name]", "%[be_name]", "%[fe_name]", "%ci", "%{+X}ST", "%[txn.status]", "%[fc_http_major]", "%[bc_http_major]"),
    *("%[last_rule_type]", "%[term_events]", "%[last_entity]", "%[waiting_entity]", "%[req.hdrs_bin,length]", "%[txn.conn_retries]"),
    *("%[txn.redispatched]", "%[fc_nb_streams]", "%[bytes_in]", "%[http_first_req]", "%[hdr(host)]"),
)
NAMES = ("X-A", "X-B", "X-C", "Host", "Cookie", "Connection", "Content-Length", "Set-Cookie", "Cache-Control")


def generate(random):
    speaks = random.choice(("h1", "h1", "h1", "h2"))
    if random.random() < 0.12:
        return a_tcp_site(random)
    base, front, back = [], [], []
    for _ in range(random.choice((1, 2, 3))):
        an_option(random, base, front, back)
    for _ in range(random.choice((0, 1, 2, 4))):
        a_rule(random, front, back)
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        a_line(random, base, front, back)
    if random.random() < 0.3:
        base.append(f"http-reuse {random.choice(REUSE)}")
    if random.random() < 0.3:
        base += [f"retries {random.randint(0, 2)}", f"retry-on {random.choice(RETRY_ON)}"]
    servers, lines = some_servers(random)
    log = SHORT_LOG
    if random.random() < 0.4:
        # The last word is known at the end only: HAProxy writes a line as soon as all of it is known.
        log = "log-format " + '"' + " ".join([*random.sample(LOG_WORDS, 5), "%B"]) + '"'
    clients = [client(steps_of(random, speaks), speaks) for _ in range(random.choice((1, 1, 2)))]
    made = {"defaults": defaults(*base, log=log), "servers": servers, "clients": clients}
    if random.random() < 0.2:
        both = [line for line in front if line not in back]
        made["sections"] = [section("listen web", bind(speaks), *[line.replace("@app@", "@web@") for line in [*both, *back, *lines]])]
    else:
        made["sections"] = [
            section("frontend web", bind(speaks), *front, "default_backend @app@"),
            section("backend app", *back, *lines),
        ]
    return made


def an_option(random, base, front, back):
    """One option as it may stand in each section: absent, plain, a variant, or negated."""
    name = random.choice(list(OPTIONS))
    variants, sides = OPTIONS[name]
    places = [base, *([front] if "f" in sides else []), *([back] if "b" in sides else [])]
    for place in places:
        if random.random() < 0.6:
            no = "no " if name in NEGATABLE and random.random() < 0.2 else ""
            variant = "" if no else random.choice(variants)
            place.append(f"{no}option {name} {variant}".rstrip())


def condition(random, choices):
    if random.random() < 0.4:
        return ""
    words = " ".join(f"{random.choice(('', '', '!'))}{{ {random.choice(choices)} }}" for _ in range(random.choice((1, 1, 2))))
    return f" {random.choice(('if', 'if', 'unless'))} {words}"


def a_rule(random, front, back):
    place = random.choice((front, back))
    kind = random.choice(("request", "request", "response", "after-response"))
    if kind == "request":
        place.append(f"http-request {request_action(random)}{condition(random, REQUEST_CONDITIONS)}")
    else:
        action = response_action(random, kind)
        place.append(f"http-{kind} {action}{condition(random, RESPONSE_CONDITIONS)}")


def edit(random, values):
    name, value = random.choice(NAMES), random.choice(values)
    return random.choice(
        (
            *(f"set-header {name} {value}", f"add-header {name} {value}", f"del-header {name}", f"set-var(txn.v) str({name})"),
            *(f"del-header {name.lower()[:3]} -m beg", f"replace-header {name} (.) <\\1>", f"replace-value {name} ([a-z]+) [\\1]"),
        )
    )


def request_action(random):
    return random.choice(
        (
            *(edit(random, VALUES),) * 4,
            *("deny", "deny deny_status 429", "deny status 403 hdr X-D %[path]", "return status 200", "return status 404 string no"),
            *("return status 200 content-type text/plain lf-string %[path] hdr X-R 1", "redirect location /to", "redirect prefix /p"),
            *("redirect scheme https code 301", "redirect location /to drop-query", "redirect prefix /q append-slash", "reject"),
            *("set-path /new", "set-path %[path]x", "replace-path /(.*) /r/\\1", "set-query q=1", "set-uri /u?v", "set-method PATCH"),
            *("replace-uri (.*) \\1z", "set-pathq /p?q", "replace-pathq (.*) \\1?z", "normalize-uri path-merge-slashes"),
            *("normalize-uri path-strip-dot", "normalize-uri query-sort-by-name", "capture req.hdr(x-a) len 10", "set-var(txn.v) path"),
            *("set-var(req.v) src", "track-sc0 src table @app@", "set-log-level silent", "tarpit deny_status 500", "allow", "disable-l7-retry"),
            *("wait-for-body time 100ms", "early-hint Link <%[path]>", "set-src hdr(x-a)", "strict-mode off", "set-timeout server 200ms"),
            *("auth", "auth realm r", "return status 503 errorfiles none", "set-priority-class int(1)", "silent-drop rst-ttl 1"),
            *("set-dst int(1)", "unset-var(txn.v)", "do-log", "pause 20ms", "set-retries 0", "set-nice 0", "cache-use none"),
        )
    )


def response_action(random, kind):
    only = ("deny", "deny deny_status 501", "return status 200 string r", "track-sc0 src table @app@", "cache-store none", "wait-for-body time 100ms")
    return random.choice(
        (
            *(edit(random, RESPONSE_VALUES),) * 4,
            *("set-status 201", "set-status 503 reason Odd", "set-var(txn.v) status", "allow", "strict-mode off", "capture res.hdr(x-b) id 0"),
            *("set-log-level silent", "sc-inc-gpc0(0)", "do-log"),
            *(only if kind == "response" else ()),
        )
    )


def a_line(random, base, front, back):
    """Lines that are no rules."""
    place, line = random.choice(
        (
            *((front, "capture request header X-A len 8"), (front, "capture response header X-B len 8"), (front, "capture cookie a len 5")),
            *((back, "cookie SRV insert"), (back, "cookie SRV insert indirect nocache"), (back, "cookie SRV prefix"), (back, "cookie a rewrite")),
            *((back, "cookie SRV insert postonly"), (back, "cookie SRV insert preserve httponly secure"), (front, "monitor-uri /a")),
            *((base, "http-error status 404 string no"), (base, "http-error status 503 content-type text/plain string sorry")),
            *((base, "errorloc 503 /sorry"), (base, "errorloc303 403 /no"), (base, "error-log-format E-%ST-%ts"), (front, "unique-id-format id-%ci")),
            *((front, "unique-id-header X-Id"), (back, "http-send-name-header X-Server"), (back, "retries 0"), (back, "balance leastconn")),
            *((back, "balance uri"), (back, "balance uri whole"), (back, "balance hdr(x-a)"), (back, "balance url_param b"), (back, "balance source")),
            *((back, "balance first"), (back, "balance static-rr"), (back, "balance roundrobin"), (back, "hash-type consistent")),
            *((back, "use-server s1 if { path_beg /a }"), (front, "use_backend @app@ if { path /a }"), (back, "stick-table type ip size 10 store conn_cnt")),
            *((back, "stick on src"), (back, "stick-table type string size 10"), (back, "stick on hdr(x-a)"), (back, "stick store-response res.hdr(x-b)")),
            *((base, "timeout tarpit 50ms"), (base, "timeout http-request 300ms"), (base, "timeout http-keep-alive 200ms"), (front, "maxconn 50")),
            *((back, "force-persist if { path /a }"), (back, "ignore-persist if { path /a }"), (back, "fullconn 10"), (back, "log-tag x")),
            *((front, "tcp-request content reject if { src 10.0.0.0/8 }"), (front, "tcp-request connection reject if { src 127.0.0.1 }")),
            *((front, "tcp-request inspect-delay 50ms"), (front, "tcp-request content accept if HTTP"), (back, "tcp-response content close if { res.len gt 5 }")),
            *((front, "stats uri /a"), (back, "stats enable"), (front, "filter trace quiet"), (back, "compression algo gzip"), (back, "http-response set-header x y")),
        )
    )
    place.append(line)


def some_servers(random):
    names = [f"s{number + 1}" for number in range(random.choice((1, 1, 2, 3)))]
    servers, lines = {}, []
    for name in names:
        answers = [an_answer(random, "h1") if random.random() < 0.4 else ok(name, ["X-B", "b"]) for _ in range(random.choice((1, 2)))]
        servers[name] = {"speaks": "h1", "answers": answers}
        words = random.choice(("", "", "", " backup", " weight 0", " disabled", f" cookie {name}", " weight 10", " maxconn 3", f" cookie {name}"))
        lines.append(f"server {name} @server:{name}@{words}")
    if random.random() < 0.1:
        servers[names[0]]["refuses"] = True
    return servers, lines


def steps_of(random, speaks):
    steps = []
    for _ in range(random.choice((1, 2, 3))):
        asked = a_request(random, speaks)
        asked["fields"] += [[name, random.choice(("1", "abc", "x y", "10.1.1.1"))] for name in ("X-A",) * random.choice((0, 1, 1, 2))]
        if random.random() < 0.3:
            asked["fields"].append(["Cookie", random.choice(("SRV=s1", "SRV=s2", "SRV=s1~x", "a=s1; SRV=none", "SRV="))])
        steps += [["ask", asked], ["read"]]
    return steps


def a_tcp_site(random):
    """Mode tcp: who speaks first, who ends first."""
    base = random.choice(([], ["option logasap"], ["retries 0"]))
    rules = (
        *("tcp-request content reject if { req.len gt 3 }", "tcp-request inspect-delay 100ms", "tcp-request content accept if { req.len gt 0 }"),
        *("tcp-request connection reject if { src 10.0.0.1 }", "tcp-request session accept", "tcp-response inspect-delay 50ms"),
        *("tcp-response content reject if { res.len gt 4 }", "tcp-request content set-var(sess.a) req.len", "tcp-request content close"),
        *("tcp-response content close", "tcp-request content track-sc0 src table @app@", "tcp-request connection silent-drop if { src 10.0.0.1 }"),
    )
    chosen = random.sample(rules, random.choice((0, 1, 2)))
    front = [rule for rule in chosen if rule.startswith("tcp-request")]
    back = [rule for rule in chosen if rule.startswith("tcp-response")]
    log = 'log-format "%ts f=%f b=%b s=%s rc=%rc U=%U B=%B"'
    talk = random.choice(
        ([["send", "answer"]], [["send", "a"], ["close"]], [["close"]], [["reset"]], [["stall"]], [["half"]], [["send", "abc"], ["half"]])
    )
    steps = random.choice(
        (
            *([["send", "hello"], ["bytes", 1]], [["half"], ["stall"]], [["send", "hello"], ["half"], ["stall"]], [["stall"]]),
            *([["send", "hello"], ["bytes", 1], ["reset"]], [["send", "hi"], ["close"]], [["reset"]], [["send", "hello"], ["stall"]]),
        )
    )
    plan = {"speaks": "tcp", "answers": [talk]}
    if random.random() < 0.3:
        plan["connections"] = [random.choice(([["send", "banner"]], [["close"]], [["reset"]]))]
    return {
        "defaults": defaults(*base, log=log, mode="tcp"),
        "sections": [
            section("frontend web", "bind @bind:web@", *front, "default_backend @app@"),
            section("backend app", "stick-table type ip size 10 store conn_cnt,bytes_in_cnt,bytes_out_cnt", *back, "server s1 @server:s1@"),
        ],
        "servers": {"s1": plan},
        "clients": [client(steps, "tcp")],
        "ask": ["show table @app@"],
    }


__all__ = ["HOST", "generate", "request"]
