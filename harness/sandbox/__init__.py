"""How commands are run and confined. Imports nothing else of the harness."""
