//! How fast replies are read: `cargo bench -p code-commit-parser`.
//!
//! Each input is read by `parse`, and `memchr::memmem` counts the `^^^` in it. Divan prints the time and the bytes a
//! second of both; the table behind it prints what share of memmem's speed `parse` reaches, and by what factor its
//! time grows when the input doubles.

use std::hint::black_box;
use std::time::{Duration, Instant};

use divan::Bencher;
use divan::counter::BytesCount;
use memchr::memmem;

const MB: usize = 1_000_000;

#[derive(Debug, Clone, Copy)]
enum Input {
    Blocks,
    BareFences,
    Unterminated,
    Newlines,
    Carets,
}

impl Input {
    const ALL: [Self; 5] = [Self::Blocks, Self::BareFences, Self::Unterminated, Self::Newlines, Self::Carets];

    /// The input at its full size: 100 MB, or 10 million lines.
    fn full(self) -> String {
        match self {
            Self::Blocks => blocks(10_000, 100 * MB),
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
    let block = |n: usize| ["^^^src/module/file_", &n.to_string(), ".rs\n", &content, "^^^end\n\n"].concat();
    (0..count).map(block).collect()
}

fn count_fences(text: &str) -> usize {
    memmem::find_iter(text.as_bytes(), "^^^").count()
}

#[divan::bench(args = Input::ALL, sample_count = 10)]
fn parse(bencher: Bencher<'_, '_>, input: Input) {
    let text = input.full();
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| black_box(parser::parse(&text)).is_ok());
}

#[divan::bench(args = Input::ALL, sample_count = 10)]
fn memmem(bencher: Bencher<'_, '_>, input: Input) {
    let text = input.full();
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| black_box(count_fences(&text)));
}

#[expect(clippy::print_stdout, reason = "a benchmark reports there")]
fn main() {
    divan::main();
    println!("\n{:<14} {:>9} {:>9} {:>7} {:>9}", "input", "parse", "memmem", "share", "doubling");
    for input in Input::ALL {
        let text = input.full();
        let half = text.get(..text.len() / 2).unwrap_or_default();
        let whole = fastest(|| parser::parse(&text).is_ok());
        let halved = fastest(|| parser::parse(half).is_ok());
        let baseline = fastest(|| count_fences(&text) > 0);
        let speed = |time: Duration| gigabytes_per_second(text.len(), time);
        println!(
            "{:<14} {:>4.2} GB/s {:>4.2} GB/s {:>7.3} {:>8.2}x",
            format!("{input:?}"),
            speed(whole),
            speed(baseline),
            baseline.as_secs_f64() / whole.as_secs_f64(),
            whole.as_secs_f64() / halved.as_secs_f64(),
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn gigabytes_per_second(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64() / 1e9
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn fastest(work: impl Fn() -> bool) -> Duration {
    let run = |_| {
        let begin = Instant::now();
        black_box(work());
        begin.elapsed()
    };
    (0..15).map(run).min().unwrap_or_default()
}
