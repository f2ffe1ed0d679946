"""Learn arrow, memory: how the M places of the memory are shared among T machines."""

from collections.abc import Sequence


def allocate(size: int, available: Sequence[int]) -> list[int]:
    """Share ``size`` places among tasks that have ``available`` windows each, oldest task first.

    Everybody gets the same number, except that a task with fewer windows gives its rest away, and the
    remainder of the division goes one by one to the oldest tasks: as tasks are added, the places of an old
    task then only ever shrink, so that it never needs back what it has dropped.
    """
    if size < sum(count > 0 for count in available):
        raise ValueError(f"A memory of {size} windows cannot keep one of each of {len(available)} machines.")
    given = [0] * len(available)
    open_tasks = [place for place, count in enumerate(available) if count > 0]
    while open_tasks:
        free = size - sum(given)
        equal = free // len(open_tasks)
        small = [place for place in open_tasks if available[place] <= equal]
        if not small:
            for rank, place in enumerate(open_tasks):
                given[place] = equal + (rank < free % len(open_tasks))
            break
        for place in small:
            given[place] = available[place]
        open_tasks = [place for place in open_tasks if available[place] > equal]
    return given
