"""What a worker chooses: one question a file; nothing here changes anything but its own notes."""
