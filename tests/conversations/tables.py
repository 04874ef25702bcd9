"""Tables of conversations: how they are written, and what is read of them."""

import dataclasses
import re

SECTION = re.compile(r"^== (\w+) ?(.*)$")


@dataclasses.dataclass
class Step:
    """What is sent at once, or done between two lines (`!`), and within which talk."""

    talk: str
    text: str


@dataclasses.dataclass
class Talk:
    """A conversation: its name, the socket, how it is held, and its steps."""

    name: str
    socket: str
    mode: str
    steps: list


@dataclasses.dataclass
class Table:
    """A configuration, the files beside it, and conversations with the process that runs it."""

    name: str
    configuration: str = ""
    arguments: str = ""
    shell: str = ""
    files: dict = dataclasses.field(default_factory=dict)
    talks: list = dataclasses.field(default_factory=list)

    def steps(self):
        return [step for talk in self.talks for step in talk.steps]


def read_table(path):
    table = Table(path.stem)
    kind, rest, lines = None, "", []

    def ends():
        body = "\n".join(lines).strip("\n") + "\n"
        if kind == "config":
            table.configuration = body
        elif kind == "shell":
            table.shell = body
        elif kind == "arguments":
            table.arguments = rest
        elif kind == "file":
            table.files[rest] = body
        elif kind == "talk":
            table.talks.append(read_talk(rest, lines))
        elif kind is not None:
            raise SystemExit(f"{path}: no section is called {kind!r}")

    for line in path.read_text().split("\n"):
        if found := SECTION.match(line):
            ends()
            kind, rest, lines = found[1], found[2], []
        else:
            lines.append(line)
    ends()
    return table


def read_talk(head, lines):
    """`SOCKET MODE NAME`, then a line for each step; `| ` begins what is sent with the line before."""
    socket, mode, name = head.split(" ", 2)
    if mode not in ("oneshot", "session", "batch"):
        raise SystemExit(f"{head!r}: a conversation is `oneshot`, `session` or `batch`")
    steps = []
    for line in lines:
        if line.startswith("|"):
            steps[-1].text += "\n" + line[2:]
        elif line and not line.startswith("#"):
            steps.append(Step(name, "" if line == "(empty)" else line))
    return Talk(name, socket, mode, steps)
