//! Which files go into a roll-up that has a budget.

use std::collections::{BTreeMap, HashMap, HashSet};

use aho_corasick::AhoCorasick;

use super::{BEGINS, ENDS};
use crate::header::dashes;

/// Bytes that are counted as one token. Services get three to four bytes of code into one.
const BYTES_A_TOKEN: u64 = 3;
/// A shorter stem or folder is a word of any text.
const LEAST_LETTERS: usize = 4;

/// A file that could be shown.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'c> {
    /// Relative to the root.
    pub path: &'c str,
    /// Its content.
    pub text: &'c str,
    /// When it was last changed compared to the others: the smaller, the later. `None` if nobody knows.
    pub age: Option<usize>,
}

/// Why a file is shown before others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The query names it, or a folder that it is in.
    Query,
    /// It names a file that the query names.
    Mention,
    /// It was changed lately.
    Recent,
    /// None of these: in the order of the paths.
    Order,
}

impl Why {
    /// The reason for a person.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Query => "named by the query",
            Self::Mention => "names a file that the query names",
            Self::Recent => "changed lately",
            Self::Order => "fits",
        }
    }
}

/// The tokens of a text, rather too many than too few.
#[must_use]
pub fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_A_TOKEN)
}

/// The most bytes that are certain to fit into this many tokens.
#[must_use]
pub fn bytes(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(BYTES_A_TOKEN)).unwrap_or(usize::MAX)
}

/// The files to show, as places in `files`, each with its reason, the most important first. A file that does
/// not fit is skipped for smaller ones.
///
/// The query names a file by its path, its name, or its stem if no other file has it and it has four letters
/// or more, and names the files of a folder by the folder's path. In the same sense, but for folders, a file
/// names others.
#[must_use]
pub fn choose(files: &[Candidate<'_>], query: &str, budget: u64) -> Vec<(usize, Why)> {
    let stems = only_stems(files);
    let own = |index: usize| names_of(files, index, &stems);
    let named = named_by(query, files, own);
    let mentioned = Names::of(named.iter().flat_map(|index| own(*index).map(|name| (name, *index))));
    let why = |(index, file): (usize, &Candidate<'_>)| {
        let why = if named.contains(&index) {
            Why::Query
        } else if mentioned.in_text(file.text).next().is_some() {
            Why::Mention
        } else if file.age.is_some() {
            Why::Recent
        } else {
            Why::Order
        };
        (index, why)
    };
    let mut order: Vec<(usize, Why)> = files.iter().enumerate().map(why).collect();
    let age = |index: usize| files.get(index).and_then(|file| file.age).unwrap_or(usize::MAX);
    order.sort_by_key(|&(index, why)| (why, age(index), index));
    let mut left = budget;
    let dashes = dashes(files.iter().map(|file| file.text), BEGINS);
    let header = dashes + BEGINS.len() + ENDS.len() + "\n".len();
    order.retain(|&(index, _)| {
        let size = files.get(index).map_or(0, |file| tokens(file.text.len() + file.path.len() + header));
        let fits = size <= left;
        left -= if fits { size } else { 0 };
        fits
    });
    order
}

/// The files that the query names. Of all names only those are searched for whose words are in the query.
fn named_by<'f, N: Iterator<Item = &'f str>>(
    query: &str,
    files: &[Candidate<'f>],
    own: impl Fn(usize) -> N,
) -> HashSet<usize> {
    let words: HashSet<&str> = words(query).collect();
    let names = files.iter().enumerate().flat_map(|(index, file)| {
        let folders = file.path.match_indices('/').filter_map(|(at, _)| file.path.get(..at));
        let folders = folders.filter(|folder| folder.len() >= LEAST_LETTERS);
        own(index).chain(folders).map(move |name| (name, index))
    });
    let names = names.filter(|(name, _)| self::words(name).all(|word| words.contains(word)));
    Names::of(names).in_text(query).collect()
}

/// The path of a file, its name, and its stem if that is one of `stems`.
fn names_of<'f>(
    files: &[Candidate<'f>],
    index: usize,
    stems: &HashSet<&'f str>,
) -> impl Iterator<Item = &'f str> {
    let path = files.get(index).map(|file| file.path);
    let stem = path.map(stem).filter(|stem| stems.contains(stem));
    path.into_iter().chain(path.map(file_name)).chain(stem)
}

/// The stems that one file has, and that are long enough to be a name.
fn only_stems<'f>(files: &[Candidate<'f>]) -> HashSet<&'f str> {
    let mut stems: HashMap<&str, bool> = HashMap::with_capacity(files.len());
    for file in files {
        stems.entry(stem(file.path)).and_modify(|is_only| *is_only = false).or_insert(true);
    }
    let is_name = |(stem, is_only): (&'f str, bool)| (is_only && stem.len() >= LEAST_LETTERS).then_some(stem);
    stems.into_iter().filter_map(is_name).collect()
}

/// What files are called, to be found in a text.
struct Names {
    search: Option<AhoCorasick>,
    /// The files that each pattern of the search names.
    meant: Vec<Vec<usize>>,
}

impl Names {
    fn of<'n>(names: impl Iterator<Item = (&'n str, usize)>) -> Self {
        // In order, so that the search is the same in each run.
        let mut files: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        names.for_each(|(name, file)| files.entry(name).or_default().push(file));
        Self { search: AhoCorasick::new(files.keys()).ok(), meant: files.into_values().collect() }
    }

    /// The files that a text names. Names stand alone: `lib.rs` is not in `glib.rs`, and `src/a` not in
    /// `src/ab`.
    fn in_text<'n>(&'n self, text: &'n str) -> impl Iterator<Item = usize> + 'n {
        let matches = self.search.iter().flat_map(move |search| search.find_overlapping_iter(text));
        let alone = matches.filter(move |found| {
            let before = text.get(..found.start()).and_then(|text| text.chars().next_back());
            let after = text.get(found.end()..).and_then(|text| text.chars().next());
            !before.is_some_and(is_of_name) && !after.is_some_and(is_of_name)
        });
        alone.filter_map(|found| self.meant.get(found.pattern().as_usize())).flatten().copied()
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_of_name(c)).filter(|word| !word.is_empty())
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn stem(path: &str) -> &str {
    let name = file_name(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str, Option<usize>)], query: &str, budget: u64) -> String {
        let files: Vec<_> = files.iter().map(|&(path, text, age)| Candidate { path, text, age }).collect();
        let chosen = choose(&files, query, budget);
        chosen
            .iter()
            .map(|(index, why)| format!("{}: {}", files[*index].path, why.reason()))
            .collect::<Vec<_>>()
            .join("\n")
    }

    const FILES: &[(&str, &str, Option<usize>)] = &[
        ("README.md", "see docs", None),
        ("parser/src/lib.rs", "mod scan;", Some(1)),
        ("parser/src/scan.rs", "fn scan() {}", None),
        ("runs/src/lib.rs", "uses scanner, not the other", Some(0)),
        ("runs/src/main.rs", "include!(\"../../parser/src/scan.rs\")", None),
    ];

    #[test]
    fn what_the_query_names_comes_first_then_what_names_that_then_what_changed_lately() {
        insta::assert_snapshot!(check(FILES, "Make scan.rs faster.", 1000), @"
        parser/src/scan.rs: named by the query
        parser/src/lib.rs: names a file that the query names
        runs/src/main.rs: names a file that the query names
        runs/src/lib.rs: changed lately
        README.md: fits
        ");
    }

    #[test]
    fn a_folder_that_the_query_names_means_its_files() {
        insta::assert_snapshot!(check(FILES, "The crate in parser/ is slow.", 1000), @"
        parser/src/lib.rs: named by the query
        parser/src/scan.rs: named by the query
        runs/src/main.rs: names a file that the query names
        runs/src/lib.rs: changed lately
        README.md: fits
        ");
    }

    #[test]
    fn a_name_counts_only_alone_and_a_stem_only_if_it_is_the_only_one() {
        for query in ["rescan", "scanner", "lib", "src"] {
            assert!(!check(FILES, query, 1000).contains("named by the query"), "{query}");
        }
        assert!(check(FILES, "scan", 1000).starts_with("parser/src/scan.rs: named by the query"));
    }

    #[test]
    fn what_does_not_fit_is_skipped_for_smaller_files() {
        let big = "x".repeat(3000);
        let files = [("big.rs", big.as_str(), Some(0)), ("small.rs", "x", Some(1))];
        assert_eq!(check(&files, "", 100), "small.rs: changed lately");
        assert_eq!(check(&files, "", 0), "");
    }
}
