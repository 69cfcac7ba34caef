//! The OpenAI chat completions wire format, and every server that speaks it
