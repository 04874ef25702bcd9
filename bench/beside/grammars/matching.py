"""Matching: each method, map and converter over generated subjects and patterns, most of them delimiters."""

from grammars.common import asks, bind, client, defaults, request, section, server

METHODS = ("str", "beg", "end", "sub", "dir", "dom", "reg", "len", "found")
WORDS = ("a", "b", "ab", "/", "?", ".", "-", ";", ":", "&", "=", ",", "admin", "A", "%41", "//", "x.y", "_")
FETCHES = (
    *("path", "url", "query", "base", "pathq", "hdr(x-s)", "req.fhdr(x-s)", "url_param(a)", "cook(a)", "hdr(host)", "hdr(x-s),lower"),
    *("hdr(x-s),url_dec", "capture.req.uri", "urlp_val(a)", "hdr_val(x-s)", "hdr_ip(x-s)", "hdr(x-s,-1)", "hdr(x-s,1)", "baseq", "req.hdr_names"),
)
DERIVED = ("url_dir", "path_dir", "path_beg", "path_end", "path_sub", "url_dom", "hdr_dom(x-s)", "hdr_dir(x-s)", "hdr_beg(x-s)", "hdr_end(x-s)")
CONVERTERS = (
    *("lower", "upper", "url_dec", "url_enc", "word(2,/)", "word(-1,/)", "field(2,.)", "field(-1,/)", "bytes(1,3)", "length", "hex", "base64"),
    *("regsub(a,b)", "regsub(a,b,g)", "regsub(^/,)", "ltrim(/)", "rtrim(/)", "concat(x)", "json", "crc32", "djb2", "sdbm", "wt6", "xxh32", "sha1,hex"),
    *("digest(md5),hex", "b64dec", "utime(%Y)", "add(1)", "mul(2)", "ipmask(24)", "strcmp(txn.v)", "iif(yes,no)", "param(a)", "param(a,;)"),
    *("secure_memcmp(txn.v)", "even", "odd", "bool", "not", "neg", "cpl", "json_query('$.a')"),
    *("mod(7)", "and(3)", "xor(5)", "language(a;b)", "capture-req(0)", "url_enc(query)", "ub64enc", "ub64dec", "be2dec(:,2)", "be2hex(:,2)"),
)
MAPS = ("str", "beg", "end", "sub", "dir", "dom", "reg", "int", "ip")


def text(random, most=4):
    return "".join(random.choice(WORDS) for _ in range(random.randint(1, most)))


def pattern(random, method):
    if method == "len":
        return random.choice(("1", "3", "1:5", "4:"))
    if method == "found":
        return ""
    if method == "reg":
        return random.choice(("^/a", "a.b", "[.]b$", "^.$", "a+", "(a|b)/", "a{1,2}", r"\bab\b", "^[^/]*$", "(?i)AD", "[[:alpha:]]b"))
    return " ".join(text(random, 3) for _ in range(random.choice((1, 1, 2))))


def a_condition(random):
    if random.random() < 0.2:
        return f"{random.choice(DERIVED)} -- {pattern(random, 'str')}"
    method = random.choice(METHODS)
    insensitive = "-i " if random.random() < 0.2 and method not in ("len", "found") else ""
    end = "-- " if method != "found" else ""
    return f"{random.choice(FETCHES)} -m {method} {insensitive}{end}{pattern(random, method)}".rstrip()


def generate(random):
    front, files = [], {}
    for number in range(8):
        front.append(f"http-request add-header x-match {number} if {{ {a_condition(random)} }}")
    for number in range(3):
        chain = ",".join(random.sample(CONVERTERS, random.choice((1, 1, 2))))
        front.append(f"http-request set-header x-conv-{number} <%[{random.choice(FETCHES[:12])},{chain}]>")
    for number in range(2):
        kind = random.choice(MAPS)
        files[f"m{number}"] = map_file(random, kind)
        front.append(f"http-request set-header x-map-{number} %[{random.choice(FETCHES[:9])},map_{kind}(@file:m{number}@,none)]")
    requests = []
    for _ in range(6):
        subject = text(random)
        target = "/" + text(random, 3) + random.choice(("", "", "?" + text(random, 3), "?a=" + text(random, 2)))
        requests.append(request("GET", target, ["X-S", subject], ["Cookie", "a=" + random.choice(("b", "a/b", "x.y"))]))
    return {
        "defaults": defaults(log="log-format %ST"),
        "sections": [section("frontend web", bind("h1"), *front, "default_backend @app@"), section("backend app", "server s1 @server:s1@")],
        "servers": {"s1": server()},
        "clients": [client(asks(each)) for each in requests],
        "files": files,
    }


def map_file(random, kind):
    lines = []
    for number in range(random.randint(1, 6)):
        key = {"int": str(number), "ip": f"10.{number}.0.0/16", "reg": pattern(random, "reg")}.get(kind) or text(random, 3)
        lines.append(f"{key} {random.choice(('one', 'two', 'three four'))}")
    return "\n".join([*random.choice(([], ["# comment"], [""])), *lines]) + "\n"
