"""Values for the placeholders of the manual: some of their kind, and some that are none."""

import re

NUMBER = ["1", "2", "10", "100", "1000"], ["-1", "0", "ten", "10x", "99999999999999999999", "4294967296", "2147483648", "0x10", "1.5", '""', "+5", "1k"]
SMALL = ["0", "1", "2"], ["-1", "100", "x", "", "1x", "4294967296"]
SIZE = ["1k", "16384", "1m", "100"], ["-1", "1x", "k", "0", "1kb", "99999999999999999999", '""', "1.5m", "1 k"]
TIME = ["1s", "500", "10ms", "1m", "2h", "1d", "100us"], ["5sec", "-5s", "s", "5x", "99999999d", "0", "30d", '""', "1.5s", "5s5", "1us", "4294967296ms", "never"]
NAME = ["n1", "X-Name", "a.b", "a_b-c:1"], ['""', "a/b", '"a b"', "é", "a,b", "-", "n1("]
FORMAT = ["%ci", '"a %[src] b"', "text", "%[path,lower]", "%{+Q}r", "a%%b"], ['"%[nothing]"', '"%[src"', '"%zz"', '"%{+Z}ci"', '"%[src,nothing]"', '""', "%[src,lower(1)]", '"%["', "%"]
EXPRESSION = ["src", "path,lower", "int(1)", "str(a),upper", "hdr(host)", "dst_port", "var(txn.a)"], ["nothing", "src,", "src,nothing", "src()", "src(1)", "hdr(a,b,c)", '""', "str(a", "int(x)", "path,add(1)", "res.hdr(a)"]
CONDITION = ["a1", "{ path /x }", "!a1", "a1 { src 127.0.0.1 }", "a1 or { path /y }", "TRUE", "{ path -m beg /a }"], ["", "nothing", "{ path", "{ }", "or a1", "a1 or", "{ nothing 1 }", "! a1", "{ path -m nothing /a }", "}", "a1 ||"]
FILE = ["list.txt", "cert.pem"], ["missing.txt", ".", '""', "empty.txt", "/"]
LIST = ["list.txt", "virt@v1", "opt@missing.txt", "file@list.txt"], ["missing.txt", '""', "."]
CERTIFICATE = ["cert.pem"], ["missing.pem", "list.txt", '""', "empty.txt"]
PAGE = ["page.http"], ["missing.http", ".", '""', "list.txt"]
ADDRESS = ["127.0.0.1:8001", "*:8002", ":8003", "[::1]:8004", "127.0.0.1:8005-8006", "unix@u.sock", "ipv4@127.0.0.1:8007", "abns@x", "localhost:8008", "/tmp/u.sock"], [
    "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000", "127.0.0.1:x", "nothing@1:2", '""', "fd@99", "1.2.3:80x", "[::1", "127.0.0.1:8009-8001", "::1:80", "/"]
HOST = ["127.0.0.1", "::1", "localhost", "0.0.0.0"], ["127.0.0", '""', "127.0.0.1/33", "x.invalid", "[::1]", "1.2.3.4.5"]
NETWORK = ["10.0.0.0/8", "127.0.0.1", "::1/128", "10.0.0.0/255.0.0.0"], ["10.0.0.0/33", "x/8", '""', "10.0.0.0/", "::1/129", "::1/x"]
PORT = ["80", "8443", "1"], ["0", "65536", "-1", "http", "80x", '""', "+1"]
REGEX = ["^/a(.*)", "x", r'"a|b"', "[a-z]+"], ["(", "[", "*a", '""', "(?<n>a)(?<n>b)", "a{2,1}"]
VARIABLE = ["txn.a", "req.b", "sess.c", "proc.d", "res.e"], ["a", "txn.", "nothing.a", '""', "txn.a-b", "txn", ".a", "txn.a b"]
CODE = ["200", "404", "503", "429"], ["99", "600", "x", '""', "404x", "-1", "1000", "0"]
SWITCH = ["on", "off"], ["yes", "ON", '""', "1", "onoff"]
TABLE = ["t1"], ["nothing", '""', "web", "app"]
KEY = ["src", "path", "hdr(host)", "int(1)"], ["nothing", '""', "src,nothing", "res.hdr(a)", "src("]
TEXT = ["text", '"some text"', "a:b", "/x"], ['""', '"', "a#b", '"%["']
PERCENT = ["0", "10", "100"], ["101", "-1", "x", '""', "10%", "1000"]

# The kind of a placeholder, by its name: the first whose pattern fits all of it.
KINDS = [
    (r"timeout.*|time|delay.*|period|interval|ttl|idle|life|start_time_in_ms|expire", TIME),
    (r"size|sz|bytes|bufsize|maxlen", SIZE),
    (r"number|count|conns|maxconn|minconn|maxqueue|nb|nbconn|int|integer|value|length|len|rate|limit|backlog|factor|max|maxseg|"
     r"seconds|megabytes|reqs|shards|shard|bits|weight|nice|level|id|index|mark|tos|uid|gid|steps?|range|connections|magic number|num \| range", NUMBER),
    (r"ctr|idx|sc-id|occ|offset\d?|avalanche|seed|bitmap|bool|field_number|chunk_size|truncate", SMALL),
    (r"0\.\.\d+, in percent", PERCENT),
    (r"fmt|key fmt|value fmt|replace-fmt|sd_fmt|hexfmt|uri-lf|logfmt", FORMAT),
    (r"expr|epxr|expression|sample|.*_expr|tos \| <expr", EXPRESSION),
    (r"key|pattern|criterion", KEY),
    (r"cond|condition", CONDITION),
    (r"cafile|cert|crt|crtfile|keyfile|crlfile|certfile", CERTIFICATE),
    (r"file-name|map-name|map_name|map|filename", LIST),
    (r"file|path|file path|hdrs-file|pidfile", FILE),
    (r"address:port|address|addr2?|target|srv_addr", ADDRESS),
    (r"ip|ipv4\|ipv6|ipv4|ipv6|host|hostname|fqdn|source", HOST),
    (r"network|mask\d", NETWORK),
    (r"port\d?|port_range|pl|ph", PORT),
    (r"match-regex|regex", REGEX),
    (r"var-name|var", VARIABLE),
    (r"code|status|st", CODE),
    (r"on\|off|on/off", SWITCH),
    (r"table|tablename", TABLE),
    (r"backend", (["app", "t1"], ["nothing", "web", '""', "%[nothing]"])),
    (r"frontend", (["web"], ["nothing", "app", '""'])),
    (r"server|srv", (["app/s1", "s1"], ["nothing", "app/nothing", '""', "nothing/s1", "app/"])),
    (r"userlist", (["u1"], ["nothing", '""'])),
    (r"resolvers|resolvers id", (["r1"], ["nothing", '""'])),
    (r"peersect", (["p1"], ["nothing", '""'])),
    (r"mailersect", (["m1"], ["nothing", '""'])),
    (r"type", (["ip", "ipv6", "integer", "string", "binary", "string len 32", "text/plain"], ["nothing", '""', "string len", "string len x", "int"])),
    (r"unit", (["s", "ms", "us"], ["x", '""'])),
    (r"format", (["raw", "rfc3164", "rfc5424", "short", '"%Y"'], ["nothing", '""'])),
    (r"ranges", (["1", "1,3-4", "1-2"], ["0", "x", "3-1", "9", '""'])),
    (r"sample_size", (["4", "5"], ["0", "x", "1", '""'])),
    (r"method|meth", (["GET", "str", "beg", "sub", "POST"], ["nothing", '""', "G ET"])),
    (r"version", (["HTTP/1.1", "HTTP/1.0", "1.1"], ["nothing", '""', "HTTP/9"])),
    (r"uri|loc|pfx|url", (["/x", "/", "http://h/x"], ['""', '"/a b"', "x"])),
    (r"protocols|alpn", (["h2", "http/1.1", "h2,http/1.1"], ["nothing", '""', ",", "h2,,h2"])),
    (r"ciphers", (["ECDHE-RSA-AES128-GCM-SHA256", "HIGH"], ["nothing", '""'])),
    (r"ciphersuites", (["TLS_AES_128_GCM_SHA256"], ["nothing", '""'])),
    (r"curves|named curve", (["X25519", "P-256:P-384", "secp256r1"], ["nothing", '""'])),
    (r"sigalgs", (["RSA-PSS+SHA256", "ECDSA+SHA256"], ["nothing", '""'])),
    (r"user|user name|username", (["root", "a"], ["no-such-user", '""'])),
    (r"group|group name|groupname", (["root", "g1"], ["no-such-group", '""'])),
    (r"hexstring|hex", (["0a0b", "00"], ["0", "xx", '""'])),
    (r"delim|delimiters|separator|char|chars", (["/", "a", r"\,", "-"], ["ab", "", '","'])),
    (r"entry", (["CN", "C"], ["nothing", ""])),
    (r"algorithm|alg", (["roundrobin", "leastconn", "gzip", "sha256", "HS256"], ["nothing", '""'])),
    (r"function", (["sdbm", "crc32", "none"], ["nothing", '""'])),
    (r"modifier", (["avalanche"], ["nothing", '""'])),
    (r"string|text|msg|desc|data|str|realm|password|passphrase|passwd|label|secret", TEXT),
]
COMPILED = [(re.compile(pattern), kind) for pattern, kind in KINDS]
# Placeholders of words that have a name of more than one kind.
SPECIAL = [
    (re.compile(r"errorfile|errorloc\d*"), "file", PAGE),
    (re.compile(r"errorfiles|http-error"), "name", (["e1"], ["nothing", '""'])),
    (re.compile(r"mode"), "mode", (["http", "tcp"], ["nothing"])),
    (re.compile(r"guid|http-send-name-header|log-tag"), "value", NAME),
    (re.compile(r"set-var|set-env|setenv|presetenv"), "value", TEXT),
    (re.compile(r"level"), "level", (["user", "operator", "admin"], ["nothing", '""'])),
    (re.compile(r"mode"), "mode", (["600", "777"], ["nothing", "999", '""'])),
    (re.compile(r"stick-table|table"), "size", SIZE),
]


def kind_of(entry, name):
    """The values of a placeholder, those of its kind and those of none."""
    for word, slot, kind in SPECIAL:
        if word.match(entry.word) and slot == name and (slot != "mode" or entry.kind == "bind" or "mode" == entry.word):
            return kind
    for pattern, kind in COMPILED:
        if pattern.fullmatch(name):
            return kind
    return NAME


def value(entry, name, rng, broken):
    """A value for a placeholder; one that is none of its kind where it is to be broken."""
    # What a line of the manual calls option or action is one of the words of the text below it.
    plain = [text for text in entry.arguments if not re.search(r"[<\[{(]", text)]
    if plain and not broken and re.fullmatch(r"option|action|method|algorithm|status|event|step|mode|type|function|modifier|level|value|format|policy|directive|key|name|bool", name):
        if rng.random() < 0.7:
            return rng.choice(plain)
    fine, wrong = kind_of(entry, name)
    return rng.choice(wrong if broken else fine)
