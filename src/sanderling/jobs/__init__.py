"""The sixth system: a user says where to begin and what an answer means, and the engine does the rest."""
