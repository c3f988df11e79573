"""Roles of colours, and the style sheet by which a page gives them theirs, in a light and in a dark theme.

The series are Okabe and Ito's colours, which people who confuse colours tell apart; in the dark theme they are lighter.
"""

# Drawn with these; each is in the page a class, so that its theme decides. No two may be alike.
LIGHT = {
    "ink": "#1b2230",
    "muted": "#57606a",
    "grid": "#d5dae0",
    "paper": "#ffffff",
    "series-1": "#0072b2",
    "series-2": "#d55e00",
    "series-3": "#009e73",
    "series-4": "#b0578d",
    "series-5": "#a87400",
    "series-6": "#3d8fc4",
}
DARK = {
    "ink": "#e6e9ef",
    "muted": "#9aa5b1",
    "grid": "#3a424c",
    "paper": "#14181f",
    "series-1": "#56b4e9",
    "series-2": "#ff9457",
    "series-3": "#34c79a",
    "series-4": "#e29bc4",
    "series-5": "#e6b422",
    "series-6": "#9fd3f2",
}
SERIES = tuple(role for role in LIGHT if role.startswith("series"))
# Where a screen is narrower, in CSS pixels, the narrow drawing is shown.
BREAK = 600


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{role}:{colour};" for role, colour in colours.items())


def _rules() -> str:
    painted = "".join(
        f".fig-f-{role}{{fill:var(--{role},{colour})}}.fig-s-{role}{{stroke:var(--{role},{colour})}}"
        for role, colour in LIGHT.items()
    )
    return (
        ".fig{display:block;width:100%;height:auto;"
        "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}"
        ".fig-wide{max-width:900px}.fig-narrow{display:none;max-width:480px}.fig-half{max-width:440px}"
        f"@media (max-width:{BREAK - 1}px){{.fig-wide{{display:none}}.fig-narrow{{display:block}}}}" + painted
    )


# Declarations for the page's themes: put them between the braces of its selectors, `:root{...}` for one.
FIGURE_LIGHT = _variables(LIGHT)
FIGURE_DARK = _variables(DARK)
# Rules for all figures: put them into the page's style element, once.
FIGURE_CSS = _rules()
