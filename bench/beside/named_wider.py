"""Scenarios with names about TLS, the Runtime API in each mode, and crowds."""

from grammars.common import asks, client, defaults, request, section, server, site
from grammars.runtime import ACL, MAP, api_site
from named import scenario


def over_tls(bind, server_words, plan, clients, mode="http", log='log-format "%ts bc=%[ssl_bc] again=%[ssl_fc_is_resumed]"'):
    """A site whose clients and server speak TLS."""
    speaks = "tcp" if mode == "tcp" else "h1"
    answers = [[["send", "answer"]]] if mode == "tcp" else [[["body"], ["answer", 200, [], "ok"]]]
    return {
        "defaults": defaults("retries 1", log=log, mode=mode),
        "sections": [
            section("frontend web", f"bind @bind:web@ ssl crt @cert:a.pem@{bind}", "default_backend @app@"),
            section("backend app", f"server s1 @server:s1@ ssl{server_words}"),
        ],
        "servers": {"s1": {"speaks": speaks, "answers": answers, "tls": plan}},
        "clients": [client(steps, speaks) | {"tls": tls} for steps, tls in clients],
    }


@scenario
def tls_sessions_that_come_again():
    """Sessions of clients that are resumed, in each version, and those of the server."""
    clients = []
    for version in ("1.2", "1.3"):
        plan = {"sni": "a.example", "version": version}
        clients += [(asks(request()), plan), (asks(request()), plan | {"resume": True})]
    return over_tls("", " verify none", {}, clients)


@scenario
def tls_protocols_that_are_agreed_on():
    """ALPN of clients and servers, which may have nothing in common."""
    offers = (["h2", "http/1.1"], ["http/1.1"], ["h2"], ["foo"], None)
    clients = [(asks(request()), {"alpn": offer} if offer else {}) for offer in offers]
    return over_tls(" alpn h2,http/1.1", " verify none alpn h2,http/1.1", {"alpn": ["h2", "http/1.1"]}, clients)


@scenario
def tls_clients_that_must_show_a_certificate():
    """Clients with a certificate, with a stranger's, and with none."""
    clients = [(asks(request()), {"certificate": file} if file else {}) for file in ("client.pem", "stranger.pem", None)]
    return over_tls(" verify required ca-file @cert:ca.pem@", " verify none", {}, clients)


@scenario
def tls_clients_that_end_in_each_way():
    """The closing alert, an end without one, each in the middle of an upload."""
    upload = [["head", request("POST", "/up", ["Content-Length", "10"])], ["body", "01234"], ["pause"]]
    ends = (["close"], ["cut"], ["fin"], ["half"], ["reset"])
    return over_tls("", " verify none", {}, [([*upload, end], {}) for end in ends])


@scenario
def tls_servers_that_are_slow_to_shake_hands():
    """Clients that leave while the server's handshake is waited for, in TCP mode."""
    made = over_tls("", " verify none", {}, [([["pause"], [end]], {}) for end in ("close", "reset")], mode="tcp")
    del made["servers"]["s1"]["tls"]
    made["servers"]["s1"]["answers"] = [[["stall"]]]
    return made


@scenario
def clients_that_leave_while_a_server_is_connected_to():
    """The same with `option abortonclose`, in HTTP mode."""
    steps = [["ask", request()], ["pause"], ["close"]]
    made = over_tls("", " verify none", {}, [(steps, {})])
    del made["servers"]["s1"]["tls"]
    made["servers"]["s1"] |= {"speaks": "tcp", "answers": [[["stall"]]]}
    made["defaults"].append("option abortonclose")
    return made


def conversations(*texts):
    return api_site() | {"clients": [client([["send", text], ["answered"]], "prompt", "admin") for text in texts]}


@scenario
def modes_of_the_prompt():
    """`prompt` with each of its words, several at a time and several times."""
    words = ("", " i", " p", " n", " timed", " i timed", " timed i", " n timed", " timed timed", " i p", " p n", "\nprompt")
    return conversations(*[f"prompt{word}\nshow cli level\nprompt\nshow cli level\n" for word in words])


@scenario
def severities_of_answers():
    """`set severity-output` with answers of each severity."""
    asked = f"show cli level\nbogus\nget weight @app@/none\nget weight @app@/s1\nadd map {MAP} k\nshow acl {ACL}\n"
    return conversations(*[f"prompt i\nset severity-output {word}\n{asked}" for word in ("number", "string", "none", "x")])


@scenario
def line_ends_that_a_backslash_takes():
    """Backslashes at the end of a command, and words that may announce a payload."""
    commands = (f"add map {MAP} /x a\\\nb", f"add map {MAP} /x a\\\\\nshow cli level", f"add map {MAP} /x <<END ")
    more = (f"add map {MAP} <<12345678\n/x y\n12345678", f"add map {MAP} <<1234567\n/x y\n1234567", f"add map {MAP}<<\n/x y\n")
    return conversations(*[f"prompt i\n{command}\n" for command in commands + more])


def crowd(balance, *base, servers=("", " maxconn 2"), refusing="s1"):
    """Eight clients at a time, and a server that refuses."""
    names = [f"s{number + 1}" for number in range(len(servers))]
    lines = [f"server {name} @server:{name}@{words}" for name, words in zip(names, servers)]
    return site() | {
        "defaults": defaults(*base, log='log-format "%ST %ts s=%s rc=%rc"'),
        "sections": [
            section("frontend web", "bind @bind:web@", "default_backend @app@"),
            section("backend app", f"balance {balance}", *lines),
        ],
        "servers": {name: server(**({"refuses": True} if name == refusing else {})) for name in names},
        "clients": [client(asks(*[request()] * 25)) for _ in range(8)],
        **{"together": True, "counted": True, "alone": True},
    }


@scenario
def crowd_around_a_refusing_server():
    """`balance random` with redispatch, where the others are full."""
    return crowd("random", "option redispatch", "retries 2")


@scenario
def crowd_of_leastconn():
    """`balance leastconn` with redispatch: a server that refuses seems idle."""
    return crowd("leastconn", "option redispatch", "retries 2", servers=("", "", ""))


@scenario
def crowd_of_roundrobin():
    """`balance roundrobin` without redispatch: a third of the requests fails."""
    return crowd("roundrobin", "no option redispatch", "retries 1", servers=("", " weight 2", ""))


@scenario
def reset_while_a_rule_waits_for_the_body():
    """A reset within a body that the end of its connection ends has cut it, also where a rule waits for the body."""
    return site() | {
        "defaults": defaults(log='log-format "%ST %ts"'),
        "sections": [
            section("frontend web", "bind @bind:web@", "default_backend @app@"),
            section("backend app", "http-response wait-for-body time 2s", "server s1 @server:s1@"),
        ],
        "servers": {
            "s1": {
                "speaks": "h1",
                "answers": [[["body"], ["head", 200, [], "close"], ["data", "part"], ["pause"], ["reset"]]],
            }
        },
        "clients": [client(asks(request()))],
    }
