"""The way to a model: which one answers, the request out, the reply back."""
