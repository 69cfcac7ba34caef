//! The code roll-up: made from the files that git tracks, and stored with a note of how it was made.

mod chosen;
mod gathered;
mod note;
mod on_disk;
pub(crate) mod window;
mod word_index;

use std::path::{Path, PathBuf};

use code_commit_logging::{Redactor, name_as_text};
use code_commit_prompt::rollup::{Builder, LeftOut, files};
use code_commit_prompt::select::{bytes, is_named, tokens};
use code_commit_repo::WorkTree;
use code_commit_report::{Output, phrases, printable_name};
use code_commit_settings::{Environment, Settings};

pub use self::chosen::Chosen;
use self::gathered::Gathered;
pub use self::note::{Options, Stored};
use self::word_index::WordIndex;
use crate::exit::Failure;
use crate::preflight::{self, CODE_ROLLUP, Missing};

/// Omitted files named in a message.
const NAMED_FILES: usize = 10;
/// Symlinks and non-UTF-8 names named in a message.
const NAMED_LINKS: usize = 5;

/// A roll-up in memory.
#[derive(Debug, Default)]
pub struct RollUp {
    /// What a model is shown.
    pub text: String,
    /// The number of files in it.
    pub files: usize,
    /// The files in it and why, the most important first, if a budget had to be kept.
    pub chosen: Vec<Chosen>,
    /// That its model does not take all files, if it does not.
    pub about_size: Option<String>,
    /// What a budget has left of all files, if it left some out.
    pub context: Option<String>,
    /// Files that the query names and that are not shown whole, with the reason.
    pub unmet: Vec<(String, String)>,
    /// Files that no model should see.
    pub left_out: Vec<(String, LeftOut)>,
    /// Files in it that contain a key: no run sends it.
    pub with_key: Vec<String>,
    /// The number of tracked files that the patterns do not want.
    pub unwanted: usize,
    /// The number of files that a budget had to choose from.
    pub candidates: usize,
    /// Symbolic links.
    pub links: Vec<String>,
    /// Files and links whose names are not UTF-8.
    pub not_utf8: Vec<PathBuf>,
}

/// What a roll-up is made from.
#[derive(Clone, Copy)]
pub struct Sources<'s> {
    /// The project.
    pub tree: &'s WorkTree,
    /// For the git program, which knows what was changed lately.
    pub environment: &'s Environment,
    /// Knows the keys to look for.
    pub redactor: &'s Redactor,
    /// What the model is asked; decides what is shown if there is a budget.
    pub query: &'s str,
    /// The state folder, for an index of the words of a large tree; without one, all files are read. It need not exist.
    pub state: Option<&'s Path>,
}

/// Makes a roll-up of the tracked files that a model should see, in git's order, as they are on disk. Where they exceed the
/// budget or what the first model takes, the files that matter most for the query are shown, and the others listed.
pub fn make(
    sources: Sources<'_>,
    options: &Options,
    settings: &Settings,
) -> Result<RollUp, Failure> {
    let index = sources.tree.index()?;
    let budget = options.budget.unwrap_or(window::DEFAULT_BUDGET);
    // Who sets a budget is told by the preflight that the model takes less.
    let window = match options.budget {
        Some(_) => u64::MAX,
        None => window::room_for(sources.query, settings),
    };
    let most = budget.min(window);
    let mut rollup = RollUp::default();
    let mut gathered = Gathered::read(sources, options, &index, bytes(most), &mut rollup)?;
    let named = rollup.left_out.iter();
    let named = named.filter(|(path, _)| is_named(path, sources.query));
    let named = named.map(|(path, why)| (path.clone(), why.reason().to_owned()));
    rollup.unmet = named.collect();
    let sizes = gathered.files.iter();
    let sizes = sizes.map(|file| chosen::HEADER + file.path.len() + file.content.bytes);
    let all = tokens(sizes.sum());
    let fits = all <= most;
    let mut builder = Builder::default();
    if fits {
        for (at, file) in gathered.files.iter().enumerate() {
            if let Some(text) = gathered.text(at) {
                // Its text was checked when it was read.
                let _ = builder.add(&file.path, text.as_bytes());
            }
        }
    } else {
        let (chosen, too_large) = chosen::add(&mut builder, &mut gathered, sources, most);
        rollup.unmet.extend(too_large);
        rollup.chosen = chosen;
        rollup.candidates = gathered.files.len();
    }
    if let Some(state) = sources.state.filter(|_| gathered.has_lost.get()) {
        // A file changed meanwhile, or the index is not about these files.
        WordIndex::remove(state);
        let state = None;
        return make(Sources { state, ..sources }, options, settings);
    }
    rollup.files = builder.files();
    rollup.text = builder.finish();
    let shown = files(&rollup.text);
    let with_key = shown.filter(|(_, text)| sources.redactor.finds_key(text.as_bytes()));
    rollup.with_key = with_key.map(|(path, _)| path.to_owned()).collect();
    if fits {
        return Ok(rollup);
    }
    let files = &gathered.files;
    if budget <= window {
        let text = &rollup.text;
        rollup.context = Some(window::context(rollup.files, files, text, all, settings));
    } else {
        rollup.about_size = Some(window::about(files, all, window, settings));
    }
    Ok(rollup)
}

impl RollUp {
    /// Stores it at [`CODE_ROLLUP`], with the note that lets a later run make it anew. Neither goes through a
    /// symlink that a repository has brought.
    pub fn keep(&self, root: &Path, options: &Options) -> anyhow::Result<()> {
        preflight::own_folder(root)?;
        note::store(root, &self.text, options)?;
        self.write(&root.join(CODE_ROLLUP))
    }

    /// Writes it whole or not at all.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        note::write(path, self.text.as_bytes())
    }

    /// How much it is.
    pub fn size(&self) -> String {
        let files = phrases::count(self.files as u64, "file");
        format!("{files}, {}", phrases::bytes(self.text.len() as u64))
    }

    /// Why it shows no file, and what to do; `None` if it shows one.
    pub fn empty(&self) -> Option<Missing> {
        let missing = if self.files > 0 {
            return None;
        } else if self.candidates > 0 {
            Missing::new(
                "no file fits the budget",
                "raise --budget, or `budget` of [rollup]",
            )
        } else if !self.left_out.is_empty() {
            Missing::new(
                "every tracked file is left out",
                "git add files that a model may be shown",
            )
        } else if self.unwanted > 0 {
            let hint = "change --include and --exclude, or those of [rollup]";
            Missing::new("no tracked file matches the patterns", hint)
        } else {
            Missing::new("git tracks no files here", "git add the project's files")
        };
        Some(missing)
    }

    /// Tracked names that no text can hold.
    pub fn odd_names(&self) -> Vec<String> {
        self.not_utf8
            .iter()
            .map(|path| name_as_text(path).into_owned())
            .collect()
    }

    /// Reports what it omits, and whether it may be sent.
    pub fn tell(&self, output: &Output) {
        self.tell_surprises(output);
        self.note_expected(output);
        warn_of(&self.links, "symbolic links", output);
        warn_of(&self.odd_names(), "names that are not UTF-8", output);
        if !self.with_key.is_empty() {
            let first = phrases::first(&self.with_key, NAMED_LINKS);
            output.warn(&format!(
                "{first}: contains an API key, so the next run will not send this roll-up; remove the key"
            ));
        }
    }

    /// Names the files that one would expect in it.
    pub(crate) fn tell_surprises(&self, output: &Output) {
        self.context.iter().for_each(|line| output.note(line));
        self.left_out
            .iter()
            .filter(|(_, why)| is_surprise(*why))
            .for_each(|file| output.warn(&line(file)));
        self.about_size.iter().for_each(|about| output.warn(about));
        for (path, why) in &self.unmet {
            output.warn(&format!(
                "the query names {}, which is not shown whole: {why}",
                printable_name(path)
            ));
        }
    }

    fn note_expected(&self, output: &Output) {
        let expected: Vec<_> = self
            .left_out
            .iter()
            .filter(|(_, why)| !is_surprise(*why))
            .collect();
        expected
            .iter()
            .take(NAMED_FILES)
            .for_each(|file| output.note(&line(file)));
        if expected.len() > NAMED_FILES {
            output.note(&format!("left out: {} more", expected.len() - NAMED_FILES));
        }
    }
}

fn is_surprise(why: LeftOut) -> bool {
    matches!(why, LeftOut::TooLarge | LeftOut::HoldsSecret(_))
}

fn line((path, why): &(String, LeftOut)) -> String {
    format!("left out: {} ({})", printable_name(path), why.reason())
}

/// One line for all files of a kind, naming the first ones.
fn warn_of(names: &[String], kind: &str, output: &Output) {
    if names.is_empty() {
        return;
    }
    let first = phrases::first(names, NAMED_LINKS);
    output.warn(&format!("left out: {first} ({kind}: {})", names.len()));
}
