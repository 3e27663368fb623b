"""What owners record once and never change."""
