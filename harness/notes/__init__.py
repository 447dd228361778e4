"""Notes that outlive a session: one readable file a note, in a folder that all sessions on one source share."""
