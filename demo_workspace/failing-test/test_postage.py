"""Tests for postage.py. Run: python3 -m unittest"""

import unittest

from postage import EXPRESS, price, total


class PriceTest(unittest.TestCase):
    def test_light_letter_pays_the_first_band(self) -> None:
        self.assertEqual(price(5), 95)

    def test_letter_at_the_limit_stays_in_its_band(self) -> None:
        self.assertEqual(price(20), 95)

    def test_heavier_letter_pays_the_next_band(self) -> None:
        self.assertEqual(price(51), 210)

    def test_express_costs_extra(self) -> None:
        self.assertEqual(price(5, express=True), 95 + EXPRESS)

    def test_too_heavy_letter_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            price(1001)


class TotalTest(unittest.TestCase):
    def test_total_adds_up(self) -> None:
        self.assertEqual(total([5, 30]), 95 + 120)


if __name__ == "__main__":
    unittest.main()
