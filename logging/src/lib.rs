//! The run folder: journal, redaction, file layouts
