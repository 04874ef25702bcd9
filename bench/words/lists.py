"""Argument lists for every word of the manual: valid and invalid ones, the same for the same seed."""

import random
import re
import typing

import manual
import places
import shapes

# Conditions that are put behind rules and the like.
CONDITIONS = ("if { path /a }", "if a1", "unless a1", "if", "if nothing", "unless { src nothing }", "if TRUE if a1", "if { path,nothing /a }", "when a1")


class Case(typing.NamedTuple):
    """A line to try: the word it is of, what was done to its arguments, and where it stands."""

    entry: manual.Entry
    change: str
    line: places.Line

    @property
    def file(self):
        """The whole file."""
        return places.file_of(self.line)


def flags(text):
    """The flags of an ACL, which the manual lists and does not write as a syntax line."""
    found = re.findall(r"^ {3}(-[a-zA-Z-]) : ", text, re.M)
    return tuple({"-m": "-m <method>", "-f": "-f <filename>", "-u": "-u <id>"}.get(flag, flag) for flag in found)


def entries(text):
    """The words of the manual, and those whose lines it writes elsewhere."""
    found = manual.entries(text)
    found.append(manual.Entry("proxy", "acl a9 <key> [param*] <value>", flags(text)))
    for head in re.findall(r"^ {2}- ((?:defaults|frontend|backend|listen) .*)$", text, re.M):
        found.append(manual.Entry("head", manual.cleaned(head, "head"), ()))
    return found


def plain(entry, rng):
    return shapes.listed(entry, rng, 0.0)[0]


def whole(entry, rng):
    return shapes.listed(entry, rng, 1.0)[0]


def some(entry, rng):
    return shapes.listed(entry, rng, 0.5)[0]


def missing(entry, rng):
    """Without the last argument, or without some."""
    words = shapes.listed(entry, rng, 0.5)[0]
    own = len(shapes.words(entry.word))
    if len(words) > own:
        return words[: rng.choice((-1, len(words) - own and own))] or words[:1]
    # What has its arguments in brackets, without them.
    return [re.sub(r"\(.*\)", rng.choice(("", "()", "(")), word) for word in words]


def one_more(entry, rng):
    words = some(entry, rng)
    if words[-1].endswith(")") and rng.random() < 0.7:
        return [*words[:-1], words[-1][:-1] + rng.choice((",9)", ",x)", ",", ")x", "))"))]
    return [*words, rng.choice(("nothing", "1", words[-1], '""'))]


def broken(entry, rng):
    """One argument is none of its kind."""
    slots = shapes.listed(entry, random.Random(1), 1.0)[1]
    return shapes.listed(entry, rng, 0.8, rng.randrange(slots) if slots else None)[0]


def unknown(entry, rng):
    """A word that nobody knows where another stands."""
    words = shapes.listed(entry, rng, 0.8)[0]
    at = rng.randrange(len(words))
    words[at] = rng.choice(("nothing", words[at] + "x", words[at][:-1] or "x", words[at].upper()))
    return words


def empty(entry, rng):
    words = shapes.listed(entry, rng, 0.8)[0]
    words[rng.randrange(len(words))] = '""'
    return words


def swapped(entry, rng):
    """Two arguments in each other's place."""
    words = shapes.listed(entry, rng, 1.0)[0]
    if len(words) > 2:
        at = rng.randrange(1, len(words) - 1)
        words[at], words[at + 1] = words[at + 1], words[at]
    return words


def under_condition(entry, rng):
    return [*some(entry, rng), *shapes.words(rng.choice(CONDITIONS))]


CHANGES = {
    "plain": plain,
    "whole": whole,
    "some": some,
    "missing": missing,
    "one more": one_more,
    "broken": broken,
    "unknown": unknown,
    "elsewhere": some,
    "twice": some,
    "broken again": broken,
    "empty": empty,
    "swapped": swapped,
    "condition": under_condition,
    "some more": some,
}


def case(entry, change, rng):
    """One line of a word."""
    words = CHANGES[change](entry, rng)
    section, form = places.wrong_places(entry, rng) if change == "elsewhere" else rng.choice(places.places(entry))
    if places.is_head(entry):
        section = ""
    text = form.format(" ".join(words))
    if change == "twice":
        again = " ".join(some(entry, rng)) if rng.random() < 0.5 else " ".join(words)
        text = f"{text} {again}" if entry.kind in ("bind", "server") else f"{text}\n{form.format(again)}"
    return Case(entry, change, places.Line(section, text))


def cases(text, seed, count, wanted=None):
    """As many different lines as are asked for, round after round over all words."""
    words = [entry for entry in entries(text) if not wanted or re.search(wanted, f"{entry.kind} {entry.syntax}")]
    seen, number, idle = set(), 0, 0
    while len(seen) < count and idle < len(CHANGES):
        idle += 1
        order = list(words)
        # A short run has a part of the words, and each change.
        random.Random(f"{seed}/{number}").shuffle(order)
        for position, entry in enumerate(order):
            change = list(CHANGES)[(number + position) % len(CHANGES)]
            made = case(entry, change, random.Random(f"{seed}/{number}/{entry.kind}/{entry.syntax}"))
            if made.line in seen or len(seen) >= count:
                continue
            idle = 0
            seen.add(made.line)
            yield made
        number += 1
