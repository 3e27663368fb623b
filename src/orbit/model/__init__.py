"""Values of Orbit: codes, states, limits, exact JSON text. Imports nothing but the standard library."""
