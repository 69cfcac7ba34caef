//! What is shown of which file: one sequence of steps, which a budget cuts off.
//!
//! The steps are the same for all budgets, so a larger one never loses a file and never turns a whole one into an
//! outline. They come in rounds, each up to a round number of tokens; within a round, what is too large for it is
//! skipped for smaller files, and waits for the next round.

use std::collections::HashMap;

use super::bm25::as_f64;
use super::given::tokens;
use super::named::Named;
use super::rank::{Ranking, Why, at_of};

/// Percent of a round for outlines, and of the rounds past [`FEW`] tokens.
const OUTLINES: u64 = 18;
const OUTLINES_OF_MANY: u64 = 6;
const FEW: u64 = 10_000;
/// Percent of a round for excerpts.
const EXCERPTS: u64 = 5;
/// Excerpts are made of the best files only, and of those with more tokens than this.
const MOST_EXCERPTS: usize = 8;
const LARGE: u64 = 2_000;
/// A round shows whole only this many files in a thousand of its tokens: the best, or small files would fill it.
const WHOLE_A_THOUSAND: u64 = 6;
/// How much the size of a file counts against its score, and the size below which it does not.
const SIZE_POWER: f64 = 0.28;
const SMALL: f64 = 400.0;
/// More than any score: files that the query names come before others.
const MEANT: f64 = 100.0;
/// Outlines are made of the best files only.
const MOST_OUTLINES: usize = 400;
/// In tokens.
const SMALLEST_OUTLINE: u64 = 20;
/// Bytes of the header of an outline besides those of a file's.
const OUTLINE_FRAME: usize = 32;

/// How a file is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// Its text.
    Whole,
    /// The first lines of its definitions, with their numbers.
    Outline(String),
    /// Its outline, and the lines that say most of what the query speaks of.
    Excerpt(String),
}

/// A file that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its place in the files.
    pub file: usize,
    /// What is shown of it.
    pub form: Form,
    /// Why it comes before others.
    pub why: Why,
    /// Its tokens with its header, rather too many than too few.
    pub tokens: u64,
}

/// What is shown, the most important first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The files.
    pub shown: Vec<Shown>,
    /// The files that the query names and that do not fit whole, with their tokens.
    pub too_large: Vec<(usize, u64)>,
}

/// How much is shown of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Nothing,
    Outline,
    Excerpt,
    Whole,
}

/// The budget is spent.
struct Spent;

pub(crate) fn plan(ranking: &Ranking<'_>, budget: u64, frame: usize) -> Selection {
    let mut planner = Planner::new(ranking, frame);
    let _ = planner.run(budget);
    let mut selection = Selection::default();
    for at in ranking.order.iter().copied() {
        let why = ranking.why.get(at).copied().unwrap_or(Why::Words);
        let (part, tokens) = planner.state(at);
        let form = match part {
            Part::Whole => Form::Whole,
            Part::Excerpt => Form::Excerpt(planner.excerpt(at).to_owned()),
            Part::Outline => Form::Outline(planner.outline(at).to_owned()),
            Part::Nothing => continue,
        };
        selection.shown.push(Shown {
            file: at,
            form,
            why,
            tokens,
        });
    }
    let is_whole = |at: &usize| planner.state(*at).0 == Part::Whole;
    let lacking = planner.named.iter().filter(|at| !is_whole(at));
    selection.too_large = lacking.map(|at| (*at, planner.whole(*at))).collect();
    selection
}

struct Planner<'r> {
    ranking: &'r Ranking<'r>,
    frame: usize,
    /// The files that the query names, the smallest first.
    named: Vec<usize>,
    /// The files in their order, and how much each is worth its size.
    worth: Vec<(usize, f64)>,
    /// What is shown of each file, with its tokens.
    states: Vec<(Part, u64)>,
    outlines: HashMap<usize, String>,
    excerpts: HashMap<usize, String>,
    spent: u64,
}

impl<'r> Planner<'r> {
    fn new(ranking: &'r Ranking<'r>, frame: usize) -> Self {
        let mut planner = Self {
            ranking,
            frame,
            named: Vec::new(),
            worth: Vec::new(),
            states: vec![(Part::Nothing, 0); ranking.files.len()],
            outlines: HashMap::new(),
            excerpts: HashMap::new(),
            spent: 0,
        };
        let is_named =
            |at: &usize| ranking.named.get(*at).copied().flatten() >= Some(Named::ByName);
        let mut named: Vec<usize> = ranking.order.iter().copied().filter(is_named).collect();
        named.sort_by_key(|at| planner.whole(*at));
        planner.named = named;
        let is_meant =
            |at: usize| ranking.named.get(at).copied().flatten() >= Some(Named::ByFolder);
        let worth = |at: usize| {
            let size = as_f64(usize::try_from(planner.whole(at)).unwrap_or(usize::MAX));
            let first = if is_meant(at) { MEANT } else { 0.0 };
            (
                at,
                first + at_of(&ranking.scores, at) / (size + SMALL).powf(SIZE_POWER),
            )
        };
        planner.worth = ranking.order.iter().map(|at| worth(*at)).collect();
        planner
    }

    /// Takes steps until one is larger than what is left of the budget.
    fn run(&mut self, budget: u64) -> Result<(), Spent> {
        for round in rounds() {
            for at in self.named.clone() {
                for part in [Part::Outline, Part::Excerpt, Part::Whole] {
                    self.take(at, part, limit(round), budget)?;
                }
            }
            let most = limit(round).min(self.room_beside_named(round));
            self.take_outlines(round, most, budget)?;
            if round < FEW {
                continue;
            }
            self.take_excerpts(round, most, budget)?;
            let best = usize::try_from(round * WHOLE_A_THOUSAND / 1000).unwrap_or(usize::MAX);
            let mut best: Vec<(usize, f64)> = self.worth.iter().copied().take(best).collect();
            best.sort_by(|one, other| other.1.total_cmp(&one.1));
            for (at, _) in best {
                self.take(at, Part::Whole, most, budget)?;
            }
        }
        Ok(())
    }

    /// Outlines of the best files, for their part of a round.
    fn take_outlines(&mut self, round: u64, most: u64, budget: u64) -> Result<(), Spent> {
        let percent = if round > FEW {
            OUTLINES_OF_MANY
        } else {
            OUTLINES
        };
        let mut room = limit(round) * percent / 100;
        for at in self.ranking.order.iter().copied().take(MOST_OUTLINES) {
            if room < SMALLEST_OUTLINE {
                break;
            }
            let (part, _) = self.state(at);
            if part < Part::Whole
                && let Some(size) = self.outlined(at)
                && (part > Part::Nothing || size <= room)
            {
                self.take(at, Part::Outline, most, budget)?;
                room = room.saturating_sub(size);
            }
        }
        Ok(())
    }

    /// Excerpts of the best files that are large, for their part of a round. One that is shown whole later in the round
    /// gives its room back.
    fn take_excerpts(&mut self, round: u64, most: u64, budget: u64) -> Result<(), Spent> {
        let mut room = limit(round) * EXCERPTS / 100;
        for at in self.ranking.order.iter().copied().take(MOST_EXCERPTS) {
            if self.state(at).0 < Part::Whole
                && let Some(size) = self.excerpted(at).filter(|size| *size <= room)
            {
                self.take(at, Part::Excerpt, most, budget)?;
                room -= size;
            }
        }
        Ok(())
    }

    /// What may be spent so that each named file fits into the first round that is large enough for it, but at least two
    /// fifths of this round: a named file that takes more than three quarters of a round may have to wait for the next.
    fn room_beside_named(&self, round: u64) -> u64 {
        let (mut needed, mut room) = (0, u64::MAX);
        for at in &self.named {
            needed += self.whole(*at);
            let fits = rounds().map(limit).find(|limit| *limit >= needed);
            if let Some(fits) = fits.filter(|fits| *fits > limit(round)) {
                room = room.min(fits - needed);
            }
        }
        room.max(limit(round) * 2 / 5)
    }

    /// Shows a file, or more of it, if no more than `most` is spent then.
    fn take(&mut self, at: usize, part: Part, most: u64, budget: u64) -> Result<(), Spent> {
        let (shown, old) = self.state(at);
        let new = match part {
            Part::Whole => Some(self.whole(at)),
            Part::Excerpt => self.excerpted(at),
            Part::Outline => self.outlined(at),
            Part::Nothing => None,
        };
        let new = new.filter(|_| part > shown);
        let Some(new) = new.filter(|new| self.spent - old + new <= most) else {
            return Ok(());
        };
        if self.spent - old + new > budget {
            return Err(Spent);
        }
        self.spent = self.spent - old + new;
        if let Some(state) = self.states.get_mut(at) {
            *state = (part, new);
        }
        Ok(())
    }

    fn state(&self, at: usize) -> (Part, u64) {
        self.states.get(at).copied().unwrap_or((Part::Nothing, 0))
    }

    /// The tokens of a file.
    fn whole(&self, at: usize) -> u64 {
        self.ranking.files.get(at).map_or(0, |file| {
            tokens(file.content.bytes + file.path.len() + self.frame)
        })
    }

    /// The tokens of its outline, if it is worth showing.
    fn outlined(&mut self, at: usize) -> Option<u64> {
        let (bytes, path) = (self.outline(at).len(), &self.ranking.files.get(at)?.path);
        let size = tokens(bytes + path.len() + self.frame + OUTLINE_FRAME);
        (bytes > 0 && size * 2 <= self.whole(at)).then_some(size)
    }

    /// The tokens of an excerpt of a large file, if it is worth showing.
    fn excerpted(&mut self, at: usize) -> Option<u64> {
        let whole = Some(self.whole(at)).filter(|whole| *whole > LARGE)?;
        let (bytes, path) = (self.excerpt(at).len(), &self.ranking.files.get(at)?.path);
        let size = tokens(bytes + path.len() + self.frame + OUTLINE_FRAME);
        (bytes > 0 && size * 2 <= whole).then_some(size)
    }

    /// With the outline.
    fn excerpt(&mut self, at: usize) -> &str {
        if !self.excerpts.contains_key(&at) {
            let mut parts = vec![self.outline(at).to_owned(), self.ranking.excerpt(at)];
            parts.retain(|part| !part.is_empty());
            self.excerpts.insert(at, parts.join("\n"));
        }
        self.excerpts.get(&at).map_or("", String::as_str)
    }

    fn outline(&mut self, at: usize) -> &str {
        let ranking = self.ranking;
        self.outlines
            .entry(at)
            .or_insert_with(|| ranking.outline(at))
    }
}

/// The part of a budget that is left to the list of other files.
#[must_use]
pub fn listed(budget: u64) -> u64 {
    budget / if budget < FEW { 16 } else { 32 }
}

/// Round numbers, as people give them.
fn rounds() -> impl Iterator<Item = u64> {
    let decades = (3..8).map(|zeros| 10_u64.pow(zeros));
    decades.flat_map(|decade| [decade, 2 * decade, 5 * decade])
}

/// What the files of a round may take: the list of other files has its part, too.
fn limit(round: u64) -> u64 {
    round - listed(round)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::{Candidates, Counted, File, Form, Past, Selection, Words};
    use super::Part;

    fn select(texts: &[(String, String)], past: &[Past], query: &str, budget: u64) -> Selection {
        let words = Words::of(query);
        let file = |(path, text): &(String, String)| File {
            path: path.clone(),
            content: Counted::of(text, &words),
        };
        let files: Vec<File> = texts.iter().map(file).collect();
        let candidates = Candidates {
            files: &files,
            words: &words,
            text: &|at| texts[at].1.clone(),
        };
        super::super::select(candidates, past, query, budget, 14)
    }

    fn text(lines: usize) -> String {
        (0..lines).map(|line| format!("fn scan_{line}() -> Vec<String> {{\n    // what it does\n    let mut found = Vec::new();\n    found\n}}\n")).collect()
    }

    /// How much is shown of each file at a budget.
    fn forms(files: &[(String, String)], query: &str, budget: u64) -> BTreeMap<usize, Part> {
        let past = [Past {
            message: "scan faster".to_owned(),
            files: vec!["f1.rs".to_owned(), "f2.rs".to_owned()],
        }];
        let selection = select(files, &past, query, budget);
        assert!(
            selection
                .shown
                .iter()
                .map(|shown| shown.tokens)
                .sum::<u64>()
                <= budget
        );
        let part = |form: &Form| match form {
            Form::Whole => Part::Whole,
            Form::Excerpt(_) => Part::Excerpt,
            Form::Outline(_) => Part::Outline,
        };
        let shown = selection.shown.iter();
        shown.map(|shown| (shown.file, part(&shown.form))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_larger_budget_loses_no_file_and_shows_no_less_of_any(
            lines in prop::collection::vec(0_usize..120, 1..12),
            named in 0_usize..12,
            mut budgets in prop::collection::vec(0_u64..30_000, 2..6),
        ) {
            let files: Vec<_> = lines.iter().enumerate().map(|(at, lines)| (format!("f{at}.rs"), text(*lines))).collect();
            budgets.sort_unstable();
            let all: Vec<_> = budgets.iter().map(|budget| forms(&files, &format!("scan f{named}.rs"), *budget)).collect();
            for (small, large) in all.iter().zip(all.iter().skip(1)) {
                for (file, part) in small {
                    prop_assert!(large.get(file).is_some_and(|now| now >= part), "{budgets:?}: {file}");
                }
            }
        }
    }

    #[test]
    fn of_a_large_file_the_lines_are_shown_that_the_query_speaks_of() {
        let mut file = text(160);
        file.push_str("// the zebra\n");
        file.push_str(&text(160));
        let files: Vec<_> = (0..3)
            .map(|at| (format!("f{at}.rs"), file.clone()))
            .collect();
        let selection = select(&files, &[], "The zebra", 10_000);
        let shown = selection.shown.first().map(|shown| &shown.form);
        let Some(Form::Excerpt(excerpt)) = shown else {
            panic!("{shown:?}")
        };
        let lines: Vec<&str> = excerpt.lines().filter(|line| line.contains('|')).collect();
        assert_eq!(lines.len(), 30, "{excerpt}");
        assert_eq!(lines.first(), Some(&"787|    // what it does"));
        assert!(lines.contains(&"801|// the zebra"), "{excerpt}");
    }

    #[test]
    fn a_named_file_is_shown_whole_at_each_round_budget_that_holds_it_or_is_reported() {
        let files: Vec<_> = (1..9)
            .map(|at| (format!("src/f{at}.rs"), text(at * at * 6)))
            .collect();
        for budget in [1_000, 2_000, 5_000, 10_000, 20_000] {
            for (at, (path, text)) in files.iter().enumerate() {
                let selection = select(&files, &[], &format!("scan {path} again"), budget);
                let is_whole = selection
                    .shown
                    .iter()
                    .any(|shown| shown.file == at && shown.form == Form::Whole);
                let reported: Vec<usize> = selection.too_large.iter().map(|(at, _)| *at).collect();
                assert_eq!(reported, if is_whole { vec![] } else { vec![at] });
                let fits = super::super::tokens(text.len() + path.len() + 14)
                    <= budget * 3 / 4 - super::listed(budget);
                assert!(is_whole || !fits, "{path} at {budget}");
            }
        }
    }
}
