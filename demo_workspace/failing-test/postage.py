"""What a letter costs, in whole cents."""

BANDS = ((20, 95), (50, 120), (250, 210), (1000, 380))
EXPRESS = 450


def price(grams: int, express: bool = False) -> int:
    """Return the postage for a letter of `grams`, in cents.

    Raises ValueError when the letter weighs nothing or more than the heaviest band.
    """
    if grams <= 0:
        raise ValueError("a letter weighs at least 1 g")
    for limit, cents in BANDS:
        if grams < limit:
            return cents + (EXPRESS if express else 0)
    raise ValueError(f"{grams} g is too heavy for a letter")


def total(letters: list[int], express: bool = False) -> int:
    """Return the postage for several letters together, in cents."""
    return sum(price(grams, express) for grams in letters)
