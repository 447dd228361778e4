"""An OpenAI-compatible server without weights: what answers when there is no key.

Actions follow a lab's script; answers and summaries are taken from the text of the request and from nothing
else. Knows nothing of the agent and of the web page: they speak to it over HTTP like any other client.
"""
