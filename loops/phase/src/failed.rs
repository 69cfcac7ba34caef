//! What the verifier tells the builder: `failed_specs.md`, and files that stand for it (S3 §Communication Channel).

use std::path::Path;

/// The name of `failed_specs.md` without its extension, in letters alone.
const LIST: &str = "failedspecs";
/// Extensions of files in which an entry is a literal or a comment, and of files that are not text.
const NO_PROSE: &str = "bash c cc cjs cpp cs css db ex exs gif go gz h hpp html ico ipynb java jpeg jpg js jsx kt lua mjs \
    mp4 pdf php pl png pyc py rb rs scala sh snap so sql sqlite svg swift tar ts tsx wasm webm webp woff woff2 zip";
/// How a report says below an entry that the contract holds.
const RESULTS: [&str; 4] = ["RESULT", "STATUS", "VERDICT", "OUTCOME"];
const HOLDS: &str = "pass passed ok holds success";

/// One contract that does not hold.
#[derive(Debug, Default)]
struct Entry {
    /// The contract, what made it fail, what came back.
    fields: [String; 3],
}

/// What the lines of the fields begin with, before the colon.
const FIELDS: [&str; 3] = ["SPEC", "INPUT", "OBSERVED"];

/// Whether `failed_specs.md` says that a contract fails: any `SPEC:` line does, however malformed its entry.
pub fn is_failure(text: &str) -> bool {
    text.lines().any(|line| value(line, "SPEC").is_some())
}

/// Whether a file has the name of the list of failures, in any case and with any extension.
pub(crate) fn is_list(path: &str) -> bool {
    let name = path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .split('.')
        .next()
        .unwrap_or_default();
    let letters = name
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase);
    letters.collect::<String>().starts_with(LIST)
}

/// Whether a file can hold failures for a person or a builder to read.
pub(crate) fn may_list(path: &str) -> bool {
    let extension = Path::new(path)
        .extension()
        .and_then(|it| it.to_str())
        .unwrap_or_default();
    is_list(path) || !is_one_of(&extension.to_lowercase(), NO_PROSE)
}

/// The failures in a file at another path than `failed_specs.md`: whole entries, or all of a misnamed list.
pub(crate) fn failures(path: &str, text: &str) -> Vec<String> {
    if is_list(path) && is_failure(text) {
        return vec![text.trim_end().to_owned()];
    }
    let failed = entries(text)
        .into_iter()
        .filter(|entry| !(entry.is_blank() || entry.holds()));
    failed
        .map(
            |Entry {
                 fields: [spec, input, observed],
             }| { format!("SPEC: {spec}\nINPUT: {input}\nOBSERVED: {observed}") },
        )
        .collect()
}

/// The entries with all three fields. A field continues on the lines after it, up to the next field.
fn entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut open = 0;
    for line in text.lines() {
        let field = FIELDS
            .iter()
            .enumerate()
            .find_map(|(number, name)| Some((number, value(line, name)?)));
        if let Some((0, _)) = field {
            entries.push(Entry::default());
        }
        let Some(entry) = entries.last_mut() else {
            continue;
        };
        if let Some((number, _)) = field {
            open = number;
        }
        let Some(text) = entry.fields.get_mut(open) else {
            continue;
        };
        match field {
            Some((_, value)) => value.trim().clone_into(text),
            None if text.is_empty() => line.trim_end().clone_into(text),
            None => text.push_str(&format!("\n{}", line.trim_end())),
        }
    }
    for field in entries.iter_mut().flat_map(|entry| &mut entry.fields) {
        *field = field.trim().to_owned();
    }
    entries.retain(|entry| entry.fields.iter().all(|field| !field.is_empty()));
    entries
}

impl Entry {
    /// `<the contract>` or `…`: a form that nobody has filled in.
    fn is_blank(&self) -> bool {
        let [spec, ..] = &self.fields;
        let inner = spec
            .trim_matches('`')
            .strip_prefix('<')
            .and_then(|rest| rest.strip_suffix('>'));
        inner.is_some_and(|inner| !inner.contains(['<', '>']))
            || !spec.chars().any(char::is_alphanumeric)
    }

    /// A report may describe in the same form what holds, if it says so below one of the three lines.
    fn holds(&self) -> bool {
        let says = |line: &str| {
            let said = RESULTS
                .iter()
                .find_map(|word| value(line, word))
                .unwrap_or_default();
            let word = said.trim_matches(|c: char| !c.is_alphabetic());
            is_one_of(&word.to_lowercase(), HOLDS)
        };
        self.fields.iter().any(|field| {
            let mut paragraph = field.lines().take_while(|line| !line.trim().is_empty());
            paragraph.any(says)
        })
    }
}

fn is_one_of(word: &str, words: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// The text after `NAME:` at the beginning of a line. Markdown around the word is ignored.
fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let plain = without_ordinal(line.trim_start_matches(is_markup)).trim_start_matches(is_markup);
    let start = plain.get(..name.len())?;
    let rest = plain.get(name.len()..)?.trim_start_matches(is_markup);
    let value = rest.strip_prefix([':', '：'])?;
    start
        .eq_ignore_ascii_case(name)
        .then(|| value.trim_start_matches(['*', '_', '`']))
}

/// White space, invisible characters, and the characters of Markdown's emphasis, lists, quotations,
/// tables and links.
fn is_markup(c: char) -> bool {
    c.is_whitespace()
        || "*-#>`_~+|[](){}•–—".contains(c)
        || matches!(c, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}')
}

/// The text of a numbered entry: `1. SPEC:`.
fn without_ordinal(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == text.len() {
        text
    } else {
        rest.strip_prefix(['.', ')']).unwrap_or(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FAILS: &str = "SPEC: GET / → 200\nINPUT: GET /\nOBSERVED: 404\n";

    #[test]
    fn the_example_of_the_seed_is_two_entries() {
        let text = "SPEC: POST /auth/login {valid credentials} → 200 {token}\n\
            INPUT: {\"email\": \"test@test.com\", \"password\": \"correct\"}\nOBSERVED: 404\n\n\
            SPEC: GET /dashboard (valid token) → 200\n\
            INPUT: GET /dashboard headers: {Authorization: Bearer <token>}\nOBSERVED: redirect /login\n";
        assert!(is_failure(text));
        let (first, second) = text.trim_end().split_once("\n\n").unwrap();
        assert_eq!(failures("notes.md", text), [first, second]);
    }

    #[test]
    fn any_spec_line_is_a_failure_however_malformed() {
        for text in [
            "SPEC:",
            "spec: x",
            "- SPEC: x",
            "**SPEC:** x",
            "## SPEC: x",
            "  > SPEC:x",
            "\u{feff}SPEC: x",
            "**SPEC**: x",
            "SPEC : x",
            "1. SPEC: x",
            "### 2) **SPEC**: x",
            "| SPEC: x |",
            "[SPEC]: x",
            "SPEC：x",
            "\u{200b}SPEC: x",
            "+ `SPEC`: x",
            "\r\nSPEC: x\r\n",
        ] {
            assert!(is_failure(text), "{text}");
        }
        for text in [
            "",
            "\n \n",
            "1.5 SPECIAL: x",
            "SPECIFICATION: x",
            "All SPEC: entries passed? no: this line only mentions one",
            "SPECS: none",
            "All contracts hold.\n",
            "INPUT: a\nOBSERVED: b\n",
            "é",
        ] {
            assert!(!is_failure(text), "{text}");
        }
    }

    #[test]
    fn an_entry_counts_wherever_it_is() {
        for path in [
            "notes",
            "verifier_reports/1.md",
            "a/b/Failed Specs.TXT",
            ".abl/tests/failed_specs.md",
            "x.yaml",
        ] {
            assert!(may_list(path) && failures(path, FAILS).len() == 1, "{path}");
        }
        let two = format!("Two:\n\n{FAILS}\n- **SPEC**: b\n- **INPUT**: c\n- **OBSERVED**: d\n");
        assert_eq!(failures("n.md", &two).len(), 2);
        let failed = FAILS.replace("404", "404\nRESULT: FAIL\n\nRESULT: PASS");
        assert_eq!(failures("n.md", &failed).len(), 1);
    }

    #[test]
    fn a_file_named_like_the_list_is_read_like_it() {
        let malformed = "SPEC: a → b\nOBSERVED: c\n";
        for path in [
            "failed_specs.txt",
            "FAILED_SPECS.md",
            "x/failed-specs.py",
            "failedSpecs.json",
        ] {
            assert!(
                may_list(path) && failures(path, malformed).len() == 1,
                "{path}"
            );
        }
        let elsewhere = failures("notes.md", malformed);
        assert!(elsewhere.is_empty(), "elsewhere an entry has all three");
        assert!(failures("failed_specs.txt", "None.\n").is_empty());
    }

    #[test]
    fn code_forms_and_what_holds_are_no_failures() {
        for path in [
            "test_parser.py",
            "run.sh",
            "a/b.test.ts",
            "shot.PNG",
            "parser.snap",
        ] {
            assert!(!may_list(path), "{path}");
        }
        for text in [
            "SPEC: <contract>\nINPUT: <input>\nOBSERVED: <what came back>\n",
            "SPEC: …\nINPUT: …\nOBSERVED: …\n",
            "SPEC: GET / → 200\nINPUT: GET /\nOBSERVED: 200\nRESULT: ✅ PASS\n",
            "SPEC: GET / → 200\nINPUT:\nOBSERVED: 404\n",
            "The old SPEC: GET / → 200, INPUT: GET /, OBSERVED: 404 is gone.\n",
        ] {
            assert!(failures("notes.md", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_field_goes_on_over_its_lines() {
        let json = "SPEC: a → b\nINPUT: {\n  \"input\": 1,\n  \"spec\": 2\n}\nOBSERVED: one\ntwo";
        assert_eq!(failures("notes.md", json), [json]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_whole_entries_come_back(spec in "[a-z →]{1,9}x", input in "[a-z{}\"]{1,9}", rest in ".{0,40}") {
            failures("notes.md", &rest);
            let entry = format!("SPEC: {}\nINPUT: {}\nOBSERVED: y", spec.trim(), input.trim());
            prop_assert_eq!(failures("notes.md", &entry), [entry]);
        }
    }
}
