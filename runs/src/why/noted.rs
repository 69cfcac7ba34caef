//! What the notes on commits say of lines, also where no run is recorded.
//!
//! A note lists blocks of lines by their numbers in the commit that it was made for, and by their hashes. Git may have
//! taken it along to a rewritten commit, and joined it with others; a commit that was made anew elsewhere has none.
//! There a block counts where its hash is found among the lines that came with the commit.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use code_commit_logging::sha256_hex;
use code_commit_repo::{Git, GitError, Notes, RepoError, Source, WorkTree};
use jiff::Timestamp;
use serde::Deserialize;
use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::note::REFERENCE;

/// The most lines to hash for one length of blocks: in a very large change, blocks are not looked for at its end.
const MOST_LINES: usize = 1 << 18;

/// An Agent Trace record, as far as it is read here.
#[derive(Debug, Deserialize)]
pub(super) struct Record {
    timestamp: Timestamp,
    vcs: Vcs,
    files: Vec<Written>,
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
struct Vcs {
    revision: String,
}

#[derive(Debug, Deserialize)]
struct Written {
    path: String,
    conversations: Vec<Conversation>,
}

#[derive(Debug, Deserialize)]
struct Conversation {
    contributor: Contributor,
    ranges: Vec<Block>,
}

#[derive(Debug, Deserialize)]
struct Contributor {
    model_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Block {
    start_line: usize,
    end_line: usize,
    content_hash: String,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    #[serde(rename = "dev.code-commit")]
    about: About,
}

#[derive(Debug, Deserialize)]
struct About {
    run: String,
    #[serde(rename = "loop")]
    kind: String,
    patch_id: Option<String>,
}

/// What a note says of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Noted {
    pub run: String,
    pub kind: String,
    pub model: Option<String>,
    /// The commit that the note was made for.
    pub revision: String,
}

/// The notes of a repository about some files.
pub(super) struct Reader<'r> {
    pub tree: &'r WorkTree,
    pub git: &'r Git,
    pub notes: &'r Notes<'r>,
    /// Relative to the root.
    pub paths: &'r BTreeSet<String>,
    pub all: OnceCell<Vec<Record>>,
}

impl Reader<'_> {
    /// What is noted of these lines, by their number, from 0, in the commit that they came with. The newest note counts.
    pub(super) fn of(
        &self,
        source: &Source,
        asked: &[usize],
    ) -> anyhow::Result<BTreeMap<usize, Noted>> {
        let Some(commit) = &source.commit else {
            return Ok(BTreeMap::new());
        };
        let own: Option<Vec<Record>> = self.notes.on(commit)?.map(|note| records(&note).collect());
        let made_for_it = own
            .iter()
            .flatten()
            .filter(|record| record.vcs.revision == *commit);
        let as_said = made_for_it.map(|record| Found::as_noted(record, self.paths));
        let as_said: BTreeMap<usize, Noted> = as_said.flat_map(|found| found.said(asked)).collect();
        if as_said.len() == asked.len() {
            return Ok(as_said);
        }
        let all = if own.is_some() {
            &Vec::new()
        } else {
            self.all()?
        };
        let is_earlier = |record: &&Record| record.timestamp.as_second() <= source.committer_time;
        let records = own.iter().flatten().chain(all.iter().filter(is_earlier));
        let mut records = records
            .filter(|record| record.blocks(self.paths).next().is_some())
            .peekable();
        if records.peek().is_none() {
            return Ok(BTreeMap::new());
        }
        let file = Content::read(self.tree, commit, source)?;
        let mut found: Vec<Found<'_>> = records
            .map(|record| Found::of(record, commit, &file, self.paths))
            .collect();
        if own.is_none() {
            // What nothing but its content speaks for has to be there as a whole.
            found.retain(|found| found.is_whole && !found.said(asked).is_empty());
            found = self.landed(commit, found)?;
        }
        found.sort_by_key(|found| found.record.timestamp);
        Ok(found.iter().flat_map(|found| found.said(asked)).collect())
    }

    /// Those that made the same change as this commit or, where there are none, those whose own commit is not in the
    /// history: lines would have come with that one.
    fn landed<'f>(
        &self,
        commit: &str,
        mut found: Vec<Found<'f>>,
    ) -> Result<Vec<Found<'f>>, GitError> {
        let patch_id = if found.is_empty() {
            None
        } else {
            self.git.patch_id(commit)?
        };
        let is_same =
            |of: &Found<'_>| patch_id.is_some() && of.record.metadata.about.patch_id == patch_id;
        if found.iter().any(is_same) {
            found.retain(is_same);
            return Ok(found);
        }
        let revisions = found.iter().map(|of| of.record.vcs.revision.as_str());
        let here: Vec<&str> = revisions
            .filter(|id| self.tree.written(id).is_some())
            .collect();
        let outside = self.git.outside_history(&here)?;
        found.retain(|of| {
            let revision = &of.record.vcs.revision;
            outside.contains(revision) || !here.contains(&revision.as_str())
        });
        Ok(found)
    }

    fn all(&self) -> anyhow::Result<&Vec<Record>> {
        if let Some(all) = self.all.get() {
            return Ok(all);
        }
        let texts = self
            .paths
            .iter()
            .map(|path| Ok(format!("\"path\":{}", serde_json::to_string(path)?)));
        let texts: Vec<String> = texts.collect::<serde_json::Result<_>>()?;
        let all = records(&self.git.notes_with(REFERENCE, &texts)?).collect();
        Ok(self.all.get_or_init(|| all))
    }
}

/// One on each line; what others have added to a note is passed over.
fn records(note: &[u8]) -> impl Iterator<Item = Record> {
    note.split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
}

impl Record {
    /// What it says of these files.
    fn blocks(&self, paths: &BTreeSet<String>) -> impl Iterator<Item = (Option<&String>, &Block)> {
        let files = self.files.iter().filter(|file| paths.contains(&file.path));
        files
            .flat_map(|file| &file.conversations)
            .flat_map(|conversation| {
                let model = conversation.contributor.model_id.as_ref();
                conversation.ranges.iter().map(move |block| (model, block))
            })
    }
}

/// Where the blocks of a record are in a file.
struct Found<'r> {
    record: &'r Record,
    places: Vec<(Option<&'r String>, Range<usize>)>,
    is_whole: bool,
}

impl<'r> Found<'r> {
    /// On the commit that the note was made for.
    fn as_noted(record: &'r Record, paths: &BTreeSet<String>) -> Self {
        let places = record
            .blocks(paths)
            .map(|(model, block)| (model, block.lines()))
            .collect();
        Self {
            record,
            places,
            is_whole: true,
        }
    }

    fn of(record: &'r Record, commit: &str, file: &Content, paths: &BTreeSet<String>) -> Self {
        let (mut places, mut is_whole) = (Vec::new(), true);
        for (model, block) in record.blocks(paths) {
            let lines = block.lines();
            let is_own = record.vcs.revision == commit;
            let place = if is_own {
                Some(Some(lines))
            } else {
                file.find(lines.len(), &block.content_hash)
            };
            is_whole &= place.is_some();
            places.extend(place.flatten().map(|place| (model, file.slid(place))));
        }
        // Closing braces come with every change.
        is_whole &= places
            .iter()
            .any(|(_, place)| file.text(place).contains(char::is_alphanumeric));
        Self {
            record,
            places,
            is_whole,
        }
    }

    fn said(&self, asked: &[usize]) -> Vec<(usize, Noted)> {
        let Record {
            vcs,
            metadata: Metadata { about },
            ..
        } = self.record;
        let noted = |model: Option<&String>| Noted {
            run: about.run.clone(),
            kind: about.kind.clone(),
            model: model.cloned(),
            revision: vcs.revision.clone(),
        };
        let place = |at: &usize| self.places.iter().find(|(_, lines)| lines.contains(at));
        asked
            .iter()
            .filter_map(|at| Some((*at, noted(place(at)?.0))))
            .collect()
    }
}

impl Block {
    fn lines(&self) -> Range<usize> {
        self.start_line.saturating_sub(1)..self.end_line
    }
}

/// A file as a commit has it.
struct Content {
    lines: Vec<String>,
    /// Lines in a row that came with the commit.
    new: Vec<Range<usize>>,
    /// Where blocks of a length begin among them, by hash.
    begins: RefCell<HashMap<usize, HashMap<String, Option<usize>>>>,
}

impl Content {
    fn read(tree: &WorkTree, commit: &str, source: &Source) -> Result<Self, RepoError> {
        let now = tree.blob(commit, &source.path)?.unwrap_or_default();
        let parent = source
            .previous
            .as_ref()
            .map(|(commit, path)| tree.blob(commit, path));
        let lines = |text: Vec<u8>| -> Vec<String> {
            String::from_utf8_lossy(&text)
                .split_inclusive('\n')
                .map(str::to_owned)
                .collect()
        };
        let (old, lines) = (
            lines(parent.transpose()?.flatten().unwrap_or_default()),
            lines(now),
        );
        let changes = capture_diff_slices(Algorithm::Myers, &old, &lines);
        let new = changes
            .iter()
            .filter(|change| change.tag() != DiffTag::Equal);
        let new = new.map(similar::DiffOp::new_range).collect();
        Ok(Self {
            lines,
            new,
            begins: RefCell::default(),
        })
    }

    /// Where the block of this hash is among the lines that came with the commit; `Some(None)` if it is there twice.
    #[expect(
        clippy::option_option,
        reason = "nowhere, and nobody knows where, are two things"
    )]
    fn find(&self, length: usize, hash: &str) -> Option<Option<Range<usize>>> {
        let mut known = self.begins.borrow_mut();
        let begin = *known
            .entry(length)
            .or_insert_with(|| self.hashed(length))
            .get(hash)?;
        Some(begin.map(|begin| begin..begin + length))
    }

    fn hashed(&self, length: usize) -> HashMap<String, Option<usize>> {
        let begins = self
            .new
            .iter()
            .flat_map(|new| new.start..(new.end + 1).saturating_sub(length));
        let mut hashed = HashMap::new();
        for at in begins.take(1.max(MOST_LINES / length.max(1))) {
            let hash = format!(
                "sha256:{}",
                sha256_hex(self.text(&(at..at + length)).as_bytes())
            );
            hashed
                .entry(hash)
                .and_modify(|at| *at = None)
                .or_insert(Some(at));
        }
        hashed
    }

    fn text(&self, lines: &Range<usize>) -> String {
        self.lines.get(lines.clone()).unwrap_or_default().concat()
    }

    /// With the lines beside it that git may take for its own: where a block ends as the lines before it do, nothing says
    /// which of them are new. Within the file, whatever a note says.
    fn slid(&self, block: Range<usize>) -> Range<usize> {
        let all = self.lines.len();
        let (start, end) = (block.start.min(all), block.end.min(all));
        let is_same =
            |(one, other): &(usize, usize)| self.lines.get(*one) == self.lines.get(*other);
        let above = (0..start)
            .rev()
            .zip((0..end).rev())
            .take_while(is_same)
            .count();
        let below = (end..all).zip(start..).take_while(is_same).count();
        start - above..end + below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Content {
        let lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        let new = std::iter::once(2.min(lines.len())..lines.len()).collect();
        Content {
            new,
            lines,
            begins: RefCell::default(),
        }
    }

    #[test]
    fn a_block_is_found_by_its_hash_among_the_lines_that_are_new() {
        let file = content("a\nb\na\nb\n}\n}\n");
        let hash = |text: &str| format!("sha256:{}", sha256_hex(text.as_bytes()));
        assert_eq!(file.find(2, &hash("a\nb\n")), Some(Some(2..4)));
        assert_eq!(file.find(1, &hash("a\n")), Some(Some(2..3)));
        assert_eq!(
            (file.find(2, &hash("b\na\n")), file.find(9, "")),
            (None, None),
            "some of it is not new"
        );
        assert_eq!(file.find(1, &hash("}\n")), Some(None), "it is there twice");
    }

    #[test]
    fn a_block_reaches_as_far_as_git_could_move_it() {
        let file = content("x\n}\n\ny\n}\n\nz\n");
        assert_eq!(
            (file.slid(3..6), file.slid(1..4), file.slid(6..7)),
            (1..6, 1..6, 6..7)
        );
        assert_eq!(content("s\ns\ns\n").slid(1..2), 0..3);
        assert_eq!(
            (content("").slid(4..9), content("s\n").slid(0..usize::MAX)),
            (0..0, 0..1)
        );
    }
}
