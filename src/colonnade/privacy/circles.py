"""Who shares secrets with whom in a secure phase: all with all where parties are few, else each with some others.

The parties stand in a circle, in the order of the names that their owners pinned, and each shares masks with the `NEAR`
nearest, half of them on either side. Nobody chooses its neighbours: neither the server, nor a party, nor a seed. A sum
over some of the honest parties is left without a mask only where those that join forces with the server stand between
them and the rest: half of `NEAR` side by side at both ends. Fewer than `NEAR`, wherever they stand, learn the sum over
all honest parties, and nothing of a part of these.

The same holds for what all must see alike: each compares it with its neighbours, and so all honest parties have it
alike.
"""

from dataclasses import dataclass

# As many parties have to join forces with the server before it learns a sum over fewer than all others.
NEAR = 32


@dataclass(frozen=True)
class Circle:
    """Who shares secrets with whom.

    Parameters
    ----------
    near : int
        With how many others each does, an even number; with all where there are no more.
    hubs : tuple of int
        Places of parties that share secrets with all.
    """

    near: int = NEAR
    hubs: tuple[int, ...] = ()

    def around(self, place: int, count: int) -> tuple[int, ...]:
        """Give the places, ascending, of all that the one at a place, among so many, shares secrets with; its own too.

        Who is in somebody's circle has it in its own.
        """
        if place in self.hubs or self.has_all(count):
            return tuple(range(count))
        beside = range(place - self.near // 2, place + self.near // 2 + 1)
        return tuple(sorted({each % count for each in beside} | set(self.hubs)))

    def has_all(self, count: int) -> bool:
        """Tell whether all of so many share secrets with all."""
        return count <= self.near + 1

    def around_each(self, count: int) -> list[tuple[int, ...]]:
        """Give that of each place."""
        return [self.around(place, count) for place in range(count)]


# Masks that cancel in the sum of all.
NEIGHBOURS = Circle()
# Where each party needs all others.
ALL = Circle(near=1 << 32)
