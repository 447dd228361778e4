"""A session in the forms that other tools read. What leaves here is masked; nothing here changes a session."""
