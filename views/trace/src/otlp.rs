//! OpenTelemetry: the JSON form of OTLP, as a collector reads it from a file, with the semantic conventions for
//! generative AI.

use code_commit_engine::Ended;
use code_commit_timeline::{Call, Command, Run, Step, What};
use serde_json::{Value, json};

use crate::id::hex;

/// `SPAN_KIND_INTERNAL` and `SPAN_KIND_CLIENT`: numbers, since the JSON form of OTLP has no names for them.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
/// `STATUS_CODE_OK` and `STATUS_CODE_ERROR`.
const OK: u8 = 1;
const ERROR: u8 = 2;

/// A run as one trace: a span for the run, for each round, and for each call and command in it.
pub fn otlp(run: &Run) -> Value {
    let maker = Maker {
        run,
        trace_id: hex(&[&run.name, &run.steps.from_ms.to_string(), "trace"], 32),
    };
    json!({ "resourceSpans": [{
        "resource": { "attributes": attributes([
            ("service.name", text("code-commit")),
            ("service.version", text(&run.version)),
        ]) },
        "scopeSpans": [{ "scope": { "name": "code-commit", "version": run.version }, "spans": maker.spans() }],
    }] })
}

struct Maker<'r> {
    run: &'r Run,
    trace_id: String,
}

/// A span without its identifiers.
struct Span {
    name: String,
    kind: u8,
    from_ms: i64,
    to_ms: i64,
    attributes: Vec<Value>,
    status: Value,
}

impl Maker<'_> {
    fn spans(&self) -> Vec<Value> {
        let mut spans = vec![self.span("run", None, &self.of_run())];
        for round in self.rounds() {
            let (number, first, last) = round;
            let name = format!("round-{number}");
            let of_round = Span {
                name: format!("round {number}"),
                kind: INTERNAL,
                from_ms: first,
                to_ms: last,
                attributes: attributes([("code_commit.round", int(number.into()))]),
                status: json!({}),
            };
            spans.push(self.span(&name, Some("run"), &of_round));
            let steps = self
                .run
                .steps
                .all
                .iter()
                .enumerate()
                .filter(|(_, step)| step.round == number);
            for (index, step) in steps {
                if let Some(span) = self.of_step(step) {
                    spans.push(self.span(&format!("step-{index}"), Some(&name), &span));
                }
            }
        }
        spans
    }

    /// Each round with its beginning and its end.
    fn rounds(&self) -> Vec<(u32, i64, i64)> {
        let mut rounds: Vec<(u32, i64, i64)> = Vec::new();
        for step in &self.run.steps.all {
            match rounds.iter_mut().find(|(number, ..)| *number == step.round) {
                Some((_, first, last)) => {
                    (*first, *last) = ((*first).min(step.from_ms), (*last).max(step.to_ms));
                }
                None => rounds.push((step.round, step.from_ms, step.to_ms)),
            }
        }
        rounds
    }

    fn span(&self, id: &str, parent: Option<&str>, span: &Span) -> Value {
        let id_of = |name: &str| hex(&[&self.trace_id, name], 16);
        json!({
            "traceId": self.trace_id,
            "spanId": id_of(id),
            "parentSpanId": parent.map(id_of).unwrap_or_default(),
            "name": span.name,
            "kind": span.kind,
            "startTimeUnixNano": nanos(span.from_ms),
            "endTimeUnixNano": nanos(span.to_ms.max(span.from_ms)),
            "attributes": span.attributes,
            "status": span.status,
        })
    }

    fn of_run(&self) -> Span {
        let Run {
            name,
            kind,
            model,
            steps,
            is_good,
            verdict,
            ..
        } = self.run;
        let mut all = attributes([
            ("code_commit.run", text(name)),
            ("code_commit.loop", text(kind)),
            ("code_commit.verdict", text(verdict)),
            ("code_commit.rounds", int(steps.rounds().into())),
        ]);
        all.extend(self.provider());
        all.extend(attribute("gen_ai.request.model", Some(text(bare(model)))));
        all.extend(attribute(
            "code_commit.cost_usd",
            steps.cost_usd().map(double),
        ));
        let status = match is_good {
            Some(true) => json!({ "code": OK }),
            Some(false) => failed(verdict),
            None => json!({}),
        };
        let (from_ms, to_ms) = (steps.from_ms, steps.to_ms);
        Span {
            name: kind.clone(),
            kind: INTERNAL,
            from_ms,
            to_ms,
            attributes: all,
            status,
        }
    }

    fn of_step(&self, step: &Step) -> Option<Span> {
        let (name, kind, attributes, status) = match &step.what {
            What::Call(call) => self.of_call(call),
            What::Command(command) => of_command(command),
            What::Change(_) | What::Event(_) => return None,
        };
        Some(Span {
            name,
            kind,
            from_ms: step.from_ms,
            to_ms: step.to_ms,
            attributes,
            status,
        })
    }

    fn of_call(&self, call: &Call) -> (String, u8, Vec<Value>, Value) {
        let model = bare(&self.run.model);
        let operation = if call.role.is_some() {
            "invoke_agent"
        } else {
            "chat"
        };
        let subject = call.role.as_deref().unwrap_or(model);
        let tokens = call.tokens();
        let mut all = attributes([("gen_ai.operation.name", text(operation))]);
        all.extend(self.provider());
        let known = [
            (
                "gen_ai.request.model",
                Some(model).filter(|model| !model.is_empty()).map(text),
            ),
            ("gen_ai.agent.name", call.role.as_deref().map(text)),
            (
                "gen_ai.response.model",
                call.served_model.as_deref().map(text),
            ),
            (
                "gen_ai.response.finish_reasons",
                call.finish
                    .as_deref()
                    .map(|finish| json!({ "arrayValue": { "values": [text(finish)] } })),
            ),
            ("gen_ai.usage.input_tokens", tokens.input_tokens.map(int)),
            ("gen_ai.usage.output_tokens", tokens.output_tokens.map(int)),
            (
                "gen_ai.usage.cache_read.input_tokens",
                tokens.cache_read_tokens.map(int),
            ),
            (
                "gen_ai.usage.cache_creation.input_tokens",
                tokens.cache_write_tokens.map(int),
            ),
            ("code_commit.cost_usd", call.cost_usd.map(double)),
            (
                "code_commit.retries",
                Some(int(call.retries().count() as u64)),
            ),
            (
                "error.type",
                call.failed.as_ref().map(|cause| text(&cause.code)),
            ),
        ];
        all.extend(
            known
                .into_iter()
                .filter_map(|(key, value)| attribute(key, value)),
        );
        let status = call
            .failed
            .as_ref()
            .map_or_else(|| json!({}), |cause| failed(&cause.message));
        (
            format!("{operation} {subject}").trim_end().to_owned(),
            CLIENT,
            all,
            status,
        )
    }

    fn provider(&self) -> Option<Value> {
        let (provider, _) = self.run.model.split_once('/')?;
        // The conventions' own name for it.
        let provider = if provider == "gemini" {
            "gcp.gemini"
        } else {
            provider
        };
        attribute("gen_ai.provider.name", Some(text(provider)))
    }
}

fn of_command(command: &Command) -> (String, u8, Vec<Value>, Value) {
    let code = command
        .ended
        .and_then(Ended::exit_code)
        .map(|code| json!({ "intValue": code.to_string() }));
    let mut all = attributes([("code_commit.command", text(&command.name))]);
    all.extend(attribute("process.exit.code", code));
    let is_bad = command.decides() && !command.is_good;
    all.extend(attribute(
        "error.type",
        is_bad.then(|| text("command-failed")),
    ));
    let status = match command.ended.filter(|_| command.decides()) {
        None => json!({}),
        Some(_) if command.is_good => json!({ "code": OK }),
        Some(ended) => failed(&format!("it {ended}")),
    };
    // A span's name has few values; the whole command is an attribute.
    let name = if command.name.starts_with("build") {
        "build"
    } else {
        "command"
    };
    (name.to_owned(), INTERNAL, all, status)
}

/// The model without its provider.
fn bare(model: &str) -> &str {
    model.split_once('/').map_or(model, |(_, name)| name)
}

fn failed(message: &str) -> Value {
    json!({ "code": ERROR, "message": message })
}

/// Nanoseconds are strings: JSON numbers are too small for them.
fn nanos(ms: i64) -> String {
    (i128::from(ms.max(0)) * 1_000_000).to_string()
}

fn attributes<const N: usize>(pairs: [(&str, Value); N]) -> Vec<Value> {
    pairs
        .into_iter()
        .filter_map(|(key, value)| attribute(key, Some(value)))
        .collect()
}

fn attribute(key: &str, value: Option<Value>) -> Option<Value> {
    Some(json!({ "key": key, "value": value? }))
}

fn text(value: &str) -> Value {
    json!({ "stringValue": value })
}

/// 64-bit integers are strings in JSON.
fn int(value: u64) -> Value {
    json!({ "intValue": value.to_string() })
}

fn double(value: f64) -> Value {
    json!({ "doubleValue": value })
}
