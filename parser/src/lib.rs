//! Reads a model's reply: fences, markers and JSON write proposals, with exact spans and all errors at once
