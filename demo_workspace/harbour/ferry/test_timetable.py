"""Tests for timetable.py. Run: python3 -m unittest"""

import unittest

from timetable import BETWEEN, gaps


class TimetableTest(unittest.TestCase):
    def test_the_crew_has_its_time(self) -> None:
        self.assertTrue(all(gap >= BETWEEN for gap in gaps()))


if __name__ == "__main__":
    unittest.main()
