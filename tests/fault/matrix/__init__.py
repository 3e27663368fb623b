"""The fault matrix: every fault with many seeds, each round judged by an oracle that asks both sides (R6)."""
