//! `failed_specs.md`: what the verifier tells the builder (S3 §Communication Channel).

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Entries that are whole.
    pub entries: Vec<Entry>,
    /// What is wrong with the others, in words for the verifier.
    pub problems: Vec<String>,
    /// Whether there is a `SPEC:` line at all. If there is one the phase has failed, whatever else is wrong.
    pub failed: bool,
}

impl Report {
    /// Whether the file says that nothing failed: there is no `SPEC:` line, and nothing that could have been meant for one.
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

/// The three fields in their order, each with a colon behind it.
const FIELDS: [&str; 3] = ["SPEC", "INPUT", "OBSERVED"];

/// Reads the file. A field goes on over the lines that follow it, up to the next field.
pub fn parse(text: &str) -> Report {
    let mut report = Report::default();
    let mut open: Option<Draft> = None;
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        match (field(line), &mut open) {
            (Some((0, value)), _) => {
                close(open.take(), &mut report);
                report.failed = true;
                open = Some(Draft::new(number, value));
            }
            (Some((field, value)), Some(draft)) => draft.begin(field, value),
            (Some((field, _)), None) => {
                let name = FIELDS.get(field).copied().unwrap_or_default();
                report.problems.push(format!("line {number}: {name}: without a SPEC: line before it"));
            }
            (None, Some(draft)) => draft.go_on(line),
            (None, None) => {}
        }
    }
    close(open, &mut report);
    if !report.failed && text.to_lowercase().contains("spec:") {
        let problem = "SPEC: stands in the file, but no line begins with it: is it a failure or not?";
        report.problems.push(problem.to_owned());
    }
    report
}

/// Which field a line begins, and what stands behind it. What Markdown puts around a word does not hide it.
fn field(line: &str) -> Option<(usize, &str)> {
    let plain = without_ordinal(line.trim_start_matches(is_markup)).trim_start_matches(is_markup);
    FIELDS.iter().enumerate().find_map(|(index, name)| {
        let start = plain.get(..name.len())?;
        let rest = plain.get(name.len()..)?.trim_start_matches(is_markup);
        let value = rest.strip_prefix([':', '：'])?;
        start.eq_ignore_ascii_case(name).then(|| (index, value.trim_start_matches(['*', '_', '`'])))
    })
}

/// Blanks, what emphasis, lists, quotations, tables and links are made of, and what cannot be seen.
fn is_markup(c: char) -> bool {
    c.is_whitespace()
        || "*-#>`_~+|[](){}•–—".contains(c)
        || matches!(c, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}')
}

/// The text of a numbered entry: `1. SPEC:`.
fn without_ordinal(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == text.len() { text } else { rest.strip_prefix(['.', ')']).unwrap_or(text) }
}

/// An entry that is being read.
#[derive(Debug)]
struct Draft {
    line: usize,
    fields: [Option<String>; 3],
    last: usize,
}

impl Draft {
    fn new(line: usize, spec: &str) -> Self {
        Self { line, fields: [Some(spec.trim().to_owned()), None, None], last: 0 }
    }

    fn begin(&mut self, field: usize, value: &str) {
        self.last = field;
        if let Some(place) = self.fields.get_mut(field) {
            *place = Some(value.trim().to_owned());
        }
    }

    fn go_on(&mut self, line: &str) {
        if let Some(Some(text)) = self.fields.get_mut(self.last) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line.trim_end());
        }
    }
}

fn close(draft: Option<Draft>, report: &mut Report) {
    let Some(Draft { line, fields, .. }) = draft else { return };
    let missing: Vec<String> = FIELDS
        .iter()
        .zip(&fields)
        .filter(|(_, value)| value.as_deref().is_none_or(|text| text.trim().is_empty()))
        .map(|(name, _)| format!("{name}:"))
        .collect();
    if !missing.is_empty() {
        report.problems.push(format!("line {line}: the entry has no {}", missing.join(" and no ")));
        return;
    }
    let [spec, input, observed] = fields.map(|text| text.unwrap_or_default().trim().to_owned());
    report.entries.push(Entry { spec, input, observed });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) -> String {
        let Report { entries, problems, failed } = parse(text);
        let entries: String =
            entries.iter().map(|e| format!("{:?} {:?} {:?}\n", e.spec, e.input, e.observed)).collect();
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
    fn a_spec_that_begins_no_line_is_asked_about() {
        for text in ["FAILED SPEC: GET / → 404\n", "{\"spec\": \"a\", \"note\": \"SPEC: a\"}"] {
            let report = parse(text);
            assert!(!report.failed && report.problems.len() == 1, "{text}: {report:?}");
            assert!(!report.is_pass(), "{text}");
        }
    }

    #[test]
    fn a_line_of_json_in_an_input_is_no_field() {
        let report = parse("SPEC: a → b\nINPUT: {\n  \"input\": 1,\n  \"spec\": 2\n}\nOBSERVED: c\n");
        assert_eq!(report.entries[0].input, "{\n  \"input\": 1,\n  \"spec\": 2\n}");
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
