"""What a ticket costs, in whole cents."""

FULL = 640
CHILD = 250
CHILD_UNTIL = 12  # years; who is as old as that still pays the child's fare
BICYCLE = 150


def fare(age: int) -> int:
    """Return the fare of one passenger of this age in years."""
    if age < CHILD_UNTIL:
        return CHILD
    return FULL


def group(ages: list[int], bicycles: int = 0) -> int:
    """Return what a group pays together, its bicycles included."""
    return sum(fare(age) for age in ages) + bicycles * BICYCLE
