"""The commit-ordered journal: its wake-ups inside one process."""
