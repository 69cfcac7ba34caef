//! `tokens.csv`: what every turn has used (S3 §Token Tracking).

use agent::ModelUsage;
use engine::Turned;

use crate::has_report;

/// The seed's columns, then ours.
pub const HEADER: &str = "timestamp,phase,step,role,model,input,candidates,cached,total,session_id,\
    status,thoughts,cost_usd,duration_ms,note\n";

/// What a row says of a turn whose CLI reported nothing.
const NO_USAGE: &str = "no usage reported";
/// What a row says of a turn that ended well without the report that is required of the role.
const NO_REPORT: &str = "no run report";

/// The rows of one turn: one for each model, or one that says that nothing is known.
pub fn rows(turned: &Turned, phase: u32, iteration: u32, asked_model: &str) -> String {
    let is_unreported = turned.end == agent::End::Ok && !has_report(turned);
    let report = is_unreported.then_some(NO_REPORT);
    if turned.usage.is_empty() {
        let nothing = ModelUsage { model: asked_model.to_owned(), ..ModelUsage::default() };
        let notes: Vec<&str> = [NO_USAGE].into_iter().chain(report).collect();
        return row(turned, phase, iteration, &nothing, &notes.join("; "));
    }
    let note = report.unwrap_or_default();
    turned.usage.iter().map(|usage| row(turned, phase, iteration, usage, note)).collect()
}

/// Empty is unknown, 0 is a reported zero. `candidates` are what the model said without its thoughts.
fn row(turned: &Turned, phase: u32, iteration: u32, usage: &ModelUsage, note: &str) -> String {
    let said = usage.output_tokens.map(|all| all.saturating_sub(usage.reasoning_tokens.unwrap_or(0)));
    let total = usage.input_tokens.zip(usage.output_tokens).map(|(input, output)| input + output);
    let count = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let fields = [
        turned.at.clone(),
        phase.to_string(),
        iteration.to_string(),
        turned.role.clone(),
        usage.model.clone(),
        count(usage.input_tokens),
        count(said),
        count(usage.cache_read_tokens),
        count(total),
        turned.session.clone().unwrap_or_default(),
        turned.end.code().to_owned(),
        count(usage.reasoning_tokens),
        usage.cost_usd.map(|cost| cost.to_string()).unwrap_or_default(),
        turned.elapsed_ms.to_string(),
        note.to_owned(),
    ];
    fields.map(|field| quoted(&field)).join(",") + "\n"
}

/// As RFC 4180 has it.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// One row as it is read back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The phase.
    pub phase: String,
    /// The iteration.
    pub step: String,
    /// Who.
    pub role: String,
    /// Which model.
    pub model: String,
    /// Everything that went in.
    pub input: Option<u64>,
    /// What came out, without thoughts.
    pub candidates: Option<u64>,
    /// The part of the input that came out of a cache.
    pub cached: Option<u64>,
    /// All of it.
    pub total: Option<u64>,
    /// Thoughts.
    pub thoughts: Option<u64>,
    /// What the CLI reckoned.
    pub cost_usd: Option<f64>,
}

/// Reads the file: columns are found by their names, rows that do not fit are counted and left out.
pub fn read(text: &str) -> (Vec<Row>, usize) {
    let mut records = records(text).into_iter();
    let Some(header) = records.next() else { return (Vec::new(), 0) };
    let mut rows = Vec::new();
    let mut odd = 0;
    for record in records {
        if record.len() < 10 {
            odd += 1;
            continue;
        }
        let field = |name: &str| {
            let at = header.iter().position(|column| column == name);
            at.and_then(|at| record.get(at)).map(String::as_str).unwrap_or_default()
        };
        let count = |name: &str| field(name).parse().ok();
        rows.push(Row {
            phase: field("phase").to_owned(),
            step: field("step").to_owned(),
            role: field("role").to_owned(),
            model: field("model").to_owned(),
            input: count("input"),
            candidates: count("candidates"),
            cached: count("cached"),
            total: count("total"),
            thoughts: count("thoughts"),
            cost_usd: field("cost_usd").parse().ok(),
        });
    }
    (rows, odd)
}

/// Fields of each record, quotes undone.
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
    use super::*;

    #[test]
    fn rows_come_back_and_quotes_do_no_harm() {
        let line =
            ["t", "1", "2", "builder", "odd,\"model\"", "10", "3", "0", "15", "s", "ok", "2", "", "9", ""];
        let line = line.map(quoted).join(",");
        let (rows, odd) = read(&format!("{HEADER}{line}\nbroken,row\n"));
        assert_eq!(odd, 1);
        assert_eq!(rows[0].model, "odd,\"model\"");
        assert_eq!(
            (rows[0].input, rows[0].total, rows[0].thoughts, rows[0].cost_usd),
            (Some(10), Some(15), Some(2), None)
        );
    }

    #[test]
    fn a_file_with_the_seeds_columns_alone_is_read_too() {
        let text = "timestamp,phase,step,role,model,input,candidates,cached,total,session_id\r\n\
            t,1,1,verifier,gemini-2.5-pro,100,20,5,120,abc\r\n";
        let (rows, odd) = read(text);
        assert_eq!((rows.len(), odd, rows[0].total, rows[0].thoughts), (1, 0, Some(120), None));
    }
}
