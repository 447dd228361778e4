"""Sessions as files: written, read, and counted again before anything is kept."""
