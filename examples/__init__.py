"""Programs that show Seapost at work; each folder is one, with its own README."""
