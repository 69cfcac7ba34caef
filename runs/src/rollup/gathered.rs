//! The files that could be shown, with what a choice has to know of each.
//!
//! All of a small tree is read. For a large one there is an index of words: what git knows to be unchanged is not read
//! again. Only texts that may all be shown stay in memory.

use std::cell::Cell;
use std::collections::HashMap;

use anyhow::{Context as _, anyhow};
use code_commit_guard::Choice;
use code_commit_prompt::rollup::{LeftOut, left_out, noise, text_of};
use code_commit_prompt::select::{Counted, File, Index, Words, is_named};
use code_commit_repo::Kind;
use code_commit_report::printable_name;

use super::chosen::History;
use super::on_disk::{Found, OnDisk};
use super::word_index::{Addition, WordIndex};
use super::{Options, RollUp, Sources};
use crate::exit::Failure;

/// Files of a large tree.
const MANY: usize = 4_000;

/// What there is to choose from.
pub(super) struct Gathered {
    pub(super) files: Vec<File>,
    pub(super) words: Words,
    /// What git knows of the past, if it was asked.
    pub(super) history: Option<History>,
    on_disk: OnDisk,
    /// Texts by place; none of a tree that is too large.
    texts: HashMap<usize, String>,
    /// Whether the content of a file was not the one that was counted.
    pub(super) has_lost: Cell<bool>,
}

/// A file that is wanted, and the id of its content if git knows that the tree has it.
type Wanted<'i> = (&'i str, Option<&'i [u8]>);

impl Gathered {
    /// Reads what the index does not know, and adds the files left out to the roll-up. Keeps the texts if they have at most
    /// `most` bytes.
    pub(super) fn read(
        sources: Sources<'_>,
        options: &Options,
        index: &code_commit_repo::Index,
        most: usize,
        rollup: &mut RollUp,
    ) -> Result<Self, Failure> {
        let mut wanted = wanted(index, options, rollup)?;
        let mut gathered = Self {
            files: Vec::new(),
            words: Words::of(sources.query),
            history: None,
            on_disk: OnDisk::at(sources.tree.root())
                .map_err(|error| Failure::refused(error, "make the folder readable"))?,
            texts: HashMap::new(),
            has_lost: Cell::new(false),
        };
        let state = sources.state.filter(|_| wanted.len() >= MANY);
        let (mut known, mut addition) = (WordIndex::default(), None);
        if let Some(state) = state {
            let asked = History::ask_meanwhile(sources);
            known = WordIndex::read(state, &gathered.words, wanted.len());
            let history = asked.join().unwrap_or_default();
            let dirty = history.dirty();
            let is_dirty = |path: &str| dirty.as_ref().is_none_or(|dirty| dirty.contains(path));
            wanted
                .iter_mut()
                .filter(|(path, _)| is_dirty(path))
                .for_each(|(_, blob)| *blob = None);
            let is_fresh = |(path, blob): &&Wanted<'_>| {
                let is_new = blob.is_some_and(|blob| known.index.known(blob).is_none());
                is_new && left_out(path, 0).is_none()
            };
            let fresh = wanted.iter().filter(is_fresh).count();
            addition = known.addition(state, fresh, wanted.len());
            gathered.history = Some(history);
        }
        let query = sources.query;
        let addition = gathered.take_all(&wanted, &known.index, addition, query, most, rollup)?;
        if let Some((addition, state)) = addition.zip(state) {
            addition.keep(state);
        }
        Ok(gathered)
    }

    /// Takes every file, by what is known of it or by its content. Gives the addition back if it is to be kept.
    fn take_all(
        &mut self,
        wanted: &[Wanted<'_>],
        known: &Index,
        mut addition: Option<Addition>,
        query: &str,
        most: usize,
        rollup: &mut RollUp,
    ) -> Result<Option<Addition>, Failure> {
        let (mut content, mut bytes) = (Vec::new(), 0);
        for (path, blob) in wanted {
            let known = blob.and_then(|blob| known.known(blob));
            if let Some(seen) = known.and_then(|known| without_reading(path, known, query)) {
                match seen {
                    Ok(content) => self.push(path, content),
                    Err(why) => rollup.left_out.push(((*path).to_owned(), why)),
                }
                continue;
            }
            let found = self
                .on_disk
                .read(path, &mut content)
                .with_context(|| format!("cannot read {path}"))
                .map_err(|error| {
                    Failure::refused(error, "make it readable, or stop tracking it with git")
                })?;
            match found {
                Found::Content => {
                    if let (Some(blob), None) = (blob, known) {
                        addition = addition.and_then(|one| one.and(blob, text_of(&content)));
                    }
                    match seen(path, &content, query) {
                        Err(why) => rollup.left_out.push(((*path).to_owned(), why)),
                        Ok(text) => {
                            bytes += text.len();
                            if bytes <= most {
                                self.texts.insert(self.files.len(), text.to_owned());
                            } else {
                                self.texts.clear();
                            }
                            self.push(path, Counted::of(text, &self.words));
                        }
                    }
                }
                Found::LeftOut(why) => rollup.left_out.push(((*path).to_owned(), why)),
                Found::Link => rollup.links.push((*path).to_owned()),
                Found::Other => (),
            }
        }
        Ok(addition)
    }

    fn push(&mut self, path: &str, content: Counted) {
        let path = path.to_owned();
        self.files.push(File { path, content });
    }

    /// The text of a file; `None` if it is not the one that was counted.
    pub(super) fn text(&self, at: usize) -> Option<String> {
        if let Some(text) = self.texts.get(&at) {
            return Some(text.clone());
        }
        let (file, mut content) = (self.files.get(at)?, Vec::new());
        let read = self.on_disk.read(&file.path, &mut content);
        let is_content = matches!(read, Ok(Found::Content));
        // It may have become one that no model should see.
        let text = text_of(&content).ok().map(str::to_owned);
        let text = text.filter(|text| is_content && text.len() == file.content.bytes);
        self.has_lost.set(self.has_lost.get() || text.is_none());
        text
    }
}

/// The files that the patterns want. Notes the others. Refuses conflicts: a model would take both versions, and git's marks
/// between them, for the code.
fn wanted<'i>(
    index: &'i code_commit_repo::Index,
    options: &Options,
    rollup: &mut RollUp,
) -> Result<Vec<Wanted<'i>>, Failure> {
    let (include, exclude) = (Choice::of(&options.include), Choice::of(&options.exclude));
    let is_wanted =
        |path: &str| (include.is_empty() || include.covers(path)) && !exclude.covers(path);
    let (mut wanted, mut conflicts) = (Vec::new(), Vec::new());
    for one in index.iter() {
        if one.is_conflicted {
            conflicts.push(printable_name(&one.path.to_string_lossy()));
        }
        match (one.kind, one.path.to_str()) {
            (Kind::Submodule, _) => (),
            (_, None) => rollup.not_utf8.push(one.path.to_owned()),
            (Kind::Link, Some(link)) => rollup.links.push(link.to_owned()),
            (Kind::File, Some(path)) if is_wanted(path) => wanted.push((path, one.blob)),
            (Kind::File, Some(_)) => rollup.unwanted += 1,
        }
    }
    if conflicts.is_empty() {
        return Ok(wanted);
    }
    let error = anyhow!("a merge left conflicts in {}", conflicts.join(", "));
    Err(Failure::refused(
        error,
        "resolve them, then mark them as resolved: git add FILE",
    ))
}

/// What is worth reading of a file. What the query names is, noise or not.
fn seen<'c>(path: &str, content: &'c [u8], query: &str) -> Result<&'c str, LeftOut> {
    let noise = std::str::from_utf8(content)
        .ok()
        .and_then(|text| noise(path, text));
    noise
        .filter(|_| !is_named(path, query))
        .map_or_else(|| text_of(content), Err)
}

/// The same by the path and what the index knows; `None` if only the text can tell.
fn without_reading(
    path: &str,
    known: &Result<Counted, LeftOut>,
    query: &str,
) -> Option<Result<Counted, LeftOut>> {
    // Only its text tells which secret it contains, and whether it is a source map.
    let ending = path.rsplit('.').next().unwrap_or_default();
    let is_read =
        matches!(known, Err(LeftOut::HoldsSecret(_))) || ending.eq_ignore_ascii_case("map");
    if is_read || left_out(path, 0).is_some() {
        return None;
    }
    match noise(path, "").or(known.as_ref().err().copied()) {
        Some(_) if is_named(path, query) => None,
        Some(why) => Some(Err(why)),
        None => Some(known.clone()),
    }
}
