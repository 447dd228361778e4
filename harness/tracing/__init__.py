"""The third reading of a session's events: what was worked on, when, and inside of what."""
