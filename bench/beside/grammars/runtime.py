"""Conversations with the Runtime API: tables, maps, lists, servers, weights, levels, and errors."""

from grammars.common import asks, client, request, section, server, site

MAP, ACL = "@file:m.map@", "@file:a.acl@"
KEYS = ("/a", "/b", "k", "10.0.0.1", "", "a b", "a\\ b", "/a/b")
SERVERS = ("@app@/s1", "@app@/s2", "@app@/none", "@none@/s1", "@app@", "s1", "@app@/")
ADDRESSES = ("1.2.3.4", "1.2.3.5", "::1", "x", "")
NUMBERS = ("0", "1", "50", "256", "257", "-1", "50%", "200%", "abc", "", "1000000")


def a_command(random):
    pick = random.choice
    key, name, address, number = pick(KEYS), pick(SERVERS[:2]) if random.random() < 0.6 else pick(SERVERS), pick(ADDRESSES), pick(NUMBERS)
    kind = pick(("gpc0", "gpt0", "conn_cnt", "http_req_rate", "http_req_cnt", "none", "server_id"))
    compare = pick(("eq", "gt", "lt", "ne", "ge", "le", "xx"))
    data = f"data.{kind} {compare} {number}"
    return pick(
        (
            *(f"show map {MAP}", f"get map {MAP} {key}", f"add map {MAP} {key} v{number}", f"set map {MAP} {key} w", f"del map {MAP} {key}"),
            *(f"clear map {MAP}", f"show acl {ACL}", f"add acl {ACL} {key}", f"del acl {ACL} {key}", f"get acl {ACL} {key}", f"clear acl {ACL}"),
            *(f"prepare map {MAP}", f"commit map @1 {MAP}", f"add map @1 {MAP} {key} z", f"show map @1 {MAP}", f"clear map @1 {MAP}", "show map none"),
            *("show table @seen@", f"show table @seen@ key {address}", f"show table @seen@ {data}", f"show table @none@", "show table @web@"),
            *(f"set table @seen@ key {address} data.{kind} {number}", f"clear table @seen@ key {address}", f"clear table @seen@ {data}"),
            *("clear table @seen@", f"set table @seen@ key {address}", f"show table @seen@ data.{kind} gt 0 data.gpc0 gt 1"),
            *(f"disable server {name}", f"enable server {name}", f"set weight {name} {number}", f"get weight {name}", f"set server {name} weight {number}"),
            *(f"set server {name} state {pick(('ready', 'drain', 'maint', 'x'))}", f"set server {name} addr 127.0.0.9 port 9999"),
            *(f"set server {name} addr {address}", f"set maxconn server {name} {number}", f"set server {name} health {pick(('up', 'down', 'stopping', 'x'))}"),
            *(f"disable health {name}", f"enable health {name}", f"disable agent {name}", f"enable agent {name}", f"set server {name} agent up"),
            *("show servers state @app@", "show servers conn @app@", "show servers state @none@", f"shutdown sessions server {name}"),
            *(f"set maxconn frontend @web@ {number}", "disable frontend @web@", "enable frontend @web@", "shutdown frontend @none@", "show backend"),
            *(f"add server @app@/s{pick('1234')} 127.0.0.1:{pick(('9', '99999', '4'))} {pick(('', 'weight 5', 'check', 'backup', 'none'))}", f"del server {name}"),
            *("show errors @web@", "show sess none", "shutdown session 0xN", "set timeout cli 10s", "set timeout cli x", "enable frontend", "show acl none"),
            *("bogus", "show", "show bogus", "set", "set server", f"set dynamic-cookie-key backend @app@ {key}", "enable dynamic-cookie backend @app@"),
            *("set rate-limit sessions global abc", "show cli level", "operator", "user", "show cli sockets x"),
            *(f"add map {MAP} <<\n{pick(KEYS)} 1\n{pick(KEYS)} 2\n", f"show map {MAP};show acl {ACL}", "show resolvers none"),
        )
    )


def api_site():
    """A site with a table, a map and a list, and what they hold at last."""
    front = [
        f"http-request set-header x-map %[path,map_str({MAP},none)]",
        f"http-request deny if {{ path -f {ACL} }}",
        "http-request track-sc0 src table @seen@",
    ]
    made = site(front=front, servers={"s1": server(), "s2": server()})
    store = "gpc0,gpt0,conn_cnt,http_req_cnt,http_req_rate(1h)"
    made["sections"].append(section("backend seen", f"stick-table type ip size 100 expire 1h store {store}"))
    made["files"] = {"m.map": "/a one\n/b two\n", "a.acl": "/c\n/d\n"}
    made["ask"] = ["show table @seen@", f"show map {MAP}", f"show acl {ACL}", "show servers state @app@"]
    return made


def generate(random):
    made = api_site()
    level = random.choice(("admin", "admin", "admin", "operator", "user"))
    for _ in range(random.choice((1, 2))):
        commands = [["command", a_command(random)] for _ in range(random.choice((2, 4, 8)))]
        made["clients"].append(client(commands, "cli", level))
        made["clients"].append(client(asks(request(target=random.choice(("/a", "/c", "/z"))))))
    return made
