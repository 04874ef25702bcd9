"""The table of `bench/chaos`, and what is told of a load's report."""


class Table:
    """Rows: a measured value, its target, and whether it is met."""

    def __init__(self):
        self.rows = []

    def add(self, row, what, value, target="", holds=None):
        self.rows.append({"row": row, "what": what, "value": value, "target": target, "holds": holds})
        mark = {None: "", True: "ok", False: "MISSED"}[holds]
        print(f"  {row:10} {what:46} {value:>16}  {target:22} {mark}", flush=True)

    def explain(self, lines):
        """Adds an explanation to the row above."""
        self.rows[-1]["explained"] = lines
        for line in lines:
            print(f"    {line}", flush=True)

    def missing(self, row, what, why):
        self.add(row, what, "-", why[:60], False)


def failures(counted):
    return counted["failed"] + counted["retried"] + counted["unsent"]


def classes(counted):
    found = {name: count for name, count in counted["failures"].items() if count}
    found |= {name: counted[name] for name in ("retried", "unsent") if counted[name]}
    return ", ".join(f"{count} {name}" for name, count in found.items())
