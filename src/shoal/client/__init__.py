"""The user's side: futures, graphs on their way out, results on their way back."""
