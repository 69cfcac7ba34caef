//! The real Claude Code against a scripted service.
