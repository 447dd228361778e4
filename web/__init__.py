"""The browser side: pages, the event stream and the guard. The only folder that imports Starlette."""
