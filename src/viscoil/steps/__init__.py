"""Parts of a time step that are not constraints: integration, viscosity, vorticity."""
