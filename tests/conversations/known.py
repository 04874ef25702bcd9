"""What answers may differ in: times, ids, and rows with a reason."""

import re
import tomllib


class Row:
    """A row of known.toml."""

    def __init__(self, name, row):
        self.name, self.used = name, False
        self.table, self.command = (re.compile(row.pop(key, "")) for key in ("table", "command"))
        self.left_out = [re.compile(pattern, re.M) for pattern in row.pop("left_out", [])]
        self.both = re.compile(row.pop("both"), re.S) if "both" in row else None
        if not row.pop("reason", "") or row or not (self.left_out or self.both):
            raise SystemExit(f"known.toml, {name!r}: a reason, and `left_out` or `both`")

    def is_about(self, table, step):
        return bool(self.table.search(table) and self.command.search(step.text))


class Known:
    """The rows of known.toml."""

    def __init__(self, path):
        self.rows = [Row(name, row) for name, row in tomllib.loads(path.read_text()).items()]

    def leave_out(self, table, step, answer):
        """An answer without what is a time, an id, or no part of the comparison."""
        for row in self.rows:
            if row.left_out and row.is_about(table, step):
                for pattern in row.left_out:
                    answer, count = pattern.subn(without_groups, answer)
                    row.used |= count > 0
        return answer

    def explains(self, table, step, haproxy, ballast):
        """Whether a row says that two answers differ so."""
        for row in self.rows:
            if row.both and row.is_about(table, step) and row.both.fullmatch(f"{haproxy}\0{ballast}"):
                row.used = True
                return True
        return False

    def unused(self):
        return [row.name for row in self.rows if not row.used]


def without_groups(found):
    """What was found, with an asterisk for each group; nothing of it, without groups."""
    if not found.re.groups:
        return ""
    text, end = found.string, found.start()
    parts = []
    for number in range(1, found.re.groups + 1):
        if found.start(number) >= 0:
            parts += [text[end:found.start(number)], "*"]
            end = found.end(number)
    return "".join(parts) + text[end:found.end()]
