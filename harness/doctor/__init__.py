"""Looks at what a server would need before one is started. Each check is one function that returns a Result."""
