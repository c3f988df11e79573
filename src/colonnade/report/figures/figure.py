"""What every figure is, however it was drawn."""

from typing import NamedTuple


class Figure(NamedTuple):
    """A figure for a page: drawn, and in words.

    Parameters
    ----------
    svg : str
        One ``<svg>`` element, or two, of which `FIGURE_CSS` shows the one that fits the screen. They have no ids, no
        styles, no scripts and no references; names in them are escaped.
    title : str
        What it shows, in a few words; also the accessible name of what is drawn. Plain text: escape it.
    description : str
        What is to be seen in it, in sentences. Plain text: escape it.
    """

    svg: str
    title: str
    description: str
