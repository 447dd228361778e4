"""Copies of the workspace as it was at each task's end, and sessions that are forked from them."""
