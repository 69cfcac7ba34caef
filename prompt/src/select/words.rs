//! The words of a query, and how often a text holds them.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, MatchKind};

use super::given::Counts;

/// Words that say nothing about code.
const STOP: &str = " a about after again all also an and any are as at be because been before being but by can \
cannot could did do does doing don done dont for from get gets had has have having here how however i if in into \
instead is it its itself just let like may more most must no non not now of off on one only or other our out over \
own same see should since so some still such than that the their them then there these they this those thus to too \
under until up use used uses using via was way we were what when where which while who why will with without would \
yes yet you your make makes made ";
/// Endings of English words that are cut off, the longest first.
const ENDINGS: [&str; 22] = [
    "ations", "ation", "ments", "ment", "ings", "ions", "able", "ing", "ion", "ers", "ies", "ed",
    "er", "es", "ly", "or", "al", "s", "e", "y", "t", "d",
];
/// What is left of a word after an ending was cut off has at least this many letters.
const LEAST_STEM: usize = 4;
/// At most this many words of a query are looked for.
const MOST_WORDS: usize = 200;
/// A stem may go on with this many lower-case letters.
const LONGEST_ENDING: usize = 5;

/// What is looked for.
#[derive(Debug, Default)]
pub struct Words {
    search: Option<AhoCorasick>,
    words: Vec<Word>,
}

#[derive(Debug)]
pub(crate) struct Word {
    /// In lower case.
    stem: String,
    /// An identifier stands alone; a stem may go on.
    is_whole: bool,
    /// Words of the first line count more.
    pub weight: f64,
}

impl Words {
    /// The words of a query: stems of English words and of the parts of identifiers, and whole identifiers.
    #[must_use]
    pub fn of(query: &str) -> Self {
        let mut found: HashMap<(String, bool), (usize, f64)> = HashMap::new();
        for (number, line) in query.lines().enumerate() {
            let weight = if number == 0 { 1.0 } else { 0.5 };
            for word in line.split(|c: char| !is_of_identifier(c)) {
                let parts: Vec<&str> = parts(word).collect();
                if parts.len() > 1 {
                    note(
                        &mut found,
                        (word.trim_matches('_').to_ascii_lowercase(), true),
                        weight,
                    );
                }
                for part in parts {
                    let lower = part.to_lowercase();
                    let is_number = lower.bytes().all(|byte| byte.is_ascii_digit());
                    if lower.len() >= 2 && !is_number && !STOP.contains(&format!(" {lower} ")) {
                        note(&mut found, (stem(&lower).to_owned(), false), weight);
                    }
                }
            }
        }
        let mut all: Vec<_> = found.into_iter().collect();
        all.sort_by_key(|(_, (order, _))| *order);
        all.truncate(MOST_WORDS);
        let words: Vec<Word> = all
            .into_iter()
            .map(|((stem, is_whole), (_, weight))| Word {
                stem,
                is_whole,
                weight,
            })
            .collect();
        let search = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(words.iter().map(|word| &word.stem));
        Self {
            search: search.ok().filter(|_| !words.is_empty()),
            words,
        }
    }

    pub(crate) fn words(&self) -> &[Word] {
        &self.words
    }

    /// How often each word is in a text.
    pub(crate) fn count(&self, text: &str) -> Counts {
        let mut counts = vec![0; self.words.len()];
        for (at, _) in self.places(text) {
            if let Some(count) = counts.get_mut(usize::from(at)) {
                *count += 1;
            }
        }
        let all = (0..).zip(counts);
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// How often each word is in each line that has one, the lines by their numbers from 0.
    #[expect(
        clippy::naive_bytecount,
        reason = "compilers make vector code of it, and lines are short"
    )]
    pub(crate) fn count_in_lines(&self, text: &str) -> Vec<(usize, Counts)> {
        let (mut line, mut searched) = (0, 0);
        let mut found: Vec<(usize, Counts)> = Vec::new();
        for (word, end) in self.places(text) {
            let passed = text.as_bytes().get(searched..end).unwrap_or_default();
            line += passed.iter().filter(|byte| **byte == b'\n').count();
            searched = end;
            match found.last_mut().filter(|(last, _)| *last == line) {
                Some((_, counts)) => counts.push((word, 1)),
                None => found.push((line, vec![(word, 1)])),
            }
        }
        found
    }

    /// Each word that a text has, and where it ends, in that order.
    fn places(&self, text: &str) -> impl Iterator<Item = (u16, usize)> {
        let search = self.search.iter();
        let found = search.flat_map(move |search| search.find_overlapping_iter(text));
        found.filter_map(move |found| {
            let at = found.pattern().as_usize();
            let is_word = self
                .words
                .get(at)?
                .stands(text.as_bytes(), found.start(), found.end());
            is_word.then_some((u16::try_from(at).ok()?, found.end()))
        })
    }
}

impl Word {
    /// Whether what was found is a word of its own, or a part of an identifier.
    fn stands(&self, text: &[u8], start: usize, end: usize) -> bool {
        let before = start
            .checked_sub(1)
            .and_then(|at| text.get(at))
            .copied()
            .unwrap_or(b' ');
        let first = text.get(start).copied().unwrap_or(b' ');
        let rest = text.get(end..).unwrap_or_default();
        if self.is_whole {
            let next = rest.first().copied().unwrap_or(b' ');
            return !before.is_ascii_alphanumeric() && !next.is_ascii_alphanumeric();
        }
        let is_lower = |at: usize| text.get(at).is_some_and(u8::is_ascii_lowercase);
        let is_hump =
            first.is_ascii_uppercase() && (before.is_ascii_lowercase() || is_lower(start + 1));
        let begins = !before.is_ascii_alphabetic() || is_hump;
        let longest = match self.stem.len() {
            0..=2 => 0,
            3 => 3,
            _ => LONGEST_ENDING,
        };
        let is_upper = self.stem.len() > 1 && text.get(end - 1).is_some_and(u8::is_ascii_uppercase);
        let goes_on = |byte: &u8| {
            if is_upper {
                byte.is_ascii_alphabetic()
            } else {
                byte.is_ascii_lowercase()
            }
        };
        begins
            && rest
                .iter()
                .take(longest + 1)
                .take_while(|byte| goes_on(byte))
                .count()
                <= longest
    }
}

fn note(found: &mut HashMap<(String, bool), (usize, f64)>, word: (String, bool), weight: f64) {
    let order = found.len();
    let entry = found.entry(word).or_insert((order, 0.0));
    // A word that is repeated says a little more.
    entry.1 = if entry.1 == 0.0 {
        weight
    } else {
        (entry.1 + weight * 0.3).min(2.0)
    };
}

fn is_of_identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The parts of an identifier in `camelCase`, `snake_case` or `HTTPServer`.
pub(crate) fn parts(word: &str) -> impl Iterator<Item = &str> {
    word.split('_')
        .flat_map(humps)
        .filter(|part| !part.is_empty())
}

fn humps(word: &str) -> impl Iterator<Item = &str> {
    let has_humps = word.contains(char::is_uppercase);
    let chars = word.char_indices().filter(|_| has_humps);
    let chars: Vec<(usize, char)> = chars.collect();
    let is_start = |at: usize| {
        let upper = |at: usize| chars.get(at).is_some_and(|(_, c)| c.is_uppercase());
        let lower = |at: usize| chars.get(at).is_some_and(|(_, c)| c.is_lowercase());
        at > 0 && upper(at) && (!upper(at - 1) || lower(at + 1))
    };
    let mut cuts: Vec<usize> = vec![0];
    cuts.extend(
        (0..chars.len())
            .filter(|at| is_start(*at))
            .filter_map(|at| Some(chars.get(at)?.0)),
    );
    cuts.push(word.len());
    let ends: Vec<usize> = cuts.iter().skip(1).copied().collect();
    cuts.into_iter()
        .zip(ends)
        .filter_map(|(start, end)| word.get(start..end))
}

/// A word without its ending.
fn stem(word: &str) -> &str {
    let cut = ENDINGS.iter().find_map(|ending| {
        let least = if *ending == "s" { 3 } else { LEAST_STEM };
        word.strip_suffix(ending)
            .filter(|rest| rest.len() >= least && !(*ending == "s" && rest.ends_with('s')))
    });
    let cut = cut.unwrap_or(word);
    let mut last = cut.bytes().rev();
    let is_double = last
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() && last.next() == Some(byte));
    if cut.len() < word.len() && is_double {
        cut.get(..cut.len() - 1).unwrap_or(cut)
    } else {
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    fn check(query: &str, text: &str) -> String {
        let words = Words::of(query);
        let counts = words.count(text);
        let stem = |at: u16| &words.words()[usize::from(at)].stem;
        counts
            .into_iter()
            .map(|(at, count)| format!("{} {count}", stem(at)))
            .collect::<Vec<_>>()
            .join(", ")
    }

    #[test]
    fn a_word_is_found_with_other_endings_and_in_parts_of_identifiers() {
        assert_eq!(check("parsing", "parser parse() parsed sparse"), "pars 3");
        assert_eq!(
            check("the proxy headers", "ProxyHeader proxy_headers HTTPProxy"),
            "prox 3, head 2"
        );
        assert_eq!(check("log", "logging log_file LOGS catalog"), "log 2");
    }

    #[test]
    fn an_identifier_is_also_looked_for_as_a_whole() {
        assert_eq!(
            check("`read_line` hangs", "fn read_line() {} fn read_lines() {}"),
            "read_line 1, read 2, line 2"
        );
    }

    #[test]
    fn words_of_any_text_and_numbers_are_not_looked_for() {
        assert!(
            Words::of("This should not be in the 2024")
                .words()
                .is_empty()
        );
        assert_eq!(check("", "anything"), "");
    }
}
