//! How much each file matters for a query.

use std::collections::HashMap;

use super::bm25::{Document, as_f64, rarity, scores};
use super::given::{Candidates, File, Past};
use super::kind::{self, Kind};
use super::named::{Named, named};
use super::outline::{Definition, WIDEST, definitions, outline};
use super::relatives::{self, Places};
use super::words::Words;

/// The words of a path count as much as this many in the text.
const PATH: u32 = 8;
/// Bytes of a word of code, with what separates it.
const BYTES_A_WORD: f64 = 6.0;
/// The best files, by everything but symbols, are parsed: more cost time and change nothing (`DECISIONS.md`).
const PARSED: usize = 60;
/// The best files whose relatives count.
const SEEDS: usize = 10;
/// Bytes of an outline. A longer one has what the query speaks of, and names of the rest while there is room.
const LONGEST_OUTLINE: usize = 600;
/// Lines of an excerpt.
const EXCERPT: usize = 30;
/// Bytes of a definition in an outline besides its name or line.
const NUMBER: usize = 7;

/// The signals of a file, each between 0 and 1, with measured weights (`DECISIONS.md`).
const WORDS: f64 = 0.80;
const PATH_ALONE: f64 = 0.30;
const SYMBOLS: f64 = 0.84;
const LIKE: f64 = 0.71;
const CLOSEST: f64 = 0.15;
const OFTEN: f64 = 0.26;
const LATELY: f64 = 0.11;
const FOLDER: f64 = 0.12;

/// Why a file is shown before others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The query names it.
    Named,
    /// Its names, its symbols or its text are most of why.
    Words,
    /// Commits with messages like the query changed it.
    History,
    /// It is beside better files.
    Related,
    /// It changes often, or was changed lately.
    Recent,
}

impl Why {
    /// The reason for a person.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Named => "named by the query",
            Self::Words => "contains the query's words",
            Self::History => "changed by commits like the query",
            Self::Related => "related to files above",
            Self::Recent => "changed lately",
        }
    }
}

/// The files in the order of how much they matter.
pub(crate) struct Ranking<'f> {
    pub files: &'f [File],
    text: &'f dyn Fn(usize) -> String,
    /// The best first.
    pub order: Vec<usize>,
    pub scores: Vec<f64>,
    pub why: Vec<Why>,
    pub named: Vec<Option<Named>>,
    definitions: HashMap<usize, Vec<Definition>>,
    words: &'f Words,
    /// How much each of the words says.
    weights: Vec<f64>,
}

/// What is known of each file, one list for each signal.
struct Signals {
    named: Vec<Option<Named>>,
    /// What the kind of a file leaves of its score.
    parts: Vec<f64>,
    words: Vec<f64>,
    /// The words of its path alone.
    paths: Vec<f64>,
    history: relatives::History,
    symbols: Vec<f64>,
    folders: Vec<f64>,
}

pub(crate) fn rank<'f>(candidates: Candidates<'f>, past: &[Past], query: &str) -> Ranking<'f> {
    let Candidates { files, words, text } = candidates;
    let weights: Vec<f64> = words.words().iter().map(|word| word.weight).collect();
    let (documents, paths) = documents(files, words);
    let weights: Vec<f64> = rarity(&documents, weights.len())
        .iter()
        .zip(&weights)
        .map(|(rare, weight)| rare * weight)
        .collect();
    let places: Places<'_> = files
        .iter()
        .enumerate()
        .map(|(at, file)| (file.path.as_str(), at))
        .collect();
    let kinds: Vec<Kind> = files.iter().map(|file| kind::of(&file.path)).collect();
    let none = vec![0.0; files.len()];
    let mut signals = Signals {
        named: named(files, query),
        parts: parts(&kinds, query),
        words: relative(scores(&documents, &weights)),
        paths: relative(scores(&paths, &weights)),
        history: relatives::history(past, words, &places),
        symbols: none.clone(),
        folders: none,
    };
    let (_, order) = signals.sorted(PARSED);
    let defined = |at: &usize| {
        files
            .get(*at)
            .map(|file| (*at, definitions(&file.path, &text(*at))))
    };
    let definitions: HashMap<usize, Vec<Definition>> = order.iter().filter_map(defined).collect();
    signals.symbols = symbols(&definitions, words, &weights, files.len());
    let (scores, order) = signals.sorted(SEEDS);
    let seeds = order
        .into_iter()
        .map(|at| (at, at_of(&scores, at)))
        .collect();
    signals.folders = relatives::folders(files, &seeds);
    let (scores, order) = signals.sorted(files.len());
    let why = (0..files.len()).map(|at| signals.why(at)).collect();
    Ranking {
        files,
        text,
        order,
        scores,
        why,
        named: signals.named,
        definitions,
        words,
        weights,
    }
}

/// The words of all files, and those of their paths alone, which are searched as one text: that takes a tenth of the
/// time.
fn documents(files: &[File], words: &Words) -> (Vec<Document>, Vec<Document>) {
    let mut paths = String::new();
    for file in files {
        paths.extend([&*file.path, "\n"]);
    }
    let mut in_paths = words.count_in_lines(&paths).into_iter().peekable();
    let document = |(at, file): (usize, &File)| {
        let (mut document, mut path) = (Document::default(), Document::default());
        let length = as_f64(file.content.bytes) / BYTES_A_WORD;
        document.add(&file.content.words, length, 1);
        let parts = file.path.split(['/', '_', '.', '-']).count();
        let found = in_paths.next_if(|(line, _)| *line == at);
        let found = found.unwrap_or_default().1;
        document.add(&found, as_f64(parts), PATH);
        path.add(&found, as_f64(parts), 1);
        (document, path)
    };
    files.iter().enumerate().map(document).unzip()
}

/// What is left of a score for each file's kind, unless the query speaks of that kind.
fn parts(kinds: &[Kind], query: &str) -> Vec<f64> {
    let query = query.to_lowercase();
    let says = |all: &[&str]| all.iter().any(|word| query.contains(word));
    let of_prose = says(&[
        "doc",
        "readme",
        "typo",
        "changelog",
        "comment",
        "example",
        "guide",
        "website",
        "link",
    ]);
    let of_tests = says(&["test", "spec"]);
    let part = |kind: &Kind| match kind {
        Kind::Source => 1.0,
        Kind::Test if of_tests => 1.0,
        Kind::Prose if of_prose => 1.0,
        Kind::Test => 0.95,
        Kind::Prose => 0.53,
        Kind::Data => 0.69,
        Kind::News => 0.1,
    };
    kinds.iter().map(part).collect()
}

/// How well the names of what the files define fit.
fn symbols(
    definitions: &HashMap<usize, Vec<Definition>>,
    words: &Words,
    weights: &[f64],
    files: usize,
) -> Vec<f64> {
    let mut places: Vec<usize> = definitions.keys().copied().collect();
    places.sort_unstable();
    let names = |at: &usize| -> Vec<&str> {
        definitions
            .get(at)
            .into_iter()
            .flatten()
            .map(|one| one.name.as_str())
            .collect()
    };
    let document = |at: &usize| {
        let (names, mut document) = (names(at), Document::default());
        document.add(&words.count(&names.join("\n")), as_f64(names.len()), 1);
        document
    };
    let documents: Vec<Document> = places.iter().map(document).collect();
    let mut symbols = vec![0.0; files];
    for (at, score) in places
        .into_iter()
        .zip(relative(scores(&documents, weights)))
    {
        add(&mut symbols, at, score);
    }
    symbols
}

impl Signals {
    /// What speaks for a file: its words, its history, its relatives, its age.
    fn of(&self, at: usize) -> [(f64, Why); 4] {
        let one = |signal: &[f64]| at_of(signal, at);
        let is_named = self.named.get(at).is_some_and(Option::is_some);
        let words = WORDS * (one(&self.words) + f64::from(u8::from(is_named)))
            + PATH_ALONE * one(&self.paths)
            + SYMBOLS * one(&self.symbols);
        let recent = OFTEN * one(&self.history.often) + LATELY * one(&self.history.lately);
        let history = LIKE * one(&self.history.like) + CLOSEST * one(&self.history.closest);
        [
            (words, Why::Words),
            (history, Why::History),
            (FOLDER * one(&self.folders), Why::Related),
            (recent, Why::Recent),
        ]
    }

    /// The score of each file, and the best `most` files in their order, the best first.
    fn sorted(&self, most: usize) -> (Vec<f64>, Vec<usize>) {
        let score = |at: usize| {
            at_of(&self.parts, at) * self.of(at).iter().map(|(part, _)| part).sum::<f64>()
        };
        let scores: Vec<f64> = (0..self.parts.len()).map(score).collect();
        let named = |at: usize| self.named.get(at).copied().flatten();
        let mut order: Vec<usize> = (0..scores.len()).collect();
        let by_rank = |one: &usize, other: &usize| {
            let by_score = || at_of(&scores, *other).total_cmp(&at_of(&scores, *one));
            named(*other)
                .cmp(&named(*one))
                .then_with(by_score)
                .then(one.cmp(other))
        };
        if most < order.len() {
            order.select_nth_unstable_by(most, by_rank);
            order.truncate(most);
        }
        order.sort_unstable_by(by_rank);
        (scores, order)
    }

    fn why(&self, at: usize) -> Why {
        if self.named.get(at).is_some_and(Option::is_some) {
            return Why::Named;
        }
        let most = self
            .of(at)
            .into_iter()
            .max_by(|one, other| one.0.total_cmp(&other.0));
        most.map_or(Why::Words, |(_, why)| why)
    }
}

impl Ranking<'_> {
    /// The outline of a file. Of a test, whose signatures say nothing, it has only the names.
    pub(crate) fn outline(&self, at: usize) -> String {
        let Some(file) = self.files.get(at) else {
            return String::new();
        };
        let text = (self.text)(at);
        let known = self.definitions.get(&at).cloned();
        let all = known.unwrap_or_else(|| definitions(&file.path, &text));
        let is_test = kind::of(&file.path) == Kind::Test;
        let whole = outline(&all, &text, |_| is_test);
        if whole.len() <= LONGEST_OUTLINE {
            return whole;
        }
        let lines: Vec<&str> = text.lines().collect();
        let line = |one: &Definition| lines.get(one.row).copied().unwrap_or_default().trim();
        let worth = |one: &Definition| self.said(&one.name) + self.said(line(one));
        let mut best: Vec<(f64, &Definition)> = all.iter().map(|one| (worth(one), one)).collect();
        best.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut bytes = 0;
        best.retain(|(worth, one)| {
            let is_terse = is_test || *worth == 0.0;
            let shown = if is_terse { &one.name } else { line(one) };
            bytes += shown.len().min(WIDEST) + one.depth + NUMBER;
            bytes <= LONGEST_OUTLINE
        });
        best.sort_by_key(|(_, one)| one.row);
        let best: Vec<Definition> = best.into_iter().map(|(_, one)| one.clone()).collect();
        outline(&best, &text, |one| is_test || worth(one) == 0.0)
    }

    /// The lines of a file that say most of what the query speaks of, with their numbers. Empty if none does.
    pub(crate) fn excerpt(&self, at: usize) -> String {
        let text = (self.text)(at);
        let lines: Vec<&str> = text.lines().collect();
        let mut said = vec![0.0; lines.len()];
        for (line, counts) in self.words.count_in_lines(&text) {
            for (word, _) in counts {
                add(&mut said, line, at_of(&self.weights, usize::from(word)));
            }
        }
        let sums: Vec<f64> = said
            .windows(EXCERPT)
            .map(|some| some.iter().sum())
            .collect();
        let most = sums.iter().copied().fold(0.0, f64::max);
        let is_best = |sum: &&f64| most > 0.0 && **sum >= most;
        let Some(first) = sums.iter().position(|sum| is_best(&sum)) else {
            return String::new();
        };
        // What is around the words says more than what follows them.
        let start = first + sums.iter().skip(first).take_while(is_best).count() / 2;
        let shown = lines.iter().enumerate().skip(start).take(EXCERPT);
        let line = |(row, line): (usize, &&str)| {
            let line: String = line.chars().take(2 * WIDEST).collect();
            format!("{}|{line}", row + 1)
        };
        shown.map(line).collect::<Vec<_>>().join("\n")
    }

    /// How much a text says of what the query speaks of.
    fn said(&self, text: &str) -> f64 {
        let counts = self.words.count(text).into_iter();
        counts
            .map(|(word, _)| at_of(&self.weights, usize::from(word)))
            .sum()
    }
}

/// Scores as parts of the highest one.
pub(crate) fn relative(mut scores: Vec<f64>) -> Vec<f64> {
    let most = scores.iter().copied().fold(0.0, f64::max);
    if most > 0.0 {
        scores.iter_mut().for_each(|score| *score /= most);
    }
    scores
}

/// The number at a place; 0 for none.
pub(crate) fn at_of(all: &[f64], at: usize) -> f64 {
    all.get(at).copied().unwrap_or_default()
}

pub(crate) fn add(sums: &mut [f64], at: usize, more: f64) {
    if let Some(sum) = sums.get_mut(at) {
        *sum += more;
    }
}
