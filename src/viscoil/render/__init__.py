"""Pictures and films of runs: path tracing with Mitsuba, films, the gallery."""
