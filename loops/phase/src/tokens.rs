//! `tokens.csv`: the tokens that each turn has used (S3 §Token Tracking).

use code_commit_engine::ModelUsage;

/// The seed's columns.
pub(crate) const HEADER: &str =
    "timestamp,phase,step,role,model,input,candidates,cached,total,session_id\n";

/// Follows the model of a turn whose CLI reported no usage.
const NO_USAGE: &str = " (no usage reported)";

/// What is known about a turn after its end, however it ended.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Turn<'t> {
    /// When it ended or, if that is unknown, began.
    pub at: &'t str,
    pub phase: u32,
    pub iteration: u32,
    pub role: &'t str,
    pub asked_model: &'t str,
    /// The session, if the CLI has named it.
    pub session: Option<&'t str>,
    /// Tokens by model; empty if the CLI did not report any.
    pub usage: &'t [ModelUsage],
}

/// The rows of one turn: one per model, or a single one that says that no usage is known.
pub fn rows(turn: &Turn<'_>) -> String {
    if turn.usage.is_empty() {
        let model = format!("{}{NO_USAGE}", turn.asked_model);
        return row(
            turn,
            &ModelUsage {
                model,
                ..ModelUsage::default()
            },
        );
    }
    turn.usage.iter().map(|usage| row(turn, usage)).collect()
}

/// Empty means unknown, 0 is a reported zero. `candidates` is the output without thoughts; the
/// total includes them.
fn row(turn: &Turn<'_>, ModelUsage { model, usage, .. }: &ModelUsage) -> String {
    let said = usage
        .output_tokens
        .map(|all| all.saturating_sub(usage.reasoning_tokens.unwrap_or(0)));
    let count = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let fields = [
        turn.at.to_owned(),
        turn.phase.to_string(),
        turn.iteration.to_string(),
        turn.role.to_owned(),
        model.clone(),
        count(usage.input_tokens),
        count(said),
        count(usage.cache_read_tokens),
        count(usage.total()),
        turn.session.unwrap_or_default().to_owned(),
    ];
    fields.map(|field| quoted(&field)).join(",") + "\n"
}

/// Quoted according to RFC 4180.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// One row, read back.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "those without are columns of the seed")]
pub struct Row {
    /// When the turn ended.
    pub at: String,
    pub phase: String,
    /// The iteration.
    pub step: String,
    pub role: String,
    pub model: String,
    /// All input.
    pub input: Option<u64>,
    /// All output, without thoughts.
    pub candidates: Option<u64>,
    /// The part of the input that was read from a cache.
    pub cached: Option<u64>,
    /// Input and output, including thoughts.
    pub total: Option<u64>,
    /// The session; empty if the CLI has not named it.
    pub session: String,
}

impl Row {
    /// The thoughts, which have no column of their own.
    pub fn thoughts(&self) -> Option<u64> {
        self.total?
            .checked_sub(self.input?)?
            .checked_sub(self.candidates?)
    }
}

/// The file, read back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The valid rows.
    pub rows: Vec<Row>,
    /// How many rows are invalid.
    pub left_out: usize,
}

/// Reads the file. Columns are identified by their names.
pub fn read(text: &str) -> Table {
    let mut table = Table::default();
    let mut records = records(text).into_iter();
    let Some(header) = records.next() else {
        return table;
    };
    for record in records {
        if record.len() < 10 {
            table.left_out += 1;
            continue;
        }
        let field = |name: &str| {
            let at = header.iter().position(|column| column == name);
            at.and_then(|at| record.get(at))
                .map(String::as_str)
                .unwrap_or_default()
        };
        let count = |name: &str| field(name).parse().ok();
        let model = field("model");
        table.rows.push(Row {
            at: field("timestamp").to_owned(),
            phase: field("phase").to_owned(),
            step: field("step").to_owned(),
            role: field("role").to_owned(),
            model: model.strip_suffix(NO_USAGE).unwrap_or(model).to_owned(),
            input: count("input"),
            candidates: count("candidates"),
            cached: count("cached"),
            total: count("total"),
            session: field("session_id").to_owned(),
        });
    }
    table
}

/// The fields of each record, unquoted.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut in_quotes = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, in_quotes) {
            ('"', true) if chars.peek() == Some(&'"') => field.extend(chars.next()),
            ('"', _) => in_quotes = !in_quotes,
            (',', false) => record.push(std::mem::take(&mut field)),
            ('\n', false) => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            ('\r', false) => {}
            (other, _) => field.push(other),
        }
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        records.push(record);
    }
    records.retain(|record| record.iter().any(|field| !field.is_empty()));
    records
}

#[cfg(test)]
mod tests {
    use code_commit_engine::Usage;

    use super::*;

    #[test]
    fn rows_come_back_and_quotes_do_no_harm() {
        let line = [
            "t",
            "1",
            "2",
            "builder",
            "odd,\"model\"",
            "10",
            "3",
            "0",
            "15",
            "s",
        ]
        .map(quoted)
        .join(",");
        let Table { rows, left_out } = read(&format!("{HEADER}{line}\nbroken,row\nbroken"));
        assert_eq!((rows.len(), left_out), (1, 2));
        assert_eq!(rows[0].model, "odd,\"model\"");
        assert_eq!(
            (rows[0].input, rows[0].total, rows[0].thoughts()),
            (Some(10), Some(15), Some(2))
        );
    }

    #[test]
    fn counts_that_no_model_can_have_used_do_no_harm() {
        let usage = Usage {
            input_tokens: Some(u64::MAX),
            output_tokens: Some(1),
            reasoning_tokens: Some(2),
            ..Usage::default()
        };
        let usage = [ModelUsage {
            usage,
            ..ModelUsage::default()
        }];
        let turn = Turn {
            at: "t",
            phase: 1,
            iteration: 1,
            role: "builder",
            asked_model: "m",
            session: None,
            usage: &usage,
        };
        let Table { rows, .. } = read(&format!("{HEADER}{}", rows(&turn)));
        assert_eq!(
            (rows[0].total, rows[0].candidates),
            (Some(u64::MAX), Some(0))
        );
    }

    #[test]
    fn a_row_without_usage_is_of_the_model_that_was_asked() {
        let Table { rows, left_out } =
            read(&format!("{HEADER}t,1,2,builder,one{NO_USAGE},,,,,s\n"));
        assert_eq!(
            (rows[0].model.as_str(), rows[0].total, left_out),
            ("one", None, 0)
        );
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let text = "model,timestamp,phase,step,role,input,candidates,cached,total,session_id,note\r\n\
            gemini-2.5-pro,t,1,1,verifier,100,20,5,120,abc,x\r\n";
        let Table { rows, left_out } = read(text);
        assert_eq!(
            (rows.len(), left_out, rows[0].total, rows[0].thoughts()),
            (1, 0, Some(120), Some(0))
        );
    }
}
