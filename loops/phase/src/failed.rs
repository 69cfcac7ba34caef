//! `failed_specs.md`: what the verifier tells the builder (S3 §Communication Channel).

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The complete entries.
    pub entries: Vec<Entry>,
    /// What is wrong with the others, in words for the verifier.
    pub problems: Vec<String>,
    /// Whether there is a `SPEC:` line at all. If so, the phase has failed, whatever else is wrong.
    pub failed: bool,
}

impl Report {
    /// Whether the file says that nothing failed, which it does by being empty (S3 §Communication
    /// Channel).
    #[must_use]
    pub fn is_pass(&self) -> bool {
        !self.failed && self.problems.is_empty()
    }
}

/// One contract that does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// The contract.
    pub spec: String,
    /// What made it fail.
    pub input: String,
    /// What came back.
    pub observed: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Spec,
    Input,
    Observed,
}

impl Field {
    /// All three in their order.
    const ALL: [Self; 3] = [Self::Spec, Self::Input, Self::Observed];

    /// What its line begins with, before the colon.
    const fn name(self) -> &'static str {
        match self {
            Self::Spec => "SPEC",
            Self::Input => "INPUT",
            Self::Observed => "OBSERVED",
        }
    }
}

/// Reads the file. A field continues on the lines after it, up to the next field.
pub fn parse(text: &str) -> Report {
    let mut report = Report::default();
    let mut open: Option<Draft> = None;
    for (number, line) in text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
    {
        match (field(line), &mut open) {
            (Some((Field::Spec, value)), _) => {
                close(open.take(), &mut report);
                report.failed = true;
                open = Some(Draft::new(number, value));
            }
            (Some((field @ (Field::Input | Field::Observed), value)), Some(draft)) => {
                draft.begin(field, value);
            }
            (Some((field @ (Field::Input | Field::Observed), _)), None) => {
                let name = field.name();
                report.problems.push(format!(
                    "line {number}: {name}: without a SPEC: line before it"
                ));
            }
            (None, Some(draft)) => draft.go_on(line),
            (None, None) => {}
        }
    }
    close(open, &mut report);
    // A table or prose: a verifier that lists failures in its own format must not pass the phase.
    if !report.failed && report.problems.is_empty() && !text.chars().all(is_markup) {
        let problem = "the file is not empty, and no line begins with SPEC: (if every contract holds, remove the file)";
        report.problems.push(problem.to_owned());
    }
    report
}

/// The field that a line begins, and the text after it.
fn field(line: &str) -> Option<(Field, &str)> {
    Field::ALL
        .into_iter()
        .find_map(|field| Some((field, value(line, field.name())?)))
}

/// The text after `NAME:` at the beginning of a line. Markdown around the word is ignored.
pub(crate) fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
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
pub(crate) fn is_markup(c: char) -> bool {
    c.is_whitespace()
        || "*-#>`_~+|[](){}•–—".contains(c)
        || matches!(c, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}')
}

/// The text of a numbered entry: `1. SPEC:`.
pub(crate) fn without_ordinal(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == text.len() {
        text
    } else {
        rest.strip_prefix(['.', ')']).unwrap_or(text)
    }
}

/// An entry that is still being read.
#[derive(Debug)]
struct Draft {
    line: usize,
    spec: String,
    input: String,
    observed: String,
    last: Field,
}

impl Draft {
    fn new(line: usize, spec: &str) -> Self {
        let spec = spec.trim().to_owned();
        Self {
            line,
            spec,
            input: String::new(),
            observed: String::new(),
            last: Field::Spec,
        }
    }

    fn text(&mut self, field: Field) -> &mut String {
        match field {
            Field::Spec => &mut self.spec,
            Field::Input => &mut self.input,
            Field::Observed => &mut self.observed,
        }
    }

    fn begin(&mut self, field: Field, value: &str) {
        self.last = field;
        value.trim().clone_into(self.text(field));
    }

    fn go_on(&mut self, line: &str) {
        let text = self.text(self.last);
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line.trim_end());
    }
}

fn close(draft: Option<Draft>, report: &mut Report) {
    let Some(mut draft) = draft else { return };
    let is_missing = |field: &Field| draft.text(*field).trim().is_empty();
    let missing: Vec<Field> = Field::ALL.into_iter().filter(is_missing).collect();
    if !missing.is_empty() {
        let names: Vec<String> = missing
            .iter()
            .map(|field| format!("{}:", field.name()))
            .collect();
        report.problems.push(format!(
            "line {}: the entry has no {}",
            draft.line,
            names.join(" and no ")
        ));
        return;
    }
    let [spec, input, observed] =
        [draft.spec, draft.input, draft.observed].map(|text| text.trim().to_owned());
    report.entries.push(Entry {
        spec,
        input,
        observed,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) -> String {
        let Report {
            entries,
            problems,
            failed,
        } = parse(text);
        let entries: String = entries
            .iter()
            .map(|e| format!("{:?} {:?} {:?}\n", e.spec, e.input, e.observed))
            .collect();
        format!("{entries}{}\nfailed: {failed}", problems.join("\n"))
    }

    #[test]
    fn the_example_of_the_seed_is_two_entries() {
        let text = "SPEC: POST /auth/login {valid credentials} → 200 {token}\n\
            INPUT: {\"email\": \"test@test.com\", \"password\": \"correct\"}\nOBSERVED: 404\n\n\
            SPEC: GET /dashboard (valid token) → 200\n\
            INPUT: GET /dashboard headers: {Authorization: Bearer <token>}\nOBSERVED: redirect /login\n";
        insta::assert_snapshot!(check(text), @r#"
        "POST /auth/login {valid credentials} → 200 {token}" "{\"email\": \"test@test.com\", \"password\": \"correct\"}" "404"
        "GET /dashboard (valid token) → 200" "GET /dashboard headers: {Authorization: Bearer <token>}" "redirect /login"

        failed: true
        "#);
    }

    #[test]
    fn an_entry_without_input_is_a_problem_and_still_a_failure() {
        insta::assert_snapshot!(check("SPEC: a → b\nOBSERVED: c\n\nSPEC:\nINPUT: x\n"), @"
        line 1: the entry has no INPUT:
        line 4: the entry has no SPEC: and no OBSERVED:
        failed: true
        ");
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
            assert!(parse(text).failed, "{text}");
        }
        for text in [
            "",
            "\n \n",
            "1.5 SPECIAL: x",
            "SPECIFICATION: x",
            "All SPEC: entries passed? no: this line only mentions one",
            "SPECS: none",
            "é",
        ] {
            assert!(!parse(text).failed, "{text}");
        }
    }

    #[test]
    fn an_empty_file_is_a_pass_and_what_only_looks_empty_too() {
        for text in ["", "\n \n", "\u{feff}", "---\n", "#\n\n-\n"] {
            assert!(parse(text).is_pass(), "{text:?}");
        }
    }

    #[test]
    fn words_without_an_entry_are_asked_about() {
        let utf_16 = "\u{fffd}\u{fffd}S\0P\0E\0C\0:\0 \0x\0\n\0";
        for text in [
            "FAILED SPEC: GET / → 404\n",
            "{\"spec\": \"a\"}",
            "Contract 1, **SPEC**: GET / → 404",
            "Contract 1, SPEC： x",
            utf_16,
            "| Contract | Input | Observed |\n|---|---|---|\n| GET / → 200 | GET / | 404 |\n",
            "GET / should give 200. It gives 404.\n",
            "1. GET / → 200: ❌\n",
            "All contracts hold.\n",
            "❌",
        ] {
            let report = parse(text);
            assert!(
                !report.failed && report.problems.len() == 1,
                "{text}: {report:?}"
            );
            assert!(!report.is_pass(), "{text}");
        }
    }

    #[test]
    fn a_line_of_json_in_an_input_is_no_field() {
        let report =
            parse("SPEC: a → b\nINPUT: {\n  \"input\": 1,\n  \"spec\": 2\n}\nOBSERVED: c\n");
        assert_eq!(
            report.entries[0].input,
            "{\n  \"input\": 1,\n  \"spec\": 2\n}"
        );
    }

    #[test]
    fn a_field_goes_on_over_its_lines() {
        let report = parse("SPEC: a → b\nINPUT:\n{\n  \"k\": 1\n}\n\nOBSERVED: one\ntwo\n");
        assert_eq!(report.entries[0].input, "{\n  \"k\": 1\n}");
        assert_eq!(report.entries[0].observed, "one\ntwo");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_whole_entries_come_back(spec in "[a-z →]{1,9}x", input in "[a-z{}\"]{1,9}", rest in ".{0,40}") {
            parse(&rest);
            let report = parse(&format!("SPEC: {spec}\nINPUT: {input}\nOBSERVED: y\n"));
            prop_assert_eq!(report.entries.len(), 1);
            prop_assert_eq!(&report.entries[0].input, input.trim());
        }
    }
}
