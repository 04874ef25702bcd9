"""What both programs say of a file, and which differences are meant."""

import pathlib
import re
import tomllib
import typing

KNOWN = pathlib.Path(__file__).resolve().parent / "known.toml"
# What a program says at the head of a line, before the process number.
SAID = re.compile(r"^\[(ALERT|WARNING)\] +\(\d+\) : (.*)$", re.M)
# What Ballast says of a word that it knows and does not have.
LATER = re.compile(r"'([^']*)' is understood (?:and|but) not carried out")
# The last message, which says that there were others.
SUMMARY = re.compile(r"config : (Fatal errors|Error\(s\)) found in configuration")
PATTERNS = ("place", "word", "text", "change", "haproxy", "ballast")


class Verdict(typing.NamedTuple):
    """What a program says of a file: `accepted`, `warned` (it says something and would start), `refused`, `later` when it is
    refused only for words that are known and not carried out, or how it ended; the line that the first message of this kind names; the messages; and
    those words."""

    kind: str
    line: int | None
    messages: tuple
    later: tuple = ()

    def __str__(self):
        where = f" {self.line}" if self.line else ""
        return f"{self.kind}{where}" + (f": {' // '.join(self.messages)}" if self.messages else "")


def verdict(name, code, output):
    """The verdict of a program that ended with this code and wrote this."""
    said = SAID.findall(output)
    if code < 0 or code > 1:
        return Verdict(f"ended with {code}", None, tuple(output.splitlines()[-3:]))
    kind = "refused" if code else "warned" if said else "accepted"
    # A program that starts may have said something that it calls an alert.
    levels = ("ALERT",) if kind == "refused" else ("ALERT", "WARNING")
    messages = tuple(text for level, text in said if level in levels and not SUMMARY.match(text))
    later = tuple(word for text in messages for word in LATER.findall(text))
    if others := tuple(text for text in messages if not LATER.search(text)):
        messages = others
    elif later:
        return Verdict("later", None, messages, later)
    places = [int(match[1]) for match in (re.search(rf"\[{re.escape(name)}:(\d+)\]", text) for text in messages) if match]
    return Verdict(kind, places[0] if places else None, messages, later)


def differ(haproxy, ballast):
    """Whether two verdicts differ: in what they are, or in the line, where both name one. Where HAProxy crashes or hangs,
    there is nothing to compare with."""
    if haproxy.kind.startswith("ended"):
        return False
    if haproxy.kind != ballast.kind:
        return (haproxy.kind, ballast.kind) != ("refused", "later")
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
        """The words that Ballast does not have, where all of them are in the table."""
        words = ballast.later if ballast.kind == "later" else ()
        if not words or not set(words) <= set(self.later):
            return None
        for word in words:
            self.used[word] = 1
        return words[0]

    def idle(self):
        """Rows that explained nothing."""
        return [name for name in [*self.later, *self.rows] if name not in self.used]
