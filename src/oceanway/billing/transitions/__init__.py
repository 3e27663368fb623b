"""What a newer settlement input changes after the finalization, and the facts and events that say so."""
