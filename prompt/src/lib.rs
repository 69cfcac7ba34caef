//! The exact prompt text of each loop, the system prompts, and the code roll-up
