"""Scene files: schema, loading, building a world from a scene."""
