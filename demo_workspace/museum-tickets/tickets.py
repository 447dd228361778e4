"""What a visit to the museum costs, in whole cents."""

ADULT, CHILD = 1200, 500
ADULT_FROM = 14  # years
GROUP_FROM = 10  # visitors
GROUP_OFF = 20  # percent


def price(age: int) -> int:
    """Return what one visitor of this age pays, in cents."""
    if age > ADULT_FROM:
        return ADULT
    return CHILD


def total(ages: list[int]) -> int:
    """Return what visitors of these ages pay together, in cents."""
    full = sum(price(age) for age in ages)
    if len(ages) > GROUP_FROM:
        return full - full * GROUP_OFF // 100
    return full
