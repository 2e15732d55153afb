# tools/bench/lib/churn_figures.py - from what nodes have told to what a fault costs.
"""Wall-time goodput    1 - lost / time. A change of the view loses the time from the end of the last iteration before it to the end of
                       the first one after it, less an iteration: noticing, agreeing, rebuilding and training again are in it.
   Work goodput         kept / (kept + thrown away), in iterations. A loss throws away the iteration under way, and those that the
                       leader had told and the others did not have whole.
"""
import re
import statistics


def spread(values, unit=1):
    """median (median absolute deviation, largest, n)"""
    if not values:
        return "-"
    middle = statistics.median(values)
    mad = statistics.median(abs(v - middle) for v in values)
    return f"{middle * unit:.0f} ({mad * unit:.0f}, {max(values) * unit:.0f}, {len(values)})"


def iteration_seconds(steps):
    gaps = [b[0] - a[0] for a, b in zip(steps, steps[1:]) if b[1] == a[1] + 1]
    return statistics.median(gaps) if gaps else 0.0


def lost_seconds(lab, epoch, iteration):
    """What the change to this view has lost; None: the run has ended before its first iteration was told."""
    at, first, _ = lab.views[epoch]
    before = [s for s in lab.steps if s[0] <= at and s[1] < first]
    after = [s for s in lab.steps if s[0] > at and s[1] >= first]
    if not before or not after:
        return None
    last, next_one = max(before, key=lambda s: s[1]), min(after)
    return max(0.0, next_one[0] - last[0] - iteration * (next_one[1] - last[1]))


def thrown_away(lab, epoch):
    """Iterations that a loss has thrown away: the one under way, and those told that are trained again."""
    at, first, _ = lab.views[epoch]
    return 1 + len({c for t, c in lab.steps if t <= at and c >= first})


class Costs:
    """What one fault has cost, in seconds; None where nobody has told it."""

    def __init__(self, fault, lab, iteration):
        self.kind = fault.kind
        began, first, _ = lab.views[fault.gone]
        about = re.compile(rf"worker {fault.seat}\b")
        said = [t for t, h, text in lab.notes if fault.at - 0.01 <= t <= began and h != fault.member.host and about.search(text)
                and not text.startswith(("view ", "debug"))]
        agreed = [t for t, _, text in lab.notes if t >= fault.at and re.match(rf"view {fault.gone}: worker \d", text)]
        after = [t for t, c in lab.steps if t > began and c >= first]
        self.noticed = min(said) - fault.at if said and fault.kind != "leave" else None
        self.agreed = min(agreed) - (min(said) if said else fault.at) if agreed else None
        self.rebuilt = began - min(agreed) if agreed else None
        self.again = min(after) - began if after else None
        self.lost = lost_seconds(lab, fault.gone, iteration)
        self.joined = lost_seconds(lab, fault.back, iteration) if fault.back and fault.back != fault.gone else None


def table(faults, lab, every):
    """Lines of a table by kind of fault, and the goodput of all."""
    if len(lab.steps) < 2:
        return ["no iteration was told"]
    iteration = iteration_seconds(lab.steps)
    costs = [Costs(f, lab, iteration) for f in faults if f.gone]
    lines = ["| fault | noticed ms | agreed ms | rebuilt ms | trained again ms | lost ms | lost by its return ms | goodput, one every "
             f"{every:g} s |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for kind in sorted({c.kind for c in costs}):
        of_kind = [c for c in costs if c.kind == kind]
        cells = [[v for c in of_kind if (v := getattr(c, name)) is not None]
                 for name in ("noticed", "agreed", "rebuilt", "again", "lost", "joined")]
        lost = sum(statistics.mean(v) if v else 0.0 for v in cells[4:6])
        lines.append(f"| {kind} | " + " | ".join(spread(v, 1e3) for v in cells) + f" | {100 * (1 - lost / every):.1f} % |")
    begin, end = lab.steps[0][0], lab.steps[-1][0]
    epochs = [e for e in sorted(lab.views) if lab.views[e][0] > begin]
    lost = sum(v for e in epochs if (v := lost_seconds(lab, e, iteration)) is not None)
    kept = max(c for _, c in lab.steps) + 1
    away = sum(thrown_away(lab, f.gone) for f in faults if f.gone and f.kind != "leave")
    lines += ["", f"An iteration takes {1e3 * iteration:.0f} ms (median). Of {end - begin:.0f} s, {lost:.1f} s were lost: wall-time goodput "
              f"{100 * (1 - lost / (end - begin)):.1f} %.", f"{kept} iterations are kept, {away} were thrown away: work goodput "
              f"{100 * kept / (kept + away):.2f} %."]
    return lines
