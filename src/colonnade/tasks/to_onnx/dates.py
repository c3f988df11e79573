"""Parts of moments, which come as whole microseconds since 1970 in UTC, the least whole number where one is missing.

The calendar is computed with whole numbers, as https://howardhinnant.github.io/date_algorithms.html has it: a year
begins in March, so that the leap day is its last, and eras of 400 years are alike.
"""

from collections.abc import Sequence

import numpy as np

from colonnade.preparation.reading import FIRST_DAY, LAST_DAY, TICKS_A_DAY
from colonnade.preparation.rules import DatePart
from colonnade.tasks.to_onnx.graph import Graph

A_DAY = TICKS_A_DAY["us"]
SECOND, MINUTE, HOUR = 10**6, 60 * 10**6, 3600 * 10**6
NO_MOMENT = int(np.iinfo(np.int64).min)
ERA, EPOCH = 146_097, 719_468  # days in 400 years, and from March of the year 0 to 1970
THURSDAY = 3  # Monday is 0


def date_parts(graph: Graph, moments: str, parts: Sequence[DatePart]) -> tuple[str, list[str]]:
    """Say which moments are missing, and take these parts of the others: NaN where one is missing or refused."""
    calendar = _Calendar(graph, moments)
    gaps = graph.node("Equal", moments, graph.constant(NO_MOMENT))
    return gaps, [calendar.part(part) for part in parts]


class _Calendar:
    """Writes down how each part is computed."""

    def __init__(self, graph: Graph, moments: str) -> None:
        self._graph = graph
        at_least, below = graph.constant(FIRST_DAY * A_DAY), graph.constant(LAST_DAY * A_DAY)
        self._held = graph.node(
            "And", graph.node("GreaterOrEqual", moments, at_least), graph.node("Less", moments, below)
        )
        # What is missing is refused, too, unless something stands for it; nothing below overflows.
        self._moments = graph.node("Where", self._held, moments, graph.constant(0))
        self._time = self._rest(self._moments, A_DAY)
        self._days = self._by(graph.node("Sub", self._moments, self._time), A_DAY)

    def part(self, part: DatePart) -> str:
        graph = self._graph
        if part == "days":
            whole = graph.node("Div", graph.double(self._moments), graph.constant(float(A_DAY)))
        else:
            whole = graph.double(getattr(self, f"_{part}")())
        return graph.node("Where", self._held, whole, graph.constant(np.nan))

    def _hour(self) -> str:
        return self._by(self._time, HOUR)

    def _minute(self) -> str:
        return self._by(self._rest(self._time, HOUR), MINUTE)

    def _second(self) -> str:
        return self._by(self._rest(self._time, MINUTE), SECOND)

    def _weekday(self) -> str:
        # The first of January 1970 was a Thursday.
        return self._rest(self._plus(self._days, THURSDAY), 7)

    def _year(self) -> str:
        return self._date(self._days)[0]

    def _month(self) -> str:
        return self._date(self._days)[1]

    def _quarter(self) -> str:
        return self._plus(self._by(self._plus(self._month(), -1), 3), 1)

    def _day(self) -> str:
        return self._date(self._days)[2]

    def _day_of_year(self) -> str:
        return self._plus(self._graph.node("Sub", self._days, self._new_year(self._year())), 1)

    def _week(self) -> str:
        """Count weeks of the year that the Thursday is in."""
        graph = self._graph
        thursday = self._plus(graph.node("Sub", self._days, self._weekday()), THURSDAY)
        since = graph.node("Sub", thursday, self._new_year(self._date(thursday)[0]))
        return self._plus(self._by(since, 7), 1)

    def _date(self, days: str) -> tuple[str, str, str]:
        """Tell year, month and day of days since 1970."""
        graph = self._graph
        shifted = self._plus(days, EPOCH)
        of_era = self._rest(shifted, ERA)
        era = self._by(graph.node("Sub", shifted, of_era), ERA)
        # Leap days that are gone: every 4 years, not every 100, but every 400.
        gone = graph.node("Sub", self._by(of_era, 36_524), self._by(of_era, 1_460))
        gone = graph.node("Sub", gone, self._by(of_era, ERA - 1))
        year_of_era = self._by(graph.node("Add", of_era, gone), 365)
        day_of_year = graph.node("Sub", of_era, self._days_before(year_of_era))
        place = self._by(self._plus(self._times(day_of_year, 5), 2), 153)
        first = self._by(self._plus(self._times(place, 153), 2), 5)
        day = self._plus(graph.node("Sub", day_of_year, first), 1)
        is_next = graph.node("Less", graph.constant(9), place)
        month = graph.node("Where", is_next, self._plus(place, -9), self._plus(place, 3))
        year = graph.node("Add", self._times(era, 400), year_of_era)
        return graph.node("Where", is_next, self._plus(year, 1), year), month, day

    def _new_year(self, year: str) -> str:
        """Count days from 1970 to the first of January, which is day 306 of the year before, as it begins in March."""
        before = self._plus(year, -1)
        of_era = self._rest(before, 400)
        era = self._by(self._graph.node("Sub", before, of_era), 400)
        days = self._graph.node("Add", self._times(era, ERA), self._days_before(of_era))
        return self._plus(days, 306 - EPOCH)

    def _days_before(self, year_of_era: str) -> str:
        graph = self._graph
        leap = graph.node("Sub", self._by(year_of_era, 4), self._by(year_of_era, 100))
        return graph.node("Add", self._times(year_of_era, 365), leap)

    def _plus(self, values: str, number: int) -> str:
        return self._graph.node("Add", values, self._graph.constant(number))

    def _times(self, values: str, number: int) -> str:
        return self._graph.node("Mul", values, self._graph.constant(number))

    def _by(self, values: str, number: int) -> str:
        """Divide what is not negative, or a multiple: ONNX cuts towards 0."""
        return self._graph.node("Div", values, self._graph.constant(number))

    def _rest(self, values: str, number: int) -> str:
        return self._graph.node("Mod", values, self._graph.constant(number))
