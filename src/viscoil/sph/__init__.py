"""SPH building blocks: smoothing kernels, neighbour search, interpolation operators."""
