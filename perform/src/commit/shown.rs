//! What the next prompt shows of the tree, and what the model says to the user.

use std::io;
use std::path::Path;

use code_commit_engine::{Changed, Present};
use code_commit_logging::sha256_hex;
use code_commit_prompt::rollup::{self, LARGEST_FILE};

use super::CommitWorld;
use crate::Progress;
use crate::fault::Fault;
use crate::record::store;
use crate::sets::folders_of_replies;

impl CommitWorld<'_> {
    /// Stores the content of files that the next prompt shows.
    pub(super) fn store_shown(
        &self,
        round: u32,
        files: &[(String, String)],
    ) -> Result<Vec<Present>, Fault> {
        let store = |(number, (path, content)): (usize, &(String, String))| {
            let file = self.layout.edited(round, number);
            let text = store(&self.record, &file, content)?;
            Ok(Present {
                path: path.clone(),
                text,
            })
        };
        files.iter().enumerate().map(store).collect()
    }

    /// Stores what a build made of text files that the model knows, which the next prompt shows. One that was
    /// changed again meanwhile is not what the build made.
    pub(super) fn present(&self, round: u32, changes: &[Changed]) -> Result<Vec<Present>, Fault> {
        let written: Vec<&Changed> = changes
            .iter()
            .filter(|one| one.action == code_commit_engine::Action::Write)
            .collect();
        if written.is_empty() {
            return Ok(Vec::new());
        }
        let knows = self.knows()?;
        let mut present = Vec::new();
        for Changed {
            path, after_sha256, ..
        } in written
        {
            let read = code_commit_dir::read(
                &self.rules.root.join(path),
                LARGEST_FILE,
                code_commit_dir::Links::Refused,
            );
            let read = read
                .ok()
                .flatten()
                .filter(|bytes| *after_sha256 == Some(sha256_hex(bytes)));
            let Some(text) = read.and_then(|bytes| String::from_utf8(bytes).ok()) else {
                continue;
            };
            if knows(path, &text) {
                let file = self.layout.rebuilt(round, present.len());
                let text = store(&self.record, &file, &text)?;
                present.push(Present {
                    path: path.clone(),
                    text,
                });
            }
        }
        Ok(present)
    }

    /// Whether the model knows a file with this text: it has written it, or the code that it was sent shows it or its outline.
    fn knows(&self) -> Result<impl Fn(&str, &str) -> bool, Fault> {
        let replies = folders_of_replies(self.record.folder().path())?;
        let own = code_commit_apply::hashes_after(&replies).map_err(Fault::Undo)?;
        Ok(move |path: &str, text: &str| {
            own.contains_key(path) || rollup::shown(&self.codebase, path, text).is_some()
        })
    }

    /// Shows the model's messages, and appends them to earlier ones.
    pub(super) fn say(
        &mut self,
        round: u32,
        said: &[String],
        append: fn(&Path, &str) -> io::Result<()>,
    ) -> Result<(), Fault> {
        let mut lines = String::new();
        for text in said {
            self.record.tell(&Progress::Said { round, text });
            lines.push_str(text);
            lines.push_str(if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            });
        }
        if let Some(path) = &self.said_log {
            let lines = self.record.folder().redactor().redact(&lines);
            append(path, &lines).map_err(Fault::file("append to", path))?;
        }
        Ok(())
    }
}
