"""The monthly report of a museum shop, in whole cents."""

OPEN_MONTHS = ("2031-04", "2031-05", "2031-06")


def monthly_total(rows: list[dict], month: str) -> int:
    """Return the sales of `month`, such as "2031-05", in cents; refunds are taken off.

    rows: `sold` and `booked` are times such as "2031-05-31 22:40", `cents` is a whole number, `refund` true or false.
    """
    total = 0
    for row in rows:
        if row["booked"].startswith(month):
            total += -row["cents"] if row["refund"] else row["cents"]
    return total


def report(rows: list[dict]) -> str:
    """Return one line a month: the month and its total in euros."""
    totals = ((month, monthly_total(rows, month)) for month in OPEN_MONTHS)
    return "\n".join(f"{month}  {cents / 100:>12,.2f}" for month, cents in totals)
