"""Reads the syntax lines of HAProxy's configuration manual: which words there are, and the shape of their arguments."""

import gzip
import pathlib
import re
import subprocess
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADING = re.compile(r"(\d+(?:\.\d+)*)\.? +\S")
# Words of the text between syntax lines, which no syntax line begins with.
SYNTAX = re.compile(r"(no )?[a-z0-9][\w.+-]*(?![\w,;:' ]*[;:,]$)")
# `    code <code>   ...`, `- "drop-query"`, `* ipv6   ...`: the words an argument may be.
ARGUMENT = re.compile(r' {2,16}(?:[-*] )?"?([a-z][\w.-]*(?:\([^)]*\))?|-[a-zA-Z]|<[^>]*>)"?((?: [<\[{][^ ].*?)?)(?: {2,}\S.*| *:.*|)$')
# The sections whose words are read, and what they are. A number holds for those below it.
KINDS = {
    "3": "global",
    "4.2": "proxy",
    "4.4": "action",
    "5.1": "bind",
    "5.2": "server",
    "5.3.2": "resolvers",
    "6.2.1": "cache",
    "7.3.1": "converter",
    "7.3": "sample",
    "10.1.1": "fcgi-app",
    "11.1": "table",
    "11.2": "peers",
    "12.1": "traces",
    "12.2": "userlist",
    "12.3": "mailers",
    "12.4": "http-errors",
    "12.5": "ring",
    "12.6": "log-forward",
    "12.7.1": "load",
    "12.7": "crt-store",
    "12.8": "acme",
    "12.9": "program",
    "8.3.5": "log-profile",
}


class Entry(typing.NamedTuple):
    """A word of the manual: what kind of place it stands in, a syntax line, and the words its arguments may be."""

    kind: str
    syntax: str
    arguments: tuple

    @property
    def word(self):
        """The word itself: all of the line before the first argument."""
        return re.split(r" ?[<\[{(]|\.\.\.| \|", self.syntax)[0].strip()


def manual():
    """The text of the manual that belongs to the HAProxy that is compared with."""
    answer = subprocess.run([ROOT / "scripts/oracle", "--doc"], check=True, capture_output=True, text=True)
    # The text is in the package of the program, the pages in that of the documents, whose directory is named.
    path = pathlib.Path(answer.stdout.strip()).parent / "haproxy/configuration.txt.gz"
    return gzip.decompress(path.read_bytes()).decode("utf-8", "replace")


def kind_of(number):
    """What the words of a section of the manual are."""
    while number:
        if number in KINDS:
            return KINDS[number]
        number = number.rpartition(".")[0]
    return None


def blocks(text):
    """Every group of lines at the margin with what stands indented below it, and the section it is in."""
    number, heads, body = "", [], []
    # The table of contents has headings too; they are indented or have nothing below.
    for line in text.splitlines():
        line = line.rstrip()
        if HEADING.match(line):
            yield number, heads, body
            number, heads, body = HEADING.match(line)[1], [], []
        elif line and not line[0].isspace():
            if body:
                yield number, heads, body
                heads, body = [], []
            heads.append(line)
        elif not line and not body:
            heads = []
        elif heads:
            # A syntax line goes on where the next begins with a bracket, far from the margin.
            if not body and re.match(r" {6,}[\[{<(]", line):
                heads[-1] += " " + line.strip()
            else:
                body.append(line)
    yield number, heads, body


def arguments_of(body):
    """The words that the text below a syntax line names as arguments, each with its own arguments."""
    found = []
    for line in body:
        if match := ARGUMENT.fullmatch(line):
            text = f"{match[1]}{match[2]}"
            if text not in found and not text.startswith("<") and not match[1].endswith("."):
                found.append(text)
    return tuple(found)


def cleaned(head, kind):
    """A syntax line without remarks and, for samples, without the type it has."""
    if kind in ("sample", "converter"):
        head = re.split(r" +: | {2,}", head)[0]
    head = re.sub(r" *\((deprecated|EXPERIMENTAL)\)| *\[ EXPERIMENTAL \]", "", head)
    return re.sub(r"\s+", " ", head).strip()


def entries(text):
    """All words of the manual, in its order; none twice."""
    found = {}
    for number, heads, body in blocks(text):
        kind = kind_of(number)
        if not kind or not body or not all(SYNTAX.match(head) for head in heads):
            continue
        for head in heads:
            entry = Entry(kind, cleaned(head, kind), arguments_of(body))
            found.setdefault((kind, entry.syntax), entry)
    return list(found.values())
