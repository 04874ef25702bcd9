"""Conversations with the Runtime API over one connection: modes, severities, several commands in a line, payloads."""

from grammars.common import asks, client, request
from grammars.runtime import ACL, MAP, a_command, api_site

MODES = (
    *("prompt", "prompt", "prompt i", "prompt i", "prompt p", "prompt n", "prompt timed", "prompt i;prompt p", "prompt p n", "prompt x"),
    *("prompt help", "prompt i timed", "prompt i p", "prompt;prompt", "prompt n p", "  prompt i", "prompt i;", "prompt i;show map none"),
)
SEVERITIES = (
    *("set severity-output number", "set severity-output string", "set severity-output none", "set severity-output"),
    *("set severity-output x", "set severity-output number string", "set severity-output Number"),
)
# Commands without an effect that outlasts them, whose answers have each severity.
SIMPLE = (
    *(f"show map {MAP}", f"show acl {ACL}", f"get map {MAP} /a", f"add acl {ACL} /x", f"del acl {ACL} /none", "show table @seen@"),
    *("get weight @app@/s1", "set weight @app@/none 1", "set weight @app@/s1 x", "disable server @app@/s1", "enable server @app@/s1"),
    *("show cli level", "bogus", "show", "operator", "user", "set server @app@/s1 state drain", "clear table @seen@", "set table @seen@"),
    *(f"add map {MAP} k v", f"add map {MAP} k", f"del map {MAP} none", "show servers state @none@", "shutdown frontend @none@", "set"),
)
JOINTS = (";", "; ", " ; ", ";;", "\n", "\n\n", "; ;", "\r\n")
ODD = (
    *("", ";", " ", "# comment", "show map none # comment", f"add map {MAP} a\\ b v", f"add map {MAP} a\\;b v", f"get map {MAP} \"/a\""),
    *(f"add map {MAP} '/q' v", "show\tcli\tlevel", "  show  cli  level  ", "show cli level;", ";show cli level", "quit", "quit;show cli level"),
    *(f"get map {MAP} '/a", f"add map {MAP} a\\\\b v", f"get map {MAP} a\\x41", "show cli level\\", "SHOW CLI LEVEL", "help", "@1 show cli level"),
)
PATTERNS = ("", "", "END", "%EOF%", "1234567", "12345678", "a b", " ", "END ")
PAYLOAD_LINES = ("/p 1", "/q two words", "", "k", " /lead x", "END", "/c # no", ";", "a;b", "\\;", "EN", "END2", "'q' v", "/t\tv")


def a_payload(random):
    """A command with a payload, which may end as its pattern says."""
    pattern = random.choice(PATTERNS)
    head = random.choice(
        (
            *(f"add map {MAP} <<{pattern}", f"add map {MAP} <<{pattern}", f"add map {MAP} <<{pattern}", f"add acl {ACL} <<{pattern}"),
            *(f"show cli level;add map {MAP} <<{pattern}", f"show map {MAP} <<{pattern}", f"add map {MAP} k v <<{pattern}", f"add map {MAP}<<{pattern}"),
            *(f"add map {MAP} <<{pattern};show cli level", f"set server @app@/s1 weight <<{pattern}", f"bogus <<{pattern}", f"add map {MAP} << {pattern}"),
        )
    )
    lines = [random.choice(PAYLOAD_LINES[:2]), *random.choices(PAYLOAD_LINES, k=random.choice((0, 0, 1, 2)))]
    end = random.choice((pattern, pattern, pattern, "END", ""))
    return "\n".join([head, *lines, end])


def a_line(random):
    kind = random.choice(("simple", "simple", "joined", "odd", "payload", "any", "severity"))
    if kind == "joined":
        return random.choice(JOINTS).join(random.choices(SIMPLE + ODD[:8], k=random.choice((2, 2, 3))))
    if kind == "payload":
        return a_payload(random)
    if kind == "any":
        return a_command(random)
    return random.choice({"simple": SIMPLE, "odd": ODD, "severity": SEVERITIES}[kind])


def in_pieces(random, text):
    """The text in one write, in a write for each line, or cut anywhere."""
    way = random.choice(("whole", "whole", "lines", "cut"))
    if way == "whole":
        return [["send", text], ["answered"]]
    if way == "lines":
        return [step for line in text.splitlines(keepends=True) for step in (["send", line], ["answered"])]
    at = random.randint(1, len(text))
    return [["send", text[:at]], ["pause"], ["send", text[at:]], ["answered"]]


def a_conversation(random):
    lines = [random.choice(MODES)] if random.random() < 0.85 else []
    if random.random() < 0.4:
        lines.append(random.choice(SEVERITIES[:3]))
    lines += [a_line(random) for _ in range(random.choice((1, 2, 3, 5)))]
    end = random.choice(("\n", "\n", "\n", "\n", "", "\nquit\n", "\r\n"))
    steps = in_pieces(random, "\n".join(lines) + end)
    return client([*steps, *random.choice(([], [], [["half"], ["stall"]], [["close"]]))], "prompt", random.choice(("admin", "admin", "operator", "user")))


def generate(random):
    made = api_site()
    for _ in range(random.choice((1, 2, 3))):
        made["clients"].append(a_conversation(random))
    made["clients"].append(client(asks(request(target="/a"))))
    return made
