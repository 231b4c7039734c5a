"""Garden and meadow: plants whose P(y|x) is known exactly, and their photographs."""
