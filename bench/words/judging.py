"""What both programs say of a file, and which differences are meant."""

import pathlib
import re
import tomllib
import typing

KNOWN = pathlib.Path(__file__).resolve().parent / "known.toml"
# What a program says at the head of a line, before the process number.
SAID = re.compile(r"^\[(ALERT|WARNING)\] +\(\d+\) : (.*)$", re.M)
# What Ballast says of a word that it knows and does not have.
LATER = re.compile(r"'([^']*)' is understood and not carried out")
PATTERNS = ("place", "word", "text", "change", "haproxy", "ballast")


class Verdict(typing.NamedTuple):
    """What a program says of a file: `accepted`, `warned`, `refused`, or how it ended; the line that the first message of
    this kind names; and the messages."""

    kind: str
    line: int | None
    messages: tuple

    def __str__(self):
        where = f" {self.line}" if self.line else ""
        return f"{self.kind}{where}" + (f": {' // '.join(self.messages)}" if self.messages else "")


def verdict(name, code, output):
    """The verdict of a program that ended with this code and wrote this."""
    said = SAID.findall(output)
    if code < 0 or code > 1:
        return Verdict(f"ended with {code}", None, tuple(output.splitlines()[-3:]))
    kind = "refused" if code else "warned" if any(level == "WARNING" for level, _ in said) else "accepted"
    level = {"refused": "ALERT", "warned": "WARNING"}.get(kind)
    messages = tuple(text for each, text in said if each == level and not text.startswith("config : Error(s) found"))
    places = [int(match[1]) for match in (re.search(rf"\[{re.escape(name)}:(\d+)\]", text) for text in messages) if match]
    return Verdict(kind, places[0] if places else None, messages)


def differ(haproxy, ballast):
    """Whether two verdicts differ: in what they are, or in the line, where both name one."""
    if haproxy.kind != ballast.kind:
        return True
    return bool(haproxy.line and ballast.line and haproxy.line != ballast.line)


class Known:
    """The rows of known.toml, and which of them explained something."""

    def __init__(self, path=KNOWN):
        self.rows = tomllib.loads(path.read_text())
        self.later = self.rows.pop("not carried out", {"words": []})["words"]
        for name, row in self.rows.items():
            if "reason" not in row or not any(row.get(key) for key in PATTERNS):
                raise SystemExit(f"{path.name}: row {name!r} needs a reason and a pattern")
            if unfit := set(row) - {"reason", "script", *PATTERNS}:
                raise SystemExit(f"{path.name}: row {name!r} has {', '.join(sorted(unfit))}")
        self.compiled = {name: {key: re.compile(row[key]) for key in PATTERNS if key in row} for name, row in self.rows.items()}
        self.used = {}

    def explains(self, case, haproxy, ballast):
        """The name of the row that explains a difference, or None."""
        if (name := self.is_later(ballast)) is None:
            facts = {
                "place": case.line.section,
                "word": case.entry.word,
                "text": case.line.text,
                "change": case.change,
                "haproxy": str(haproxy),
                "ballast": str(ballast),
            }
            for row, patterns in self.compiled.items():
                if all(pattern.search(facts[key]) for key, pattern in patterns.items()):
                    name = row
                    break
        if name is not None:
            self.used[name] = self.used.get(name, 0) + 1
        return name

    def is_later(self, ballast):
        """The word Ballast does not have, where it is one of those in the table."""
        if ballast.kind == "refused":
            for message in ballast.messages:
                for word in LATER.findall(message):
                    if word in self.later:
                        return word
        return None

    def idle(self):
        """Rows that explained nothing."""
        return [name for name in [*self.later, *self.rows] if name not in self.used]
