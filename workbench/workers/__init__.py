"""Processes that compute for those without torch: they train runs and compute features and planes of weights.

`client.Worker` starts a process and asks it, `server.Server` is that process, and both speak one protocol (`server`).
"""
