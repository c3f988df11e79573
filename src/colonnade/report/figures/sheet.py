"""A sheet to draw on with matplotlib, in pixels from its upper left corner."""

import io
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from colonnade.errors import InputError
from colonnade.report.figures.colours import LIGHT
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.svg import Drawn, for_pages

# Pixels of a drawing for a page, for a telephone, and for half a page.
WIDE, NARROW, HALF = 720, 344, 360
SIZE, SMALL = 12.0, 11.0
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "colonnade", "text.parse_math": False, "font.family": "DejaVu Sans"}
# matplotlib's settings are those of the process: one drawing at a time has its own.
_SETTINGS_IN_USE = threading.Lock()
Point = tuple[float, float]


class Box(NamedTuple):
    """A rectangle of a sheet."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Tell whether they share any place."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


class Sheet:
    """What a figure is drawn on.

    Parameters
    ----------
    width, height : float
        In pixels, at the size at which type of 12 pixels is of that size.
    """

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure as Canvas

        self.width, self.height = width, height
        self._canvas = Canvas(figsize=(width / 72, height / 72), dpi=72)
        self._canvas.patch.set_visible(False)
        self._texts: dict[str, Drawn] = {}
        self._board: Any = self._canvas.add_axes((0, 0, 1, 1))
        self._board.set(xlim=(0, width), ylim=(height, 0))
        self._board.set_axis_off()
        self._order = 0

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        role: str = "ink",
        size: float = SIZE,
        align: str = "left",
        bold: bool = False,
        halo: bool = False,
    ) -> None:
        """Write a text whose middle is at this height; `halo` parts it from lines behind it."""
        gid = f"t{len(self._texts)}"
        self._texts[gid] = Drawn(text, bold=bold, halo=halo)
        # What is measured is not what is written: names may have letters that no typeface here has.
        stand_in = "x" * max(1, min(len(text), 40))
        look = {"color": LIGHT[role], "fontsize": size, "ha": align, "va": "baseline", "gid": gid}
        self._board.text(x, y + 0.36 * size, stand_in, zorder=self._next(), **look)

    def lines(self, pieces: Sequence[tuple[Point, Point]], role: str, width: float = 1.0) -> None:
        """Draw straight pieces, all alike, as one path."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        if not pieces:
            return
        corners = [corner for piece in pieces for corner in piece]
        path = Path(corners, [Path.MOVETO, Path.LINETO] * len(pieces))
        look = {"facecolor": "none", "edgecolor": LIGHT[role], "linewidth": width, "capstyle": "butt"}
        self._board.add_patch(PathPatch(path, clip_on=False, zorder=self._next(), **look))

    def line(self, points: Sequence[Point], role: str = "grid", width: float = 1.0, dashes: Any = None) -> None:
        """Draw a line through these points."""
        xs, ys = zip(*points, strict=True)
        style = {"linestyle": (0, dashes)} if dashes else {}
        look = {"color": LIGHT[role], "linewidth": width, "solid_capstyle": "butt"}
        self._board.plot(xs, ys, zorder=self._next(), clip_on=False, **look, **style)

    def boxes(self, places: Sequence[Box], role: str, *, opacity: float = 1.0) -> None:
        """Fill rectangles, all alike, as one path."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        if not places:
            return
        corners = [corner for box in places for corner in _corners(box)]
        path = Path(corners, [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(places))
        look = {"facecolor": (LIGHT[role], opacity), "edgecolor": "none", "zorder": self._next()}
        self._board.add_patch(PathPatch(path, clip_on=False, **look))

    def shape(self, points: Sequence[Point], role: str, *, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        from matplotlib.patches import Polygon

        look: dict[str, Any] = {"facecolor": (LIGHT[role], opacity), "edgecolor": "none", "zorder": self._next()}
        self._board.add_patch(Polygon(points, clip_on=False, **look))

    def mark(self, x: float, y: float, role: str, *, size: float = 8.0, shape: str = "o", hollow: bool = False) -> None:
        """Draw a mark, of a shape by matplotlib's letters; a hollow one is of the paper's colour inside."""
        inside = LIGHT["paper" if hollow else role]
        look = {"markerfacecolor": inside, "markeredgecolor": LIGHT[role], "markeredgewidth": 1.5 if hollow else 0.0}
        self._board.plot([x], [y], shape, markersize=size, clip_on=False, zorder=self._next(), **look)

    def axes(self, left: float, top: float, width: float, height: float) -> Any:
        """Lay out axes of matplotlib's here: quiet ones, with a faint grid behind what is drawn."""
        place = (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        axes = self._canvas.add_axes(place, zorder=-1)
        axes.patch.set_visible(False)
        axes.spines[:].set_visible(False)
        axes.tick_params(which="both", length=0, pad=5, labelsize=SMALL, labelcolor=LIGHT["muted"])
        axes.minorticks_off()
        axes.grid(visible=True, color=LIGHT["grid"], linewidth=0.8)
        axes.set_axisbelow(True)
        return axes

    def place(self, axes: Any, x: float, y: float) -> Point:
        """Say where on the sheet a point of the axes is."""
        across, up = axes.transData.transform((x, y))
        return float(across), float(self.height - up)

    def _next(self) -> float:
        self._order += 1
        return 3 + self._order / 1e6

    def drawn(self, label: str, kind: str) -> str:
        """Write what was drawn as one element of a page."""
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        written = io.StringIO()
        backend: Any = FigureCanvasSVG(self._canvas)
        backend.print_svg(written, metadata={"Date": None, "Creator": None})
        return for_pages(written.getvalue(), self._texts, label=label, kind=kind)


def _corners(box: Box) -> list[Point]:
    first = (box.left, box.top)
    return [first, (box.right, box.top), (box.right, box.bottom), (box.left, box.bottom), first]


def figure(title: str, description: str, draw: Callable[[float], Sheet], *, half: bool = False) -> Figure:
    """Draw a figure at the widths that pages need, and describe it."""
    widths = {"half": HALF} if half else {"wide": WIDE, "narrow": NARROW}
    with _own_settings():
        svg = "".join(draw(width).drawn(title, kind) for kind, width in widths.items())
    return Figure(svg, title, description)


def note(title: str, words: str) -> Figure:
    """Say why there is nothing to draw, in place of a figure."""

    def draw(width: float) -> Sheet:
        lines = textwrap.wrap(words, int(width / (0.61 * SIZE)))
        sheet = Sheet(width, 18 * len(lines) + 8)
        for i, line in enumerate(lines):
            sheet.text(0, 12 + 18 * i, line, role="muted")
        return sheet

    return figure(title, words, draw)


@contextmanager
def _own_settings() -> Iterator[None]:
    try:
        import matplotlib
    except ImportError as error:
        raise InputError(
            f"The figures of a report need matplotlib: {error}. Install it: pip install 'colonnade[report]'."
        ) from error
    with _SETTINGS_IN_USE, matplotlib.rc_context():
        matplotlib.rcdefaults()  # and not what somebody chose for figures of their own
        settings: Any = matplotlib.rcParams
        settings.update(SETTINGS)
        yield
