"""What a user's and a project's own files bring into the system prompt: rules, words of their own, skills."""
