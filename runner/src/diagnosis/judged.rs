//! Signs that the code was compiled or tested, and found wanting.

/// Words with which compilers, test runners and failed assertions speak about code.
const VERDICTS: [&str; 22] = [
    // Rust
    "error[E",
    "test result: FAILED",
    "panicked at ",
    // Python
    "AssertionError",
    "SyntaxError:",
    "FAILED (failures=",
    // Go
    "--- FAIL:",
    "[build failed]",
    "): undefined: ",
    // JavaScript and TypeScript
    "ERR_ASSERTION",
    "error TS",
    "ReferenceError:",
    "TypeError:",
    "Expected:",
    // C and C++
    "undefined reference to",
    "tests failed out of",
    // Java
    "COMPILATION ERROR",
    "There are test failures",
    "There were failing tests",
    "Compilation failed; see the compiler",
    "Compilation error",
    "Assertion failed",
];

/// Compilers of C print them after the number of a line or a column; other programs after their name.
const AFTER_PLACE: [&str; 2] = [": error: ", ": fatal error: "];

/// Words that follow a number of tests.
const COUNTED: [&str; 3] = ["failed", "failing", "failures"];
/// Lines of compilers that name no code for their error.
const RUSTC: &str = "error: ";
const RUSTC_PLACE: &str = "--> ";

/// Whether anything here is a verdict about code.
pub(super) fn is_judged(output: &str) -> bool {
    let is_verdict = |line: &str| {
        VERDICTS.iter().any(|words| line.contains(words))
            || is_after_place(line)
            || counts_failures(line)
    };
    output.lines().any(is_verdict) || is_of_rustc(output)
}

fn is_after_place(line: &str) -> bool {
    let places = AFTER_PLACE
        .iter()
        .filter_map(|words| line.split_once(words));
    places
        .into_iter()
        .any(|(place, _)| place.ends_with(|last: char| last.is_ascii_digit()))
}

/// `1 failed in 0.02s`, `2 failing`, `Tests: 1 failed`, `Failures: 1`.
fn counts_failures(line: &str) -> bool {
    let words: Vec<&str> = line
        .split([' ', ',', '=', '\t'])
        .filter(|word| !word.is_empty())
        .collect();
    let is_count = |word: &str| word.parse::<u64>().is_ok_and(|count| count > 0);
    words.windows(2).any(|pair| match pair {
        [count, what] => {
            (is_count(count) && COUNTED.contains(&what.trim_end_matches([':', '.', ';'])))
                || (matches!(*count, "Failures:" | "Errors:") && is_count(what))
        }
        _ => false,
    })
}

/// `error: expected …` above the place in a source file.
fn is_of_rustc(output: &str) -> bool {
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        let place = lines
            .peek()
            .is_some_and(|next| next.trim_start().starts_with(RUSTC_PLACE));
        if line.starts_with(RUSTC) && place {
            return true;
        }
    }
    false
}
