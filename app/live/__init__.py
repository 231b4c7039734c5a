"""The browser component: what moves with a slider while it moves."""

from live.live import *  # noqa: F403
