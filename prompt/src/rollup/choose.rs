//! Which files go into a roll-up that has a budget.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

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
    let names = Names::of(files);
    let mut reasons = vec![Why::Order; files.len()];
    for (reason, file) in reasons.iter_mut().zip(files) {
        if file.age.is_some() {
            *reason = Why::Recent;
        }
    }
    let named = names.in_query(query);
    for (index, file) in files.iter().enumerate() {
        let mentions = || names.in_text(file.text).any(|other| other != index && is_set(&named, other));
        let better = match is_set(&named, index) {
            true => Why::Query,
            false if named.contains(&true) && mentions() => Why::Mention,
            false => continue,
        };
        if let Some(reason) = reasons.get_mut(index) {
            *reason = better;
        }
    }
    let mut order: Vec<(usize, Why)> = reasons.into_iter().enumerate().collect();
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

fn is_set(flags: &[bool], index: usize) -> bool {
    flags.get(index).copied().unwrap_or_default()
}

/// What files are called, to be found in a text.
struct Names {
    search: Option<AhoCorasick>,
    /// The files that each pattern of the search names.
    meant: Vec<Meant>,
    files: usize,
}

struct Meant {
    files: Vec<usize>,
    is_folder: bool,
}

impl Names {
    fn of(files: &[Candidate<'_>]) -> Self {
        let mut stems: HashMap<&str, usize> = HashMap::new();
        for file in files {
            *stems.entry(stem(file.path)).or_default() += 1;
        }
        let mut names: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut folders: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, Candidate { path, .. }) in files.iter().enumerate() {
            let own = [path, file_name(path)];
            let stem =
                Some(stem(path)).filter(|stem| stem.len() >= LEAST_LETTERS && stems.get(stem) == Some(&1));
            let mut own: Vec<&str> = own.into_iter().chain(stem).collect();
            own.dedup();
            own.into_iter().for_each(|name| names.entry(name).or_default().push(index));
            let above = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
            above
                .filter(|folder| folder.len() >= LEAST_LETTERS)
                .for_each(|folder| folders.entry(folder).or_default().push(index));
        }
        let mut all: Vec<(&str, Meant)> =
            names.into_iter().map(|(name, files)| (name, Meant { files, is_folder: false })).collect();
        all.extend(folders.into_iter().map(|(name, files)| (name, Meant { files, is_folder: true })));
        // Without order the search would differ from run to run.
        all.sort_by(|(one, a), (other, b)| (one, a.is_folder).cmp(&(other, b.is_folder)));
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(all.iter().map(|(name, _)| name))
            .ok();
        Self { search, meant: all.into_iter().map(|(_, meant)| meant).collect(), files: files.len() }
    }

    /// Whether the query names each file.
    fn in_query(&self, query: &str) -> Vec<bool> {
        let mut named = vec![false; self.files];
        for meant in self.found(query) {
            for index in &meant.files {
                if let Some(named) = named.get_mut(*index) {
                    *named = true;
                }
            }
        }
        named
    }

    /// The files that a text names.
    fn in_text<'n>(&'n self, text: &'n str) -> impl Iterator<Item = usize> + 'n {
        self.found(text).filter(|meant| !meant.is_folder).flat_map(|meant| meant.files.iter().copied())
    }

    /// Names that stand alone: `lib.rs` is not in `glib.rs`, and `src/a` not in `src/ab`.
    fn found<'n>(&'n self, text: &'n str) -> impl Iterator<Item = &'n Meant> + 'n {
        let matches = self.search.iter().flat_map(move |search| search.find_overlapping_iter(text));
        let alone = matches.filter(move |found| {
            let before = text.get(..found.start()).and_then(|text| text.chars().next_back());
            let after = text.get(found.end()..).and_then(|text| text.chars().next());
            !before.is_some_and(is_of_name) && !after.is_some_and(is_of_name)
        });
        alone.filter_map(|found| self.meant.get(found.pattern().as_usize()))
    }
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
