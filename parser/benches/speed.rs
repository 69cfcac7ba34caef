//! How fast replies are read: `cargo bench -p code-commit-parser`.
//!
//! Each input is read by `parse`, and `memchr::memmem` counts the `^^^` in it. Divan prints the time and the bytes a
//! second of both; the table behind it measures them in turns and prints medians: what share of memmem's speed `parse`
//! reaches, and by what factor its time grows when the input doubles.

use std::hint::black_box;
use std::time::Instant;

use divan::Bencher;
use divan::counter::BytesCount;
use memchr::memmem;

const MB: usize = 1_000_000;

#[derive(Debug, Clone, Copy)]
enum Input {
    Blocks,
    Edits,
    BareFences,
    Unterminated,
    Newlines,
    Carets,
}

impl Input {
    const ALL: [Self; 6] = [
        Self::Blocks,
        Self::Edits,
        Self::BareFences,
        Self::Unterminated,
        Self::Newlines,
        Self::Carets,
    ];

    /// The input at its full size: 100 MB, or 10 million lines.
    fn full(self) -> String {
        match self {
            Self::Blocks => blocks(10_000, 100 * MB),
            Self::Edits => edits(10_000, 100 * MB),
            Self::BareFences => "^^^\n".repeat(10 * MB),
            Self::Unterminated => "^^^a\n".repeat(20 * MB),
            Self::Newlines => "\n".repeat(100 * MB),
            Self::Carets => "^".repeat(100 * MB),
        }
    }
}

/// A piece of source text with single sigils and `&&` in it, as there are in any.
const SOURCE: &str = "\
    /// The share of each in per cent, `None` if there is nothing to share (see the table in §2.1).
    pub fn shares<'t>(parts: &'t [Part], total: u64) -> Option<Vec<(&'t str, u64)>> {
        let known = parts.iter().filter(|part| part.is_known() && part.size > 0);
        let share = |part: &'t Part| Some((part.name.as_str(), part.size.checked_mul(100)? / total));
        if total % 2 == 1 || parts.is_empty() {
            return None;
        }
        println!(\"costs ${} for {} parts, mask {:#x}\", total / 100, parts.len(), total ^ 0xff);
        known.map(share).collect()
    }

    #[test]
    fn a_share_is_rounded_down() {
        assert_eq!(shares(&[Part::new(\"a\", 1), Part::new(\"b\", 2)], 3), Some(vec![(\"a\", 33), (\"b\", 66)]));
    }

";

/// `count` files of source text, about `bytes` in all.
fn blocks(count: usize, bytes: usize) -> String {
    let content = SOURCE.repeat(bytes / count / SOURCE.len());
    let block = |n: usize| {
        [
            "^^^src/module/file_",
            &n.to_string(),
            ".rs\n",
            &content,
            "^^^end\n\n",
        ]
        .concat()
    };
    (0..count).map(block).collect()
}

/// `count` edit blocks of about `bytes` in all, which replace every piece of source text by another.
fn edits(count: usize, bytes: usize) -> String {
    let hunk = [
        "<<<<<<< SEARCH\n",
        SOURCE,
        "=======\n",
        SOURCE,
        ">>>>>>> REPLACE\n",
    ]
    .concat();
    let content = hunk.repeat(bytes / count / hunk.len());
    let block = |n: usize| {
        [
            "^^^edit src/module/file_",
            &n.to_string(),
            ".rs\n",
            &content,
            "^^^end\n\n",
        ]
        .concat()
    };
    (0..count).map(block).collect()
}

fn count_fences(text: &str) -> usize {
    memmem::find_iter(text.as_bytes(), "^^^").count()
}

#[divan::bench(args = Input::ALL, sample_count = 10)]
fn parse(bencher: Bencher<'_, '_>, input: Input) {
    let text = input.full();
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| black_box(code_commit_parser::parse(&text)).is_ok());
}

#[divan::bench(args = Input::ALL, sample_count = 10)]
fn memmem(bencher: Bencher<'_, '_>, input: Input) {
    let text = input.full();
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| black_box(count_fences(&text)));
}

#[expect(clippy::print_stdout, reason = "a benchmark reports there")]
fn main() {
    divan::main();
    println!(
        "\n{:<14} {:>9} {:>9} {:>7} {:>9}",
        "input", "parse", "memmem", "share", "doubling"
    );
    for input in Input::ALL {
        let text = input.full();
        let turns: Vec<Turn> = (0..TURNS).map(|_| Turn::take(&text)).collect();
        println!(
            "{:<14} {:>4.2} GB/s {:>4.2} GB/s {:>7.3} {:>8.2}x",
            format!("{input:?}"),
            gigabytes(text.len()) / median(&turns, |turn| turn.whole),
            gigabytes(text.len()) / median(&turns, |turn| turn.memmem),
            median(&turns, |turn| turn.memmem / turn.whole),
            median(&turns, |turn| turn.whole / turn.half),
        );
    }
}

/// How often the table measures: one after the other in turns, so that whatever else the machine does falls on all.
const TURNS: usize = 41;

/// One measurement of each, in seconds.
struct Turn {
    whole: f64,
    half: f64,
    memmem: f64,
}

impl Turn {
    fn take(text: &str) -> Self {
        let half = text.get(..text.len() / 2).unwrap_or_default();
        Self {
            whole: seconds(|| code_commit_parser::parse(text).is_ok()),
            half: seconds(|| code_commit_parser::parse(half).is_ok()),
            memmem: seconds(|| count_fences(text) > 0),
        }
    }
}

fn median(turns: &[Turn], figure: impl Fn(&Turn) -> f64) -> f64 {
    let mut figures: Vec<f64> = turns.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn gigabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e9
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn seconds(work: impl Fn() -> bool) -> f64 {
    let begin = Instant::now();
    black_box(work());
    begin.elapsed().as_secs_f64()
}
