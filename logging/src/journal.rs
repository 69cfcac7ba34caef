//! The journal: one fact per line, each line chained to the previous one by its hash.
//!
//! A line is `{"index":N,"at":"…","prev":"…","fact":{…}}`; `prev` is the SHA-256 of the previous
//! line without its newline, and sixty-four zeros on the first line. A last line without a newline
//! is unfinished, and so is what begins with bytes that a power cut lost: reading skips it, reopening cuts it
//! off.

use std::borrow::Cow;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Redactor, Stamp, sha256_hex};

const NO_LINE_BEFORE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Why a journal cannot be written or trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "what the texts say is not repeated")]
pub enum JournalError {
    /// The file could not be read or written.
    #[error("cannot {doing} the journal {}", path.display())]
    Io {
        /// What was tried, in one word: `create`, `open`, `read`, `mend`, `write`.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Another process is writing to it.
    #[error("the journal {} is in use: another code-commit is working on this run", path.display())]
    InUse { path: PathBuf },
    /// A line is not in this program's format, or its number or hash does not follow from the line
    /// before it.
    #[error("line {line} of the journal {} {what}", path.display())]
    Broken {
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        what: String,
    },
}

/// A line of the journal with its fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry<F> {
    /// The line's number, from 0.
    pub index: u64,
    /// When it was written, UTC, RFC 3339.
    pub at: String,
    /// SHA-256 of the line before.
    pub prev: String,
    /// What happened.
    pub fact: F,
    /// The request that the fact answers: an object with one member, named for the request's kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
}

/// An open journal. It can only be appended to.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    next: u64,
    last_hash: String,
    whole_bytes: u64,
    redactor: Redactor,
}

impl Journal {
    /// Creates a journal at `path`, which must not exist.
    pub fn create(path: &Path, redactor: Redactor) -> Result<Self, JournalError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|source| io_error("create", path, source))?;
        hold(&file, path)?;
        let (path, last_hash) = (path.to_owned(), NO_LINE_BEFORE.to_owned());
        Ok(Self {
            path,
            file,
            next: 0,
            last_hash,
            whole_bytes: 0,
            redactor,
        })
    }

    /// Opens an existing journal to continue it, and returns its facts. An unfinished last line is
    /// cut off.
    pub fn reopen<F: DeserializeOwned>(
        path: &Path,
        redactor: Redactor,
    ) -> Result<(Self, Vec<Entry<F>>), JournalError> {
        // Opened once: the file that is truncated and continued is the one that was read, whatever
        // has its name by then.
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(path)
            .map_err(|source| io_error("open", path, source))?;
        hold(&file, path)?;
        let read = read(&file, path)?;
        file.set_len(read.whole_bytes)
            .map_err(|source| io_error("mend", path, source))?;
        let Lines {
            entries,
            last_hash,
            whole_bytes,
        } = read;
        let next = entries.len() as u64;
        Ok((
            Self {
                path: path.to_owned(),
                file,
                next,
                last_hash,
                whole_bytes,
                redactor,
            },
            entries,
        ))
    }

    /// All finished lines of the journal at `path`, with the chain of hashes checked.
    pub fn entries<F: DeserializeOwned>(path: &Path) -> Result<Vec<Entry<F>>, JournalError> {
        let file = File::open(path).map_err(|source| io_error("open", path, source))?;
        Ok(read(&file, path)?.entries)
    }

    /// Appends one fact as one line in one write. Its texts are redacted; names and numbers are the
    /// program's own. A line that cannot be written leaves nothing.
    pub fn append<F: Serialize>(&mut self, fact: &F) -> Result<(), JournalError> {
        self.append_answer(fact, None)
    }

    /// Like [`append`](Self::append), for a fact that answers a request.
    pub fn append_answer<F: Serialize>(
        &mut self,
        fact: &F,
        request: Option<Value>,
    ) -> Result<(), JournalError> {
        let mut line = self
            .line(fact, request)
            .map_err(|e| io_error("write", &self.path, e.into()))?;
        let hash = sha256_hex(line.as_bytes());
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(|source| {
            // Half a line at the end is skipped; half a line before another one would break the
            // journal.
            let _ = self.file.set_len(self.whole_bytes);
            io_error("write", &self.path, source)
        })?;
        self.whole_bytes += line.len() as u64;
        self.next += 1;
        self.last_hash = hash;
        Ok(())
    }

    /// Puts every line on disk; the files that they name have to be there. Lines that cannot be synced stay, since
    /// they may record something that was paid for.
    pub fn sync(&self) -> Result<(), JournalError> {
        self.file
            .sync_data()
            .map_err(|source| io_error("write", &self.path, source))
    }

    fn line<F: Serialize>(&self, fact: &F, request: Option<Value>) -> serde_json::Result<String> {
        let (at, prev) = (Stamp::now().rfc3339(), self.last_hash.clone());
        let mut entry = Entry {
            index: self.next,
            at,
            prev,
            fact,
            request,
        };
        let line = serde_json::to_string(&entry)?;
        if !self.redactor.finds_key(&line) {
            return Ok(line);
        }
        // Redact the fact, not the line: a key of digits may occur in a hash, a time or a count,
        // and replacing it there would break the chain.
        let mut fact = serde_json::to_value(entry.fact)?;
        strike_out(&mut fact, &self.redactor);
        entry
            .request
            .iter_mut()
            .for_each(|request| strike_out(request, &self.redactor));
        let Entry {
            index,
            at,
            prev,
            request,
            ..
        } = entry;
        serde_json::to_string(&Entry {
            index,
            at,
            prev,
            fact,
            request,
        })
    }
}

/// Redacts every text in `value`.
fn strike_out(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = redactor.redact(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strike_out(item, redactor)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| strike_out(member, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The content of a journal file.
struct Lines<F> {
    entries: Vec<Entry<F>>,
    last_hash: String,
    whole_bytes: u64,
}

fn read<F: DeserializeOwned>(mut file: &File, path: &Path) -> Result<Lines<F>, JournalError> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|source| io_error("read", path, source))?;
    let mut read = Lines {
        entries: Vec::new(),
        last_hash: NO_LINE_BEFORE.to_owned(),
        whole_bytes: 0,
    };
    // Split before decoding: an unfinished line may end inside a character.
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        // Bytes that a power cut kept from the disk read as zeros; nothing after them was ever synced.
        let Some(whole) = line.strip_suffix(b"\n").filter(|line| !line.contains(&0)) else {
            break;
        };
        let broken = |what: String| JournalError::Broken {
            path: path.to_owned(),
            line: number + 1,
            what,
        };
        let entry: Entry<F> = serde_json::from_slice(whole)
            .map_err(|e| broken(format!("cannot be understood: {e}")))?;
        if entry.prev != read.last_hash || entry.index != number as u64 {
            return Err(broken("does not follow from the line before it".to_owned()));
        }
        read.entries.push(entry);
        read.last_hash = sha256_hex(whole);
        read.whole_bytes += line.len() as u64;
    }
    Ok(read)
}

/// Locks the file until it is closed. Some file systems have no locks; there, nothing is locked.
fn hold(file: &File, path: &Path) -> Result<(), JournalError> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse {
            path: path.to_owned(),
        }),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> JournalError {
    JournalError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn journal_of(facts: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut journal = Journal::create(&path, Redactor::default()).unwrap();
        for fact in facts {
            journal.append(fact).unwrap();
        }
        (folder, path)
    }

    #[test]
    fn a_reopened_journal_goes_on_where_it_stopped() {
        let (_folder, path) = journal_of(&["one", "two"]);
        let (mut journal, old) = Journal::reopen::<String>(&path, Redactor::default()).unwrap();
        assert_eq!(old.len(), 2);
        journal.append(&"three").unwrap();
        let facts: Vec<String> = Journal::entries(&path)
            .unwrap()
            .into_iter()
            .map(|e| e.fact)
            .collect();
        assert_eq!(facts, ["one", "two", "three"]);
    }

    #[test]
    fn a_line_has_its_number_its_time_the_hash_of_the_line_before_and_its_fact() {
        const KEY: &str = "AIzaSyJournal-key-of-no-use-11";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut journal = Journal::create(&path, Redactor::new([KEY])).unwrap();
        for fact in [
            json!({ "what": "asked", "round": 1 }),
            json!({ "what": "said", "text": KEY }),
        ] {
            journal.append(&fact).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        insta::with_settings!({
            filters => [(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "[TIME]"), (r#""prev":"[0-9a-f]*[1-9a-f][0-9a-f]*"#, r#""prev":"[HASH]"#)],
        }, { insta::assert_snapshot!(text, @r#"
        {"index":0,"at":"[TIME]","prev":"0000000000000000000000000000000000000000000000000000000000000000","fact":{"round":1,"what":"asked"}}
        {"index":1,"at":"[TIME]","prev":"[HASH]","fact":{"text":"[key …11]","what":"said"}}
        "#); });
    }

    #[test]
    fn an_unfinished_last_line_is_cut_off() {
        let (_folder, path) = journal_of(&["one", "zwei ä"]);
        let text = fs::read_to_string(&path).unwrap();
        for cut in text.find('\n').unwrap() + 1..text.len() {
            File::create(&path)
                .unwrap()
                .write_all(&text.as_bytes()[..cut])
                .unwrap();
            let (mut journal, old) = Journal::reopen::<String>(&path, Redactor::default()).unwrap();
            assert_eq!(old.len(), 1, "cut at {cut}");
            journal.append(&"again").unwrap();
            assert_eq!(Journal::entries::<String>(&path).unwrap().len(), 2);
        }
        assert!(
            !text.is_char_boundary(text.find('ä').unwrap() + 1),
            "one of the cuts is inside of a character"
        );
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a full disk is played in a process of its own"
    )]
    fn a_line_that_found_no_room_leaves_nothing_behind() {
        const CHILD: &str = "LOGGING_TEST_FULL_DISK";
        if std::env::var_os(CHILD).is_none() {
            let child = std::process::Command::new("sh")
                .args([
                    "-c",
                    "trap '' XFSZ; ulimit -f 1 && exec \"$0\" --exact \"$1\"",
                ])
                .arg(std::env::current_exe().unwrap())
                .arg("journal::tests::a_line_that_found_no_room_leaves_nothing_behind")
                .env(CHILD, "1")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&child.stdout);
            assert!(
                child.status.success() && said.contains("1 passed"),
                "{said}"
            );
            return;
        }
        let (_folder, path) = journal_of(&["one"]);
        let (mut journal, _) = Journal::reopen::<String>(&path, Redactor::default()).unwrap();
        journal.append(&"two".repeat(1000)).unwrap_err();
        journal.append(&"three").unwrap();
        let facts: Vec<String> = Journal::entries(&path)
            .unwrap()
            .into_iter()
            .map(|e| e.fact)
            .collect();
        assert_eq!(facts, ["one", "three"]);
    }

    #[test]
    fn a_key_is_struck_out_of_texts_and_leaves_numbers_and_the_chain_whole() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Fact {
            said: Vec<String>,
            bytes: u64,
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        // The first key also occurs in the hash that the chain begins with, the second in a number.
        let mut journal = Journal::create(&path, Redactor::new(["00000000", "12345678"])).unwrap();
        let saying = |text: &str| Fact {
            said: vec![text.to_owned()],
            bytes: 12_345_678,
        };
        for _ in 0..2 {
            journal.append(&saying("00000000 and 12345678")).unwrap();
        }
        for entry in Journal::entries::<Fact>(&path).unwrap() {
            assert_eq!(entry.fact, saying("[key …00] and [key …78]"));
        }
    }

    #[test]
    fn a_changed_line_breaks_the_chain() {
        let (_folder, path) = journal_of(&["one", "two", "three"]);
        let text = fs::read_to_string(&path)
            .unwrap()
            .replace("\"two\"", "\"owt\"");
        File::create(&path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let error = Journal::entries::<String>(&path).unwrap_err();
        assert!(
            matches!(error, JournalError::Broken { line: 3, .. }),
            "{error}"
        );
    }
}
