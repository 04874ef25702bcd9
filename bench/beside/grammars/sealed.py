"""TLS: clients and servers that agree or do not, resume, and end with a closing alert or without one, in each phase."""

from grammars.common import asks, client, defaults, ok, request, section
from grammars.exchanges import REUSE, an_ask

LOG = (
    'log-format "%HM %ST %tsc b=%b s=%s sni=%[ssl_fc_sni] v=%sslv alpn=%[ssl_fc_alpn] again=%[ssl_fc_is_resumed] '
    'cn=%{+Q}[ssl_c_s_dn(cn)] used=%[ssl_c_used] verified=%[ssl_c_verify] bc=%[ssl_bc],%[ssl_bc_alpn]"'
)
CERTIFICATES = (
    *("crt @cert:a.pem@", "crt @cert:a.pem@", "crt @cert:a.pem@ crt @cert:b.pem@", "crt @cert:b.pem@ crt @cert:a.pem@ crt @cert:wild.pem@"),
    *("crt @cert:a.pem@ crt @cert:b.pem@ strict-sni", "default-crt @cert:b.pem@ crt @cert:a.pem@", "crt @cert:wild.pem@ crt @cert:wild.pem@"),
)
BIND_ALPN = ("", "", " alpn h2,http/1.1", " alpn h2,http/1.1", " alpn http/1.1", " alpn h2", " no-alpn", " alpn http/1.1,h2")
BIND_WORDS = (
    *("", "", "", " ssl-min-ver TLSv1.3", " ssl-max-ver TLSv1.2", " no-tls-tickets", " prefer-client-ciphers", " no-tlsv13", " force-tlsv13"),
    *(" verify optional ca-file @cert:ca.pem@", " verify required ca-file @cert:ca.pem@", " verify none ca-file @cert:ca.pem@"),
    *(" verify optional ca-file @cert:ca.pem@ crt-ignore-err all ca-ignore-err all", " verify required ca-file @cert:ca.pem@ no-ca-names"),
)
NAMES = (None, "a.example", "a.example", "www.a.example", "b.example", "x.w.example", "x.y.w.example", "none.example", "A.Example", "w.example")
CLIENT_ALPN = (None, None, ["h2", "http/1.1"], ["h2", "http/1.1"], ["http/1.1"], ["h2"], ["http/1.0"], ["foo"], ["http/1.1", "h2"])
VERIFY = (
    *(" verify none", " verify none", " verify none", " verify required ca-file @cert:ca.pem@", " ca-file @cert:ca.pem@"),
    *(" verify required ca-file @cert:ca.pem@ verifyhost s.example", " verify required ca-file @cert:ca.pem@ verifyhost none.example"),
    *(" verify required ca-file @cert:other.pem@", " verify required ca-file @cert:ca.pem@ sni str(s.example)"),
    " verify required ca-file @cert:ca.pem@ sni req.hdr(host)",
)
SERVER_WORDS = (
    *("", "", "", " sni str(s.example)", " sni req.hdr(host)", " no-ssl-reuse", " ssl-max-ver TLSv1.2", " ssl-min-ver TLSv1.3"),
    *(" crt @cert:client.pem@", " crt @cert:stranger.pem@", " no-tls-tickets", " sni ssl_fc_sni", " check-sni s.example"),
)
SERVER_ALPN = ("", "", "", " alpn h2,http/1.1", " alpn h2", " alpn http/1.1")
ENDS = (["close"], ["cut"], ["fin"], ["notify"], ["half"], ["reset"], ["stall"])


def a_server(random, speaks):
    plan = {"certificate": random.choice(("server.pem", "server.pem", "server.pem", "foreign.pem", "a.pem"))}
    if alpn := random.choice((None, None, ["h2", "http/1.1"], ["http/1.1"], ["h2"])):
        plan["alpn"] = alpn
    if random.random() < 0.2:
        plan["version"] = random.choice(("1.2", "1.3"))
    if random.random() < 0.2:
        plan["verify"] = random.choice(("optional", "required"))
    answers = [an_answer(random, speaks) for _ in range(random.choice((1, 2, 2)))]
    made = {"speaks": speaks, "answers": answers, "tls": plan}
    if random.random() < 0.1:
        made["connections"] = [[list(random.choice(ENDS))]]
    return made


def an_answer(random, speaks):
    """An answer whose end, or the end of a part of it, is one of each kind."""
    if speaks == "tcp":
        return [*random.choice(([], [["send", "answer"]])), list(random.choice(ENDS))]
    end = list(random.choice(ENDS[:-1]))
    way = random.choice(("plain", "plain", "plain", "after", "body", "close", "none"))
    if way == "plain":
        return ok("x" * random.choice((0, 2, 20000)))
    if way == "after":
        return [*ok("ok"), end]
    if way == "none":
        return [["body"], end]
    framing = "close" if way == "close" else random.choice(("chunked", "length:30"))
    return [["body"], ["head", 200, [], framing], ["data", "part"], ["pause"], end]


def a_plan(random):
    """What a client offers; half of the clients come again."""
    plan = {}
    if (name := random.choice(NAMES)) is not None:
        plan["sni"] = name
    if (alpn := random.choice(CLIENT_ALPN)) is not None:
        plan["alpn"] = alpn
    if random.random() < 0.3:
        plan["version"] = random.choice(("1.2", "1.3"))
    if random.random() < 0.25:
        plan["certificate"] = random.choice(("client.pem", "stranger.pem"))
    return plan


def steps_of(random, speaks):
    end = [list(random.choice(ENDS))]
    if speaks == "tcp":
        return random.choice(([["send", "hello"], ["bytes", 6]], [["send", "hello"], ["pause"]], [])) + end
    way = random.choice(("plain", "plain", "plain", "after", "nothing", "head", "body", "answer", "any"))
    asked = request("GET", random.choice(("/", "/a")))
    upload = request("POST", "/up", ["Content-Length", "10"])
    return {
        "plain": asks(asked, asked),
        "after": [*asks(asked), *end],
        "nothing": end,
        "head": [["send", "GET / HTTP/1.1\r\nHo"], *end],
        "body": [["head", upload], ["body", "01234"], ["wait", "request 1"], *end],
        "answer": [["ask", asked], ["interim"], *end],
        "any": an_ask(random, "h1", 1),
    }[way]


def generate(random):
    speaks = random.choice(("h1", "h1", "h1", "h1", "tcp"))
    bind = f"bind @bind:web@ ssl {random.choice(CERTIFICATES)}{random.choice(BIND_ALPN)}{random.choice(BIND_WORDS)}"
    base = [] if speaks == "tcp" else [f"http-reuse {random.choice(REUSE)}"] * random.choice((0, 0, 1))
    plain_server = random.random() < 0.4
    if plain_server:
        server, words = {"speaks": speaks, "answers": [an_answer(random, speaks)]}, ""
    else:
        server = a_server(random, speaks)
        words = " ssl" + random.choice(VERIFY) + random.choice(SERVER_WORDS) + random.choice(SERVER_ALPN)
    clients = []
    for _ in range(random.choice((1, 1, 2))):
        plan = a_plan(random)
        for number in range(random.choice((1, 1, 2))):
            again = {"resume": True} if number else {}
            clients.append(client(steps_of(random, speaks), speaks) | {"tls": plan | again})
    if random.random() < 0.05:
        clients.append(client([["send", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"], ["stall"]], "tcp"))
    log = LOG if speaks != "tcp" else LOG.replace("%HM %ST %tsc", "%ts")
    return {
        "defaults": defaults(*base, "retries 1", log=log, mode="tcp" if speaks == "tcp" else "http"),
        "sections": [section("frontend web", bind, "default_backend @app@"), section("backend app", f"server s1 @server:s1@{words}")],
        "servers": {"s1": server},
        "clients": clients,
    }
