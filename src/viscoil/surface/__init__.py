"""From particles to a surface: meshes, the fields they come from, and what lies on them."""
