"""Charts as SVG, readable on light and dark pages: bars, and lines over logarithmic axes."""

import html
import math

WIDTH = 760
LEFT, RIGHT, TOP = 190, 30, 46
ROW, BAR = 14, 11
PLOT_HEIGHT = 300
# Distinguishable without colour vision; those of HAProxy, nginx and further peers follow Ballast's.
COLOURS = {"ballast": "#d55e00", "haproxy": "#0072b2", "nginx": "#009e73"}
OTHERS = ["#cc79a7", "#b8860b", "#56b4e9", "#7f7f7f"]
STYLE = """
text{font:12px system-ui,sans-serif;fill:#24292f}
.title{font-size:15px;font-weight:600}
.faint{fill:#57606a}
.grid{stroke:#d0d7de;stroke-width:1}
.mark{stroke:#57606a;stroke-width:1;stroke-dasharray:4 3}
.page{fill:#ffffff}
.value{fill:#57606a;paint-order:stroke;stroke:#ffffff;stroke-width:3px}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.faint{fill:#9198a1}.grid{stroke:#3d444d}.mark{stroke:#9198a1}.page{fill:#0d1117}
.value{fill:#9198a1;stroke:#0d1117}}
"""


def colour(program, programs):
    others = [one for one in programs if one not in COLOURS]
    return COLOURS.get(program) or OTHERS[others.index(program) % len(OTHERS)]


def document(height, title, parts):
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{html.escape(title)}">\n<style>{STYLE}</style>\n'
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>\n'
    )
    return head + text(14, 24, title, "title") + "".join(parts) + "</svg>\n"


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(str(words))}</text>\n'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>\n'


def legend(programs, y):
    parts, x = [], WIDTH - RIGHT
    for program in reversed(programs):
        x -= 7 * len(program) + 26
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" rx="2" fill="{colour(program, programs)}"/>\n')
        parts.append(text(x + 14, y, program))
    return parts


def short(number):
    """A number as an axis shows it."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"


def bars(title, rows, mark=None):
    """Rows of a label and the value of each program; with `mark` a line at this value."""
    programs = list(dict.fromkeys(program for _, values in rows for program in values))
    greatest = max([value for _, values in rows for value in values.values()] + [mark or 0])
    step = nice_step(greatest)
    greatest = max(greatest * 1.02, step)
    scale = (WIDTH - LEFT - RIGHT - 40) / greatest
    parts, y = legend(programs, 24 + 18), TOP + 14
    bottom = y + sum(len(values) * ROW + 10 for _, values in rows)
    for number in range(int(greatest / step) + 1):
        x = LEFT + number * step * scale
        parts.append(line(x, TOP + 6, x, bottom, "grid"))
        parts.append(text(x, bottom + 16, short(number * step), "faint", "middle"))
    if mark:
        parts.append(line(LEFT + mark * scale, TOP + 6, LEFT + mark * scale, bottom, "mark"))
    for label, values in rows:
        parts.append(text(LEFT - 8, y + len(values) * ROW / 2 + 3, label, anchor="end"))
        for program, value in values.items():
            fill = colour(program, programs)
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{max(value * scale, 1):.1f}" height="{BAR}" rx="2" fill="{fill}"/>\n'
            )
            parts.append(text(LEFT + value * scale + 5, y + BAR - 1.5, f"{value:.3g}" if value < 1000 else f"{value:,.0f}", "value"))
            y += ROW
        y += 10
    return document(round(bottom + 28), title, parts)


def nice_step(greatest):
    """A round distance between the marks of an axis."""
    return round_up(max(greatest, 1e-9) / 6)


class LogAxis:
    """A logarithmic axis between round numbers; 0 stands a little below the least other number."""

    def __init__(self, numbers, start, end):
        positive = [number for number in numbers if number > 0] or [1]
        self.low, self.high = round_down(min(positive)), round_up(max(positive))
        if self.low == self.high:
            self.low, self.high = self.low / 2, self.high * 2
        self.has_zero = any(number <= 0 for number in numbers)
        self.start, self.end = start, end

    def at(self, number):
        whole = math.log10(self.high / self.low)
        least = -0.25 * whole if self.has_zero else 0.0
        power = math.log10(number / self.low) if number > 0 else least
        return self.start + (power - least) / (whole - least) * (self.end - self.start)

    def ticks(self):
        factors = (1, 2, 5) if self.high / self.low <= 200 else (1,)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        numbers = [10.0**power * factor for power in powers for factor in factors]
        shown = [number for number in numbers if self.low * 0.999 <= number <= self.high * 1.001]
        return [0, *shown] if self.has_zero else shown


def round_up(number):
    """The least of 1, 2, 5, 10, 20, ... that is not less."""
    power = 10.0 ** math.floor(math.log10(number))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= number * 0.999)


def round_down(number):
    """The greatest of them that is not more."""
    power = 10.0 ** math.floor(math.log10(number))
    return next(power * factor for factor in (10, 5, 2, 1) if power * factor <= number * 1.001)


def lines(title, series, x_label, y_label):
    """Lines of points (x, y) by program, over logarithmic axes."""
    left, top = 70, TOP + 12
    bottom, right = top + PLOT_HEIGHT, WIDTH - RIGHT
    programs = list(series)
    x_axis = LogAxis([x for points in series.values() for x, _ in points], left, right)
    y_axis = LogAxis([y for points in series.values() for _, y in points], bottom, top)
    parts = legend(programs, 24 + 18)
    for number in x_axis.ticks():
        x = x_axis.at(number)
        parts.append(line(x, top, x, bottom, "grid"))
        parts.append(text(x, bottom + 16, short(number), "faint", "middle"))
    for number in y_axis.ticks():
        y = y_axis.at(number)
        parts.append(line(left, y, right, y, "grid"))
        parts.append(text(left - 6, y + 4, short(number), "faint", "end"))
    for program, points in series.items():
        fill = colour(program, programs)
        places = [(x_axis.at(x), y_axis.at(y)) for x, y in sorted(points)]
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{way}" fill="none" stroke="{fill}" stroke-width="2"/>\n')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{fill}"/>\n' for x, y in places]
    parts.append(text((left + right) / 2, bottom + 36, x_label, "", "middle"))
    parts.append(text(14, top - 8, y_label))
    return document(round(bottom + 48), title, parts)
