//! Whether a round failed as the one before did.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A failure and how often it has come in a row.
#[derive(Debug)]
pub(crate) struct Failure {
    essence: u64,
    times: u32,
}

impl Failure {
    /// The failure of this round, counted on where the last one was the same.
    pub(crate) fn after(last: Option<Self>, output: &str) -> Self {
        let essence = essence(output);
        let before = last.filter(|last| last.essence == essence);
        Self {
            essence,
            times: 1 + before.map_or(0, |last| last.times),
        }
    }

    /// Rounds in a row that failed like this, this one included.
    pub(crate) fn times(&self) -> u32 {
        self.times
    }
}

/// What a round has failed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// The reply changed files, and the build failed.
    Build,
    /// The reply said that nothing has to change, or changed nothing, and the build failed.
    Unchanged,
    /// The reply could not be used.
    Reply,
}

/// What the model is told when it did not help.
pub(crate) fn notice(times: u32, at: At) -> String {
    let same = format!("[code-commit] This is the same failure {times} times in a row.");
    match at {
        At::Build => format!("{same} What you changed did not reach its cause; look elsewhere.\n"),
        At::Unchanged => {
            format!("{same} Your last reply changed nothing, and the build still fails.\n")
        }
        At::Reply => {
            format!(
                "{same} None of these replies was used; do less in one reply, or say it in another form.\n"
            )
        }
    }
}

/// A hash of output without what differs from run to run: times, addresses, lines and the folders of paths. A number that stands alone is
/// kept: of 12 failures or 3 the one is nearer to its cause. Nothing is copied: a build may print tens of millions of words.
fn essence(output: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for word in output.split_whitespace() {
        without_what_differs(word)
            .chain([' '])
            .for_each(|c| c.hash(&mut hasher));
    }
    hasher.finish()
}

fn without_what_differs(word: &str) -> impl Iterator<Item = char> {
    let hex = word
        .trim_matches(|c: char| !c.is_ascii_alphanumeric())
        .strip_prefix("0x");
    let is_address = hex.is_some_and(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()));
    let is_number = word
        .trim_matches(|c: char| c.is_ascii_punctuation())
        .bytes()
        .all(|byte| byte.is_ascii_digit());
    let name = word.rsplit('/').next().unwrap_or(word);
    let kept = if is_address {
        ""
    } else if is_number {
        word
    } else {
        name
    };
    kept.chars()
        .filter(move |c| is_number || !c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_addresses_lines_and_folders_do_not_tell_failures_apart() {
        let one = "error at /tmp/a1/src/lib.rs:10:5, 0x7ffd1234, took 0.12 s (3ms)";
        let two = "error at /tmp/b2/src/lib.rs:12:7,  0x7ffdabcd, took 3.4 s (12ms)";
        let again = Failure::after(Some(Failure::after(None, one)), two);
        assert_eq!(again.times(), 2);
    }

    #[test]
    fn another_message_begins_to_count_anew() {
        for (one, other) in [
            ("no type `A`", "no type `B`"),
            ("12 failed, 1 passed", "3 failed, 10 passed"),
            ("a b", "ab"),
        ] {
            let other = Failure::after(Some(Failure::after(None, one)), other);
            assert_eq!(other.times(), 1);
        }
    }
}
