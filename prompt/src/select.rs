//! The files that matter for a query, whole or as outlines, within a budget of tokens.
//!
//! Takes files with the counts of the query's words in their texts, a way to read the texts of the best, the commits of
//! the past, a query and a budget. Never reads the disk, the clock or the environment: the caller reads the files and asks
//! git for the commits. `index` keeps the words of contents, so that those that do not change are counted once.
//!
//! How a file gets its place: `words` and `bm25` weigh the words of the query in its path, its text and the names of what
//! it defines; `relatives` adds the commits with similar messages, tests and folders; `rank` sums up
//! with measured weights. Files that the query names by path or name come first. `plan` turns the order into one sequence
//! of steps that the budget cuts off: a larger budget never loses a file, and never shows less of one.
//!
//! An outline has the lines on which definitions begin, with their numbers, as `outline` finds them by one pattern a
//! language; an excerpt of a large file has the lines with most of the query's words, too. Words are those of English. `tools/recall` measures all of it; `DECISIONS.md` has the figures.
//!
//! ```
//! use code_commit_prompt::select::{Candidates, Counted, File, Form, Past, Words, select};
//!
//! let scan = format!("/// Splits a text.\npub fn scan(text: &str) -> Vec<&str> {{\n{}}}\n", "    // …\n".repeat(90));
//! let texts = [("src/lib.rs", "mod page;\nmod scan;\n"), ("src/page.rs", "fn page() {}\n"), ("src/scan.rs", &*scan)];
//! let query = "The scanner finds empty words of src/scan.rs.";
//! let words = Words::of(query);
//! let files = texts.map(|(path, text)| File { path: path.to_owned(), content: Counted::of(text, &words) });
//! let candidates = Candidates { files: &files, words: &words, text: &|at| texts[at].1.to_owned() };
//! let past = [Past { message: "Scanner: no empty words".to_owned(), files: vec!["src/scan.rs".to_owned()] }];
//!
//! let all = select(candidates, &past, query, 2_000, 20);
//! assert_eq!(all.shown.first().map(|shown| (shown.file, &shown.form)), Some((2, &Form::Whole)));
//!
//! let few = select(candidates, &[], query, 120, 20);
//! assert!(few.shown.iter().any(|shown| shown.file == 2 && shown.form != Form::Whole));
//! assert_eq!(few.too_large.first().map(|(file, _)| *file), Some(2));
//! ```

mod bm25;
mod given;
mod index;
mod kind;
mod named;
mod outline;
mod plan;
mod rank;
mod relatives;
mod words;

pub use self::given::{Candidates, Counted, File, Past, bytes, tokens};
pub use self::index::{Index, Segment};
pub use self::named::is_named;
pub use self::plan::{Form, Selection, Shown, listed};
pub use self::rank::Why;
pub use self::words::Words;

/// The files to show within a budget of tokens, the most important first. `past` has the latest commit first; each file
/// takes `frame` bytes besides its path and text.
#[must_use]
pub fn select(
    candidates: Candidates<'_>,
    past: &[Past],
    query: &str,
    budget: u64,
    frame: usize,
) -> Selection {
    plan::plan(&rank::rank(candidates, past, query), budget, frame)
}
