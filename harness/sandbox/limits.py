"""What one command may use at most. Sizes in bytes."""

MAX_PROCESSES = 256
# Held by all its processes together, and by each as addresses.
MAX_MEMORY = 2 * 1024**3
MAX_ADDRESSES = 4 * 1024**3
MAX_FILE = 256 * 1024**2
MAX_OPEN_FILES = 1024
MAX_OUTPUT = 16 * 1024**2
