"""What reaches the disk: frames, run folders, exchange formats. Knows frames, never a world."""
