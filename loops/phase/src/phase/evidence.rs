//! What a verifier's writings say besides `failed_specs.md`: failures in the wrong place, and tests of contracts.

use std::path::Path;

use crate::failed::{Entry, Report, is_markup, parse, value, without_ordinal};

/// The name of `failed_specs.md` without its extension, in letters alone.
const LIST: &str = "failedspecs";
/// Extensions of files in which an entry is a literal or a comment, and of files that are not text.
const NO_PROSE: &str = "bash c cc cjs cpp cs css db ex exs gif go gz h hpp html ico ipynb java jpeg jpg js jsx kt lua mjs \
    mp4 pdf php pl png pyc py rb rs scala sh snap so sql sqlite svg swift tar ts tsx wasm webm webp woff woff2 zip";
/// Folders with the material of tests: an entry counts there only if it names a contract.
const MATERIAL: &str =
    "__snapshots__ example examples fixture fixtures samples snapshots template templates testdata";
/// This many contracts without a test are named to a person.
const NAMED: usize = 5;
/// How a report says below an entry that the contract holds.
const RESULTS: [&str; 4] = ["RESULT", "STATUS", "VERDICT", "OUTCOME"];
const HOLDS: &str = "pass passed ok holds success";

fn is_one_of(word: &str, words: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// Whether a file has the name of the list of failures, in any case and with any extension.
pub(super) fn is_list(path: &str) -> bool {
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
pub(super) fn may_list(path: &str) -> bool {
    let extension = Path::new(path)
        .extension()
        .and_then(|it| it.to_str())
        .unwrap_or_default();
    is_list(path) || !is_one_of(&extension.to_lowercase(), NO_PROSE)
}

/// The failures in a file at this path, or in an answer. `known` are texts that the verifier was shown: their own
/// entries are examples, and `contracts` are those of the specs.
pub(super) fn failures(
    path: Option<&str>,
    text: &str,
    known: &[&str],
    contracts: &[&str],
) -> Vec<String> {
    let Report {
        entries,
        problems,
        failed,
    } = parse(text);
    if failed && !problems.is_empty() && path.is_some_and(is_list) {
        return vec![text.trim_end().to_owned()];
    }
    let examples: Vec<Entry> = known.iter().flat_map(|text| parse(text).entries).collect();
    let is_material = path.is_some_and(|path| {
        path.split('/')
            .rev()
            .skip(1)
            .any(|part| is_one_of(part, MATERIAL))
    });
    let names = |entry: &Entry| {
        contracts
            .iter()
            .any(|contract| key(contract) == key(&entry.spec))
    };
    let is_example = |entry: &Entry| {
        examples
            .iter()
            .any(|it| (&it.spec, &it.input) == (&entry.spec, &entry.input))
    };
    let counts = |entry: &Entry| !(is_blank(&entry.spec) || is_example(entry) || holds(entry));
    let counted = entries
        .into_iter()
        .filter(counts)
        .filter(|entry| !is_material || names(entry));
    counted
        .map(
            |Entry {
                 spec,
                 input,
                 observed,
             }| format!("SPEC: {spec}\nINPUT: {input}\nOBSERVED: {observed}"),
        )
        .collect()
}

/// `<the contract>` or `…`: a form that nobody has filled in.
fn is_blank(spec: &str) -> bool {
    let inner = spec
        .trim_matches('`')
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'));
    inner.is_some_and(|inner| !inner.contains(['<', '>']))
        || !spec.chars().any(char::is_alphanumeric)
}

/// A report may describe in the same form what holds, if it says so below one of the three lines.
fn holds(entry: &Entry) -> bool {
    let says = |line: &str| {
        let said = RESULTS
            .iter()
            .find_map(|word| value(line, word))
            .unwrap_or_default();
        is_one_of(
            &said
                .trim_matches(|c: char| !c.is_alphabetic())
                .to_lowercase(),
            HOLDS,
        )
    };
    let paragraph = |field: &str| {
        field
            .lines()
            .take_while(|line| !line.trim().is_empty())
            .any(says)
    };
    [&entry.spec, &entry.input, &entry.observed]
        .into_iter()
        .any(|field| paragraph(field))
}

/// The contracts for which no line `TESTED: CONTRACT → TEST` names a test.
pub(super) fn untested(contracts: &[&str], texts: &[&str]) -> Vec<String> {
    let lines = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| value(line, "TESTED"));
    let tested: Vec<String> = lines
        .map(|line| key(without_ordinal(line.trim())))
        .collect();
    let is_named = |contract: &str| {
        let test = |line: &String| {
            line.strip_prefix(key(contract).as_str())?
                .strip_prefix('→')
                .map(str::len)
        };
        tested.iter().filter_map(test).any(|len| len > 0)
    };
    contracts
        .iter()
        .filter(|contract| !is_named(contract))
        .map(|&contract| contract.to_owned())
        .collect()
}

/// For a person, in one sentence.
pub(super) fn without_test(missing: &[String]) -> String {
    let named = missing
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<String>>()
        .join("; ");
    let more = missing.len().saturating_sub(NAMED);
    let more = if more == 0 {
        String::new()
    } else {
        format!("; and {more} more")
    };
    let contracts = if missing.len() == 1 {
        "contract"
    } else {
        "contracts"
    };
    format!(
        "the verifier named no test for {} {contracts}: {named}{more}",
        missing.len()
    )
}

/// For the verifier.
pub(super) fn tests_wanted(missing: &[String]) -> String {
    let missing: String = missing
        .iter()
        .map(|contract| format!("- {contract}\n"))
        .collect();
    format!(
        "named no test for some contracts. Test them, and write a line `TESTED: the contract → the test` into your report for each:\n\n{missing}"
    )
}

/// A contract without what different writers set differently: case, blanks, Markdown, the form of the arrow.
fn key(contract: &str) -> String {
    let one = contract.replace("->", "→");
    one.chars()
        .filter(|c| !is_markup(*c))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACTS: [&str; 2] = ["GET / → 200", "GET /cart (empty) → 200, no item"];
    const FAILS: &str = "SPEC: GET / → 200\nINPUT: GET /\nOBSERVED: 404\n";

    fn count(path: &str, text: &str) -> usize {
        let known = [
            "SPEC: the contract, word for word\nINPUT: exactly what you sent\nOBSERVED: what came back\n\nMore.",
        ];
        failures(Some(path), text, &known, &CONTRACTS).len()
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
            assert!(may_list(path) && count(path, FAILS) == 1, "{path}");
        }
        assert_eq!(
            count(
                "n.md",
                &format!("Two:\n\n{FAILS}\n- **SPEC**: b\n- **INPUT**: c\n- **OBSERVED**: d\n")
            ),
            2
        );
        assert_eq!(
            count(
                "n.md",
                &FAILS.replace("404", "404\nRESULT: FAIL\n\nRESULT: PASS")
            ),
            1
        );
    }

    #[test]
    fn a_file_named_like_the_list_is_read_like_it() {
        for path in [
            "failed_specs.txt",
            "FAILED_SPECS.md",
            "x/failed-specs.py",
            "fixtures/failed_specs",
            "failedSpecs.json",
        ] {
            assert!(
                is_list(path) && may_list(path) && count(path, "SPEC: a → b\nOBSERVED: c\n") == 1,
                "{path}"
            );
        }
        assert_eq!(
            count("notes.md", "SPEC: a → b\nOBSERVED: c\n"),
            0,
            "elsewhere an entry has all three"
        );
        assert_eq!(count("failed_specs.txt", "None.\n"), 0);
    }

    #[test]
    fn code_forms_and_quotations_are_no_failures() {
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
            "SPEC: the contract, word for word\nINPUT: exactly what you sent\nOBSERVED: x\n",
            "SPEC: GET / → 200\nINPUT: GET /\nOBSERVED: 200\nRESULT: ✅ PASS\n",
            "SPEC: GET / → 200\nINPUT:\nOBSERVED: 404\n",
            "The old SPEC: GET / → 200, INPUT: GET /, OBSERVED: 404 is gone.\n",
        ] {
            assert_eq!(count("notes.md", text), 0, "{text}");
        }
        assert_eq!(
            count("fixtures/sample.md", "SPEC: a → b\nINPUT: c\nOBSERVED: d\n"),
            0
        );
        assert_eq!(
            count("fixtures/sample.md", &FAILS.replace('→', "->")),
            1,
            "it names a contract"
        );
    }

    #[test]
    fn a_contract_is_tested_if_a_line_names_it_and_a_test() {
        let check = |text: &str| untested(&CONTRACTS, &[text]);
        let both = "1. **TESTED:** `GET / -> 200` → root.sh\n- tested: get /cart (Empty) → 200, no item → cart.py::empty\n";
        assert_eq!(check(both), [""; 0]);
        for text in [
            "",
            "TESTED: GET / → 200\n",
            "TESTED: GET / → 200 →\n",
            "TESTED: GET / → 200 and more → x\n",
        ] {
            assert_eq!(check(text), CONTRACTS, "{text}");
        }
        let many: Vec<String> = (1..=7).map(|n| format!("c{n}")).collect();
        assert_eq!(
            without_test(&many),
            "the verifier named no test for 7 contracts: c1; c2; c3; c4; c5; and 2 more"
        );
        assert_eq!(
            without_test(&many[..1]),
            "the verifier named no test for 1 contract: c1"
        );
    }
}
