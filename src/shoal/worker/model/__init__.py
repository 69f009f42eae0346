"""The worker's nouns: runs, replicas, wants and peers, and all that it knows of them."""
