"""Compares the timetable with the tides. Run: python3 check.py"""

from timetable import BETWEEN, SAILINGS, gaps, minutes

# When the channel is too shallow, from tides.md.
SHALLOW = (("10:05", "11:20"), ("22:35", "23:40"))

stuck = [time for time in SAILINGS for first, last in SHALLOW if minutes(first) <= minutes(time) <= minutes(last)]
short = [gap for gap in gaps() if gap < BETWEEN]
if stuck or short:
    print("FAILED: at low water", stuck, "too short between two", short)
    raise SystemExit(1)
print(f"OK: {len(SAILINGS)} sailings, none at low water, at least {min(gaps())} minutes between two")
