"""The chart of the docs: two panels of bars as SVG, written by hand."""

import math
from html import escape

WIDTH, LABEL, BAR, GAP = 760, 220, 18, 8
OURS, OTHERS, INK, PAPER = "#2563a8", "#9aa5b1", "#1f2933", "#ffffff"


def draw(found):
    """Bars of the small task by every program, and of the growth with the size of the repository."""
    programs = found.get("peers") or found.get("small") or {}
    side = [(name, row["own"], name.startswith("code-commit")) for name, row in programs.items()]
    growth = []
    for files, row in found.get("sizes", {}).items():
        growth += [(f"{int(files):,} files: whole run", row["run"]["wall"], True), ("git status", row["status"]["wall"], False)]
    first, below = panel("Two-round task, wall − server time (ms, logarithmic)", side, 16)
    second, below = panel("The same task as the repository grows (ms, logarithmic)", growth, below + 24)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {below}" width="{WIDTH}" height="{below}" '
            f'font-family="sans-serif" font-size="13" fill="{INK}">\n<title>code-commit beside other programs</title>\n'
            f'<rect width="{WIDTH}" height="{below}" fill="{PAPER}"/>\n{first}{second}</svg>\n')


def panel(title, bars, top):
    """One panel; gives it and where it ends."""
    lines = [f'<text x="12" y="{top + 14}" font-weight="bold">{escape(title)}</text>']
    values = [value for _, value, _ in bars] or [1]
    low, high = 10 ** math.floor(math.log10(min(values))), max(values)
    room = WIDTH - LABEL - 110
    y = top + 28
    for name, value, is_ours in bars:
        # Never shorter than a hair, also where it is the smallest.
        length = 3 + room * math.log(value / low) / math.log(high / low)
        lines += [f'<text x="{LABEL - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>',
                  f'<rect x="{LABEL}" y="{y}" width="{length:.0f}" height="{BAR}" fill="{OURS if is_ours else OTHERS}"/>',
                  f'<text x="{LABEL + length + 6:.0f}" y="{y + 14}">{value:,.{1 if value < 100 else 0}f} ms</text>']
        y += BAR + GAP
    return "\n".join(lines) + "\n", y + 8
