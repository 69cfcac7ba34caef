//! Files that belong to others: by history, and by their folders.

use std::collections::{BTreeMap, HashMap};

use super::bm25::{Document, as_f64, rarity, scores};
use super::given::{File, Past};
use super::rank::{add, relative};
use super::words::Words;

/// After this many commits a change does not count as a late one.
const LATELY: f64 = 8.0;
/// A commit that changes more files says nothing about each.
const MOST_FILES: usize = 30;
/// After this many commits a change counts half, for how often a file changes.
const HALF_LIFE: f64 = 150.0;

/// The place of each path.
pub(crate) type Places<'f> = HashMap<&'f str, usize>;
/// The best files and their scores.
pub(crate) type Seeds = BTreeMap<usize, f64>;

/// What the commits say about each file.
#[derive(Debug)]
pub(crate) struct History {
    /// How much commits with messages like the query changed it.
    pub like: Vec<f64>,
    /// How similar to the query the most similar message of a commit is that changed it.
    pub closest: Vec<f64>,
    /// How often it changes.
    pub often: Vec<f64>,
    /// How late it was changed.
    pub lately: Vec<f64>,
}

pub(crate) fn history(past: &[Past], words: &Words, places: &Places<'_>) -> History {
    let documents: Vec<Document> = past.iter().map(|commit| document(commit, words)).collect();
    let rare = rarity(&documents, words.words().len());
    let weights: Vec<f64> = rare
        .iter()
        .zip(words.words())
        .map(|(rare, word)| rare * word.weight)
        .collect();
    let alike = relative(scores(&documents, &weights));
    let none = || vec![0.0; places.len()];
    let (mut like, mut closest) = (none(), none());
    let (mut often, mut lately) = (none(), none());
    for (age, (commit, alike)) in past
        .iter()
        .zip(alike)
        .enumerate()
        .filter(|(_, (commit, _))| is_telling(commit))
    {
        let share = 1.0 / as_f64(commit.files.len().max(1)).sqrt();
        for at in changed(commit, places) {
            add(&mut like, at, alike * alike * share);
            if let Some(most) = closest.get_mut(at) {
                *most = f64::max(*most, alike);
            }
            add(&mut often, at, share / (1.0 + as_f64(age) / HALF_LIFE));
            add(&mut lately, at, share * (-as_f64(age) / LATELY).exp());
        }
    }
    History {
        like: logarithmic(like),
        closest: relative(closest),
        often: logarithmic(often),
        lately: relative(lately),
    }
}

fn document(commit: &Past, words: &Words) -> Document {
    let (subject, body) = commit
        .message
        .split_once('\n')
        .unwrap_or((&commit.message, ""));
    let mut document = Document::default();
    for (text, times) in [(subject, 2), (body, 1)] {
        document.add(&words.count(text), as_f64(text.len()) / 6.0, times);
    }
    document
}

fn is_telling(commit: &Past) -> bool {
    commit.files.len() <= MOST_FILES
}

fn changed(commit: &Past, places: &Places<'_>) -> impl Iterator<Item = usize> {
    commit
        .files
        .iter()
        .filter_map(|path| places.get(path.as_str()).copied())
}

fn logarithmic(sums: Vec<f64>) -> Vec<f64> {
    relative(sums.into_iter().map(f64::ln_1p).collect())
}

/// Files beside the best ones.
pub(crate) fn folders(files: &[File], seeds: &Seeds) -> Vec<f64> {
    let mut all: HashMap<&str, (f64, f64)> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        let (sum, size) = all.entry(folder(file)).or_default();
        *sum += seeds.get(&at).copied().unwrap_or_default();
        *size += 1.0;
    }
    let share = |file: &File| {
        all.get(folder(file))
            .map_or(0.0, |(sum, size)| sum / (2.0 + size).ln())
    };
    relative(files.iter().map(share).collect())
}

fn folder(file: &File) -> &str {
    file.path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
