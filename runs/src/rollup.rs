//! The code roll-up: made from the files that git tracks, and stored with a note of how it was made.

mod note;
mod on_disk;

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use logging::{Redactor, name_as_text};
use prompt::rollup::{Builder, LeftOut};
use repo::{Besides, Tracked, WorkTree};
use report::{Output, phrases, printable_name};

pub use self::note::{Options, Stored};
use self::on_disk::{Found, OnDisk};
use crate::exit::Failure;
use crate::preflight::{self, CODE_ROLLUP};

/// Omitted files named in a message.
const NAMED_FILES: usize = 10;
/// Symlinks and non-UTF-8 names named in a message.
const NAMED_LINKS: usize = 5;

/// A roll-up in memory.
pub struct RollUp {
    /// What a model is shown.
    pub text: String,
    /// The number of files in it.
    pub files: usize,
    /// Files that no model should see.
    pub left_out: Vec<(String, LeftOut)>,
    /// Files in it that contain a key: no run sends it.
    pub with_key: Vec<String>,
    /// Entries that are not regular files with a name that a model could write.
    pub besides: Besides,
}

/// Makes a roll-up of every tracked file that a model should see, in git's order, as it is on disk. The
/// redactor knows the keys to look for.
pub fn make(tree: &WorkTree, redactor: &Redactor) -> Result<RollUp, Failure> {
    let (tracked, mut besides) = (tree.tracked()?, tree.besides()?);
    let on_disk =
        OnDisk::at(tree.root()).map_err(|error| Failure::refused(error, "make the folder readable"))?;
    let (mut builder, mut content) = (Builder::default(), Vec::new());
    let (mut left_out, mut with_key) = (Vec::new(), Vec::new());
    for Tracked { path, .. } in tracked {
        let found = on_disk
            .read(&path, &mut content)
            .with_context(|| format!("cannot read {path}"))
            .map_err(|error| Failure::refused(error, "make it readable, or stop tracking it with git"))?;
        match found {
            Found::Content => match builder.add(&path, &content) {
                Err(why) => left_out.push((path, why)),
                Ok(()) if redactor.finds_key(&content) => with_key.push(path),
                Ok(()) => (),
            },
            Found::LeftOut(why) => left_out.push((path, why)),
            Found::Link => besides.links.push(path),
            Found::Other => (),
        }
    }
    Ok(RollUp { files: builder.files(), text: builder.finish(), left_out, with_key, besides })
}

impl RollUp {
    /// Stores it at [`CODE_ROLLUP`], with the note that lets a later run make it anew. Neither goes through a
    /// symlink that a repository has brought.
    pub fn keep(&self, root: &Path, options: &Options) -> anyhow::Result<()> {
        preflight::own_folder(root)?;
        // Written first: with a note that does not fit it, a roll-up counts as a person's own.
        note::store(root, &self.text, options)?;
        self.write(&root.join(CODE_ROLLUP))
    }

    /// Writes it through a temporary file, so that a roll-up is never half-written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        write(path, self.text.as_bytes())
    }

    /// How much it is.
    pub fn size(&self) -> String {
        let files = phrases::count(self.files as u64, "file");
        format!("{files}, {}", phrases::bytes(self.text.len() as u64))
    }

    /// Tracked names that no text can hold.
    pub fn odd_names(&self) -> Vec<String> {
        self.besides.not_utf8.iter().map(|path| name_as_text(path).into_owned()).collect()
    }

    /// Reports what it omits, and whether it may be sent.
    pub fn tell(&self, output: &Output) {
        self.tell_surprises(output);
        self.note_expected(output);
        warn_of(&self.besides.links, "symbolic links", output);
        warn_of(&self.odd_names(), "names that are not UTF-8", output);
        if !self.with_key.is_empty() {
            let first = phrases::first(&self.with_key, NAMED_LINKS);
            output.warn(&format!(
                "{first}: contains an API key, so the next run will not send this roll-up; remove the key"
            ));
        }
    }

    /// Names the files that one would expect in it.
    pub fn tell_surprises(&self, output: &Output) {
        self.left_out.iter().filter(|(_, why)| is_surprise(*why)).for_each(|file| output.warn(&line(file)));
    }

    fn note_expected(&self, output: &Output) {
        let expected: Vec<_> = self.left_out.iter().filter(|(_, why)| !is_surprise(*why)).collect();
        expected.iter().take(NAMED_FILES).for_each(|file| output.note(&line(file)));
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

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = (|| {
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|error| error.error)
    })();
    written.map(drop).with_context(|| format!("cannot write {}", path.display()))
}
