//! Files that belong to others: by history, as their tests, by what they define and use.

use std::collections::{BTreeMap, HashMap};

use crate::bm25::{Document, as_f64, rarity, scores};
use crate::kind::{self, Kind};
use crate::outline::Definition;
use crate::rank::{add, at_of, relative};
use crate::words::Words;
use crate::{File, Past};

/// A commit that changes more files says nothing about each.
const MOST_FILES: usize = 30;
/// After this many commits a change counts half, for how often a file changes.
const HALF_LIFE: f64 = 150.0;
/// After this many commits a change does not count as a late one.
const LATELY: f64 = 8.0;
/// More files of one stem are not a test and what it tests.
const MOST_OF_A_STEM: usize = 12;
/// A name that more files define means none of them.
const MOST_DEFINERS: usize = 5;
/// A shorter name is a word of any text.
const LEAST_LETTERS: usize = 4;

/// The place of each path.
pub(crate) type Places<'f> = HashMap<&'f str, usize>;
/// The best files and their scores.
pub(crate) type Seeds = BTreeMap<usize, f64>;

/// What the commits say about each file.
#[derive(Debug)]
pub(crate) struct History {
    /// How much commits with messages like the query changed it.
    pub like: Vec<f64>,
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
    let (mut like, mut often, mut lately) = (none(), none(), none());
    for (age, (commit, alike)) in past
        .iter()
        .zip(alike)
        .enumerate()
        .filter(|(_, (commit, _))| is_telling(commit))
    {
        let share = 1.0 / as_f64(commit.files.len().max(1)).sqrt();
        for at in changed(commit, places) {
            add(&mut like, at, alike * alike * share);
            add(&mut often, at, share / (1.0 + as_f64(age) / HALF_LIFE));
            add(&mut lately, at, share * (-as_f64(age) / LATELY).exp());
        }
    }
    History {
        like: logarithmic(like),
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
    for (text, times) in [(subject, 2.0), (body, 1.0)] {
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

/// How much each file changes together with the best ones.
pub(crate) fn together(past: &[Past], seeds: &Seeds, places: &Places<'_>) -> Vec<f64> {
    let mut changes: BTreeMap<usize, f64> = BTreeMap::new();
    let mut both: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for commit in past.iter().filter(|commit| is_telling(commit)) {
        let all: Vec<usize> = changed(commit, places).collect();
        let share = 1.0 / as_f64(all.len().saturating_sub(1).max(1)).sqrt();
        for seed in all.iter().filter(|at| seeds.contains_key(at)) {
            *changes.entry(*seed).or_default() += 1.0;
            for other in all.iter().filter(|other| *other != seed) {
                *both.entry((*seed, *other)).or_default() += share;
            }
        }
    }
    let mut together = vec![0.0; places.len()];
    for ((seed, other), count) in both {
        let of = |all: &BTreeMap<usize, f64>| all.get(&seed).copied().unwrap_or_default();
        add(
            &mut together,
            other,
            of(seeds) * count / (of(&changes) + 2.0),
        );
    }
    relative(together)
}

/// A test gets the score of what it tests, and the other way round.
pub(crate) fn pairs(files: &[File<'_>], scores: &[f64]) -> Vec<f64> {
    // The places of the sources and of the tests with a stem.
    let mut groups: HashMap<String, [Vec<usize>; 2]> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        let subject = kind::subject(kind::stem(file.path)).to_ascii_lowercase();
        let [sources, tests] = groups.entry(subject.replace(['-', '_'], "")).or_default();
        if kind::of(file.path) == Kind::Test {
            tests.push(at);
        } else {
            sources.push(at);
        }
    }
    let mut pairs = vec![0.0; files.len()];
    for [sources, tests] in groups
        .values()
        .filter(|[one, other]| one.len() + other.len() < MOST_OF_A_STEM)
    {
        for (these, those) in [(sources, tests), (tests, sources)] {
            let best = those
                .iter()
                .map(|at| at_of(scores, *at))
                .fold(0.0, f64::max);
            these.iter().for_each(|at| add(&mut pairs, *at, best));
        }
    }
    relative(pairs)
}

/// Files that use what the best ones define, and define what those use.
pub(crate) fn uses(
    files: &[File<'_>],
    definitions: &HashMap<usize, Vec<Definition>>,
    seeds: &Seeds,
) -> Vec<f64> {
    let mut definers: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut places: Vec<usize> = definitions.keys().copied().collect();
    places.sort_unstable();
    for at in &places {
        let names = definitions
            .get(at)
            .into_iter()
            .flatten()
            .map(|one| one.name.as_str());
        for name in names.filter(|name| name.len() >= LEAST_LETTERS) {
            let definers = definers.entry(name).or_default();
            if definers.last() != Some(at) {
                definers.push(*at);
            }
        }
    }
    definers.retain(|_, places| places.len() <= MOST_DEFINERS);
    let score = |at: &usize| seeds.get(at).copied().unwrap_or_default();
    let mut uses = vec![0.0; files.len()];
    for (at, file) in places.iter().filter_map(|at| Some((at, files.get(*at)?))) {
        let mut used: BTreeMap<&str, f64> = BTreeMap::new();
        let words = file.text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words
            .filter(|word| definers.contains_key(word))
            .for_each(|word| *used.entry(word).or_default() += 1.0);
        for (name, count) in used {
            let definers = definers.get(name).map(Vec::as_slice).unwrap_or_default();
            let share = f64::ln_1p(count) / as_f64(definers.len().max(1));
            for definer in definers.iter().filter(|definer| *definer != at) {
                add(&mut uses, *definer, score(at) * share);
                add(&mut uses, *at, score(definer) * share);
            }
        }
    }
    logarithmic(uses)
}

/// Files beside the best ones.
pub(crate) fn folders(files: &[File<'_>], seeds: &Seeds) -> Vec<f64> {
    let folder = |path: &'_ str| path.rsplit_once('/').map_or(0, |(folder, _)| folder.len());
    let of = |file: &File<'_>| {
        file.path
            .get(..folder(file.path))
            .unwrap_or_default()
            .to_owned()
    };
    let mut all: HashMap<String, (f64, f64)> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        let (sum, size) = all.entry(of(file)).or_default();
        *sum += seeds.get(&at).copied().unwrap_or_default();
        *size += 1.0;
    }
    let share = |file: &File<'_>| {
        all.get(&of(file))
            .map_or(0.0, |(sum, size)| sum / (2.0 + size).ln())
    };
    relative(files.iter().map(share).collect())
}
