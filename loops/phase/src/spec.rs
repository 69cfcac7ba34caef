//! The specs: `specs/phaseN.md` (S3 §Spec and Phase Requirements).

/// A flaw of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// One sentence.
    pub message: String,
}

/// The number of the phase, from the file name: 7 for `phase7.md`.
pub fn number(file_name: &str) -> Option<u32> {
    let digits = file_name.strip_prefix("phase")?.strip_suffix(".md")?;
    let plain = !digits.starts_with('0') && digits.chars().all(|c| c.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// The title in the first line, `# Phase N: Title`.
pub fn title(text: &str, phase: u32) -> Option<&str> {
    let first = text.lines().next()?.trim_start_matches('\u{feff}');
    let title = first.strip_prefix(&format!("# Phase {phase}:"))?.trim();
    (!title.is_empty()).then_some(title)
}

/// The line, from 1, at which a spec still has text of the template.
pub fn left_of_template(text: &str) -> Option<usize> {
    let asks = |line: &str| line.trim().starts_with("What this phase is for; ");
    text.lines().position(asks).map(|index| index + 1)
}

/// The flaws of a phase's spec: in its first line, contracts that are not one action and one
/// result, and text of the template, which the roles would take for the user's and build.
pub fn check(text: &str, phase: u32) -> Vec<Finding> {
    let mut findings = Vec::new();
    if title(text, phase).is_none() {
        let message = format!("the first line must be `# Phase {phase}: Title`");
        findings.push(Finding { line: 1, message });
    }
    let mut contracts = 0;
    for (line, contract) in contracts_of(text) {
        contracts += 1;
        if let Some(message) = fault(contract) {
            findings.push(Finding { line, message });
        }
    }
    if contracts == 0 {
        let message = "there is no contract: a line `ACTION → EXPECTED RESULT`".to_owned();
        findings.push(Finding {
            line: text.lines().count().max(1),
            message,
        });
    }
    if let Some(line) = left_of_template(text) {
        findings.push(Finding {
            line,
            message: "this is still the template of code-commit phase init".to_owned(),
        });
    }
    findings
}

/// The lines with an arrow, which may be written `->`; headings do not count.
fn contracts_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()));
    numbered
        .filter(|(_, line)| !line.starts_with('#') && (line.contains('→') || line.contains("->")))
}

fn fault(contract: &str) -> Option<String> {
    let plain = contract.replace("->", "→");
    let parts: Vec<&str> = plain
        .split('→')
        .map(|part| part.trim_matches(|c: char| c.is_whitespace() || c == '`'))
        .collect();
    match parts.as_slice() {
        [action, result] => {
            match (
                action.trim_start_matches(['-', '*', ' ']).is_empty(),
                result.is_empty(),
            ) {
                (true, _) => Some("the contract has no action".to_owned()),
                (_, true) => Some("the contract has no expected result".to_owned()),
                (false, false) => None,
            }
        }
        _ => Some("the contract has more than one arrow: one action and one result".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        check(text, 1)
            .into_iter()
            .map(|finding| format!("{}: {}", finding.line, finding.message))
            .collect()
    }

    #[test]
    fn a_good_spec_has_no_findings() {
        let text = "# Phase 1: Login\n\nContext. Nothing else.\n\n## Contracts\n- POST /login {good} → 200 {token}\n`GET / -> 200`\n";
        assert_eq!(messages(text), Vec::<String>::new());
        assert_eq!(title(text, 1), Some("Login"));
    }

    #[test]
    fn a_title_line_and_single_contracts_are_asked_for() {
        insta::assert_snapshot!(messages("# Phase 2: Login\n- a → b → c\n- → b\nx →\n").join("\n"), @"
        1: the first line must be `# Phase 1: Title`
        2: the contract has more than one arrow: one action and one result
        3: the contract has no action
        4: the contract has no expected result
        ");
        insta::assert_snapshot!(messages("").join("\n"), @"
        1: the first line must be `# Phase 1: Title`
        1: there is no contract: a line `ACTION → EXPECTED RESULT`
        ");
    }

    #[test]
    fn only_a_plain_number_names_a_phase() {
        let numbers = [
            "phase1.md",
            "phase12.md",
            "phase01.md",
            "phase.md",
            "phase-1.md",
            "Phase1.md",
            "phase1.txt",
        ];
        assert_eq!(
            numbers.map(number),
            [Some(1), Some(12), None, None, None, None, None]
        );
    }
}
