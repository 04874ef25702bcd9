"""The shape of a syntax line of the manual, and argument lists made from it."""

import re
import typing

import values

# What a line of the manual has for "and so on", where it says nothing else.
AND_SO_ON = re.compile(r"\[,\.\.\.\]|,\(\.\.\.\)|,\.\.\.(?![>\w])")
PARAMETERS = re.compile(r"\[?<?\b(?:param|params|parameters|options|args|arguments|option)(?:\*|\.\.\.)>?\]?")
# A word with what is quoted in it.
WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|\{[^{}]*\}|\S)+""")


class Node(typing.NamedTuple):
    """A part of a shape: `text`, `slot`, `option`, `choice`, `row`, `many`, `gap`, or `parameters`."""

    kind: str
    of: object = None


class Reader:
    """Reads a syntax line into nodes."""

    def __init__(self, text):
        self.text = text
        self.at = 0

    def choice(self, end):
        """Rows between bars, up to the bracket that ends them."""
        rows, row = [], []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == end:
                self.at += 1
                break
            if char == "|":
                self.at += 1
                rows.append(Node("row", row))
                row = []
                continue
            self.part(row, char)
        rows.append(Node("row", row))
        return rows[0] if len(rows) == 1 else Node("choice", rows)

    def part(self, row, char):
        self.at += 1
        if char.isspace():
            row.append(Node("gap"))
        elif char == "<":
            end = self.text.find(">", self.at)
            end = len(self.text) if end < 0 else end
            row.append(Node("slot", self.text[self.at : end].strip()))
            self.at = end + 1
        elif char == "[":
            row.append(Node("option", self.choice("]")))
        elif char == "{":
            row.append(self.choice("}"))
        elif char == "\x01":
            row.append(Node("parameters"))
        elif char == "*" or self.text.startswith("...", self.at - 1):
            self.at += 0 if char == "*" else 2
            if row:
                row.append(Node("many", row.pop()))
        elif row and row[-1].kind == "text":
            row[-1] = Node("text", row[-1].of + char)
        else:
            row.append(Node("text", char))


def shape(syntax):
    """The nodes of a syntax line."""
    return Reader(PARAMETERS.sub("\x01", AND_SO_ON.sub("", syntax))).choice(None)


class Writer:
    """Writes one line of a shape. `wish` is how likely an optional part is; `broken` is the number of the slot that gets
    a value that is none of its kind."""

    def __init__(self, entry, rng, wish, broken=None):
        self.entry, self.rng, self.wish, self.broken = entry, rng, wish, broken
        self.slots = 0

    def write(self, node):
        if node.kind == "text":
            return node.of
        if node.kind == "gap":
            return " "
        if node.kind == "row":
            return "".join(map(self.write, node.of))
        if node.kind == "choice":
            return self.write(self.rng.choice(node.of))
        if node.kind == "option":
            return self.write(node.of) if self.rng.random() < self.wish else ""
        if node.kind == "many":
            return " ".join(self.write(node.of) for _ in range(self.rng.choice((1, 1, 2))))
        if node.kind == "parameters":
            return self.parameters()
        self.slots += 1
        return values.value(self.entry, node.of, self.rng, self.slots - 1 == self.broken)

    def parameters(self):
        """Words that the text below the line names, each with what it takes."""
        if not self.entry.arguments or self.rng.random() > self.wish:
            return ""
        chosen = self.rng.sample(self.entry.arguments, min(len(self.entry.arguments), self.rng.choice((1, 1, 2))))
        return " ".join(self.write(shape(text)) for text in chosen)


def words(text):
    """A line cut into words, quoted parts and conditions whole."""
    return WORD.findall(text)


def listed(entry, rng, wish, broken=None):
    """One argument list of a word: its words, and how many slots it has."""
    writer = Writer(entry, rng, wish, broken)
    text = writer.write(shape(entry.syntax))
    return words(text), writer.slots
