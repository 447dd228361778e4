"""Tests of the fares."""

import unittest

from fares import BICYCLE, CHILD, FULL, fare, group


class Fares(unittest.TestCase):
    def test_grown_up(self) -> None:
        self.assertEqual(fare(40), FULL)

    def test_child(self) -> None:
        self.assertEqual(fare(7), CHILD)

    def test_child_of_twelve(self) -> None:
        self.assertEqual(fare(12), CHILD)

    def test_group_with_a_bicycle(self) -> None:
        self.assertEqual(group([40, 7], bicycles=1), FULL + CHILD + BICYCLE)


if __name__ == "__main__":
    unittest.main()
