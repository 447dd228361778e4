"""The agent: messages, events, context, model gateway, tools and loop. No web and no HTML in here."""
