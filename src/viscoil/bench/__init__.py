"""Measurements of speed: time per stage of a step, throughput, and a yardstick in C++ beside it."""
