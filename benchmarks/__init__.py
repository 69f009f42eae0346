"""The measuring stick: shoal, the released `distributed` and a process pool, side by side."""
