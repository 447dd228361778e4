"""The tools of lab 01, and the copy of the folder that they work on."""
