"""All workloads, in the order of the report."""

from workloads import attack, backends, bodies, crowd, fairness, idle, latency, maps, okd, rules, slow, start, tables, traffic

WORKLOADS = [
    one
    for family in (traffic, latency, fairness, idle, crowd, bodies, backends, rules, maps, tables, start, slow, okd, attack)
    for one in family.WORKLOADS
]
NAMES = {one.name: one for one in WORKLOADS}
GROUPS = list(dict.fromkeys(one.group for one in WORKLOADS))


def chosen(words, is_all=False):
    """The workloads of these names and groups; without any, the default set, or all of them."""
    if not words:
        return [one for one in WORKLOADS if is_all or one.is_default]
    if unknown := [word for word in words if word not in NAMES and word not in GROUPS]:
        raise SystemExit(f"bench: no workload and no group {', '.join(unknown)}: `bench/run --list` names all")
    return [one for one in WORKLOADS if one.name in words or one.group in words]
