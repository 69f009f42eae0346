"""The names of `distributed`: where each lives, and the few that only old programs need."""
