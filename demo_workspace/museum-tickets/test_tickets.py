"""Tests for tickets.py. Run: python3 -m unittest"""

import unittest

from tickets import price, total


class TicketTest(unittest.TestCase):
    def test_an_adult_pays_twelve_hundred(self) -> None:
        self.assertEqual(price(30), 1200)

    def test_birthday_fourteen_pays_as_an_adult(self) -> None:
        self.assertEqual(price(14), 1200)

    def test_child_pays_less(self) -> None:
        self.assertEqual(price(13), 500)

    def test_group_of_nine_pays_the_sum(self) -> None:
        self.assertEqual(total([30] * 9), 9 * 1200)

    def test_group_of_ten_gets_a_discount(self) -> None:
        self.assertEqual(total([30] * 10), 9600)


if __name__ == "__main__":
    unittest.main()
