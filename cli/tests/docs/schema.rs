//! What `--json` prints and what a journal holds, against `docs/schemas/events.schema.json`.
