//! The files that matter for a query, whole or as outlines, within a budget of tokens.
//!
//! Takes files with their text, the commits of the past, a query and a budget. Never reads the disk, the clock or the
//! environment: the caller reads the files and asks git for the commits.
//!
//! How a file gets its place: `words` and `bm25` weigh the words of the query in its path, its text and the names of what
//! it defines; `relatives` adds the commits with similar messages, tests and folders; `rank` sums up
//! with measured weights. Files that the query names by path or name come first. `plan` turns the order into one sequence
//! of steps that the budget cuts off: a larger budget never loses a file, and never turns a whole file into an outline.
//!
//! An outline has the lines on which definitions begin, with their numbers, as `outline` finds them by one pattern a
//! language. Words are those of English. `tools/recall` measures all of it; `DECISIONS.md` has the figures.
//!
//! ```
//! use code_commit_prompt::select::{File, Form, Past, select};
//!
//! let scan = format!("/// Splits a text.\npub fn scan(text: &str) -> Vec<&str> {{\n{}}}\n", "    // …\n".repeat(90));
//! let files = [
//!     File { path: "src/lib.rs", text: "mod page;\nmod scan;\n" },
//!     File { path: "src/page.rs", text: "fn page() {}\n" },
//!     File { path: "src/scan.rs", text: &scan },
//! ];
//! let past = [Past { message: "Scanner: no empty words".to_owned(), files: vec!["src/scan.rs".to_owned()] }];
//!
//! let all = select(&files, &past, "The scanner finds empty words.", 1_000, 20);
//! assert_eq!(all.shown.first().map(|shown| (shown.file, &shown.form)), Some((2, &Form::Whole)));
//!
//! let few = select(&files, &[], "Look at src/scan.rs.", 120, 20);
//! assert!(few.shown.iter().any(|shown| shown.file == 2 && shown.form != Form::Whole));
//! assert_eq!(few.too_large.first().map(|(file, _)| *file), Some(2));
//! ```

mod bm25;
mod given;
mod kind;
mod named;
mod outline;
mod plan;
mod rank;
mod relatives;
mod words;

pub use self::given::{File, Past, bytes, tokens};
pub use self::named::is_named;
pub use self::plan::{Form, Selection, Shown, listed};
pub use self::rank::Why;

/// The files to show within a budget of tokens, the most important first. `past` has the latest commit first; each file
/// takes `frame` bytes besides its path and text.
#[must_use]
pub fn select(
    files: &[File<'_>],
    past: &[Past],
    query: &str,
    budget: u64,
    frame: usize,
) -> Selection {
    plan::plan(&rank::rank(files, past, query), budget, frame)
}
