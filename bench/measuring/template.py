"""Fills in the configurations of `bench/peers`.

`@NAME@` stands for a value. The lines between `@each N COUNT` and `@end` are repeated for N from 0
to COUNT - 1, where COUNT is a number or the name of a value; such blocks may be nested.
"""

import re


def fill(text, values):
    """The text with its blocks repeated and its values filled in."""
    lines, rest = block(iter(text.splitlines()), values)
    if rest:
        raise ValueError("a template has `@end` without `@each`")
    return "\n".join(lines) + "\n"


def block(lines, values):
    """The lines up to an `@end`, filled in; and whether it was there."""
    found = []
    for line in lines:
        words = line.split()
        if words[:1] == ["@each"]:
            name, count = words[1], values.get(words[2], words[2])
            inner = raw_block(lines)
            for number in range(int(count)):
                found += block(iter(inner), values | {name: number})[0]
        elif words[:1] == ["@end"]:
            return found, True
        else:
            found.append(filled(line, values))
    return found, False


def raw_block(lines):
    """The lines up to the `@end` that belongs here, as they are."""
    found, depth = [], 1
    for line in lines:
        words = line.split()[:1]
        depth += (words == ["@each"]) - (words == ["@end"])
        if depth == 0:
            return found
        found.append(line)
    raise ValueError("a template has `@each` without `@end`")


def filled(line, values):
    def value(found):
        if found[1] not in values:
            raise ValueError(f"a template names @{found[1]}@, which nobody gave: {line.strip()}")
        return str(values[found[1]])

    return re.sub(r"@([A-Z][A-Z0-9_]*)@", value, line)
