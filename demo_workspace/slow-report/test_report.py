"""Tests for report.py. Run: python3 -m unittest"""

import unittest

from report import monthly_total, report


def row(sold: str, booked: str, cents: int, refund: bool = False) -> dict:
    return {"sold": sold, "booked": booked, "cents": cents, "refund": refund}


ROWS = [
    row("2031-05-03 10:15", "2031-05-03 10:15", 1250),
    row("2031-05-17 16:02", "2031-05-17 16:03", 4900),
    row("2031-05-20 11:30", "2031-05-20 11:31", 900, refund=True),
    row("2031-05-31 22:40", "2031-06-01 00:20", 3300),
]


class MonthlyTotalTest(unittest.TestCase):
    def test_a_plain_sale_counts(self) -> None:
        self.assertEqual(monthly_total(ROWS[:1], "2031-05"), 1250)

    def test_a_refund_is_taken_off(self) -> None:
        self.assertEqual(monthly_total(ROWS[:3], "2031-05"), 5250)

    def test_a_late_sale_belongs_to_its_own_month(self) -> None:
        self.assertEqual(monthly_total(ROWS, "2031-05"), 8550)

    def test_a_month_without_sales_is_zero(self) -> None:
        self.assertEqual(monthly_total(ROWS[:3], "2031-04"), 0)


class ReportTest(unittest.TestCase):
    def test_it_has_a_line_for_each_month(self) -> None:
        self.assertEqual(len(report(ROWS).splitlines()), 3)


if __name__ == "__main__":
    unittest.main()
