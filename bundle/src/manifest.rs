//! What is in a bundle.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt as _;

use code_commit_dir::Folder;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::hash::Hashing;
use crate::{LONGEST_NAME, MOST_ABOUT, MOST_BYTES, MOST_FILES};

/// The format of bundles that are written, and the only one that is read.
const FORMAT: u32 = 1;

/// What is signed: the files, and whatever the caller says about them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Manifest {
    format: u32,
    /// The caller's own.
    pub about: Value,
    /// The files, sorted by name.
    pub files: Vec<Item>,
    /// Files that are not in the bundle, by the caller's choice.
    pub withheld: Vec<Item>,
    /// Names, as text, of what cannot be in a bundle: symlinks, devices, names that are not UTF-8.
    pub left_out: Vec<String>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Relative to the folder, with `/`.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its content, lower-case hex.
    pub sha256: String,
}

/// What is in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// The files, sorted by name.
    pub files: Vec<Item>,
    /// Those that stay behind.
    pub withheld: Vec<Item>,
    /// What cannot be in a bundle.
    pub left_out: Vec<String>,
}

impl Survey {
    /// Reads every file once.
    pub fn of(folder: &Folder) -> io::Result<Self> {
        let mut survey = Self::default();
        survey.add(folder, "")?;
        survey.files.sort();
        survey.left_out.sort();
        Ok(survey)
    }

    /// Leaves the files that `is_withheld` names out of the bundle; their hashes stay.
    #[must_use]
    pub fn without(mut self, is_withheld: impl Fn(&str) -> bool) -> Self {
        let (withheld, files) = self
            .files
            .into_iter()
            .partition(|item| is_withheld(&item.name));
        (self.files, self.withheld) = (files, withheld);
        self
    }

    fn add(&mut self, folder: &Folder, above: &str) -> io::Result<()> {
        for (name, kind) in folder.entries()? {
            let shown = format!("{above}{}", String::from_utf8_lossy(&name));
            let is_text = std::str::from_utf8(&name).is_ok() && shown.len() <= LONGEST_NAME;
            if is_text && kind.is_dir() {
                self.add(
                    &folder.open_in(OsStr::from_bytes(&name))?,
                    &format!("{shown}/"),
                )?;
            } else if is_text && kind.is_file() && is_plain(&shown) {
                let mut hashing = Hashing::new(io::sink());
                io::copy(
                    &mut folder.open_file(OsStr::from_bytes(&name))?,
                    &mut hashing,
                )?;
                self.files.push(Item {
                    name: shown,
                    bytes: hashing.bytes,
                    sha256: hashing.hex(),
                });
            } else {
                self.left_out.push(shown);
            }
        }
        Ok(())
    }
}

impl Manifest {
    /// For what a survey found.
    #[must_use]
    pub fn new(about: Value, survey: Survey) -> Self {
        let Survey {
            files,
            withheld,
            left_out,
        } = survey;
        Self {
            format: FORMAT,
            about,
            files,
            withheld,
            left_out,
        }
    }

    /// The bytes that are signed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Maps with other keys than texts are the only values without a JSON form.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Reads one that may come from anybody. `None` if it is no manifest, or names what may not be written.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let Incoming {
            format,
            about,
            files,
            withheld,
            left_out,
        } = serde_json::from_slice(bytes).ok()?;
        // As a value it takes many times the memory of its text.
        let about = Some(about.get()).filter(|about| about.len() <= MOST_ABOUT)?;
        let manifest = Self {
            format,
            about: serde_json::from_str(about).ok()?,
            files,
            withheld,
            left_out,
        };
        let names = || manifest.files.iter().map(|item| item.name.as_str());
        let is_sorted = names().zip(names().skip(1)).all(|(one, next)| one < next);
        let all: BTreeSet<&str> = names().collect();
        let is_below_file = |name: &str| folders_above(name).any(|folder| all.contains(folder));
        let bytes = manifest
            .files
            .iter()
            .try_fold(0_u64, |sum, item| sum.checked_add(item.bytes));
        let is_good = manifest.format == FORMAT
            && bytes.is_some_and(|bytes| bytes <= MOST_BYTES)
            && is_sorted
            && names().all(is_plain)
            // It would fail half way.
            && !names().any(is_below_file);
        is_good.then_some(manifest)
    }
}

/// A manifest as it comes in: lists are counted while they are read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Incoming<'m> {
    format: u32,
    #[serde(borrow)]
    about: &'m RawValue,
    #[serde(deserialize_with = "bounded")]
    files: Vec<Item>,
    #[serde(deserialize_with = "bounded")]
    withheld: Vec<Item>,
    #[serde(deserialize_with = "bounded")]
    left_out: Vec<String>,
}

fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>>(list: D) -> Result<Vec<T>, D::Error> {
    list.deserialize_seq(Bounded(PhantomData))
}

struct Bounded<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST_FILES}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == MOST_FILES {
                return Err(serde::de::Error::invalid_length(MOST_FILES + 1, &self));
            }
            items.push(item);
        }
        Ok(items)
    }
}

/// `a/b` and `a` of `a/b/c`.
fn folders_above(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').filter_map(|(at, _)| name.get(..at))
}

/// Whether a name stays inside of the folder, and means the same on every system.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && part.len() <= 255;
    name.len() <= LONGEST_NAME && !name.contains(['\0', '\\']) && name.split('/').all(is_plain)
}
