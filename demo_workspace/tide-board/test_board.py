"""What the tide board shows."""

import unittest

from board import line, next_high


class BoardTest(unittest.TestCase):
    def test_the_next_one_is_shown(self) -> None:
        self.assertEqual(line([290, 1035], 300), "High water 17:15")

    def test_one_at_this_very_minute_is_not_over(self) -> None:
        self.assertEqual(next_high([290, 1035], 290), 290)

    def test_after_the_last_one_there_is_none(self) -> None:
        self.assertEqual(line([290, 1035], 1036), "No high water today")


if __name__ == "__main__":
    unittest.main()
