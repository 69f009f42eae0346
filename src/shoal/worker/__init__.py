"""The role that computes: runs tasks, keeps their results, fetches inputs from its peers."""
