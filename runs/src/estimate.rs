//! What the first prompt of a run takes: told, or refused, before anything is paid.

use anyhow::anyhow;
use code_commit_llm::{Blind, Forecast, Model, ModelId, Money, Price, Request, Usage};
use code_commit_report::{Output, phrases, printable_name};
use code_commit_select::tokens;
use code_commit_settings::Settings;
use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::model::today;

/// The largest files that are named.
const NAMED: usize = 10;

pub(crate) struct First<'p> {
    pub prompt: String,
    /// The schema of the answer, if it must be JSON.
    pub schema: Option<Value>,
    /// The files in it, each with its bytes.
    pub files: Vec<(&'p str, usize)>,
    /// What makes it smaller.
    pub remedy: &'static str,
}

#[derive(Serialize)]
struct Estimate<'e> {
    model: &'e ModelId,
    prompt_bytes: usize,
    input_tokens: u64,
    /// Whether the service has counted them. Otherwise they are rather too many than too few.
    counted: bool,
    window: Option<u64>,
    fits: bool,
    input_usd: Option<f64>,
    most_usd: Option<f64>,
    largest: Vec<File<'e>>,
}

#[derive(Serialize)]
struct Line<'e> {
    event: &'static str,
    #[serde(flatten)]
    estimate: &'e Estimate<'e>,
}

#[derive(Serialize)]
struct File<'e> {
    path: &'e str,
    tokens: u64,
}

/// Tells what the first prompt of an agent takes. The agent adds its own to it, and makes its calls itself.
pub fn tell_of_agent(prompt: &str, output: &Output) -> Exit {
    let input_tokens = tokens(prompt.len());
    output.object(&json!({
        "event": "estimate", "prompt_bytes": prompt.len(), "input_tokens": input_tokens, "counted": false,
    }));
    let size = phrases::count(input_tokens, "token");
    output.report(&format!(
        "prompt: {size} (estimated at three bytes per token), to which the agent adds its own"
    ));
    Exit::Done
}

impl First<'_> {
    /// Refuses a prompt that is larger than what its model takes. The service is asked for the size only if the
    /// prompt may be.
    pub(crate) fn check(&self, model: &dyn Model, settings: &Settings) -> Result<(), Failure> {
        let estimate = self.estimate(model, None, settings);
        if estimate.fits {
            Ok(())
        } else {
            self.counted(model, settings).refused(self.remedy)
        }
    }

    /// Tells what the prompt takes; refuses like [`check`](Self::check).
    pub(crate) fn tell(
        &self,
        model: &dyn Model,
        settings: &Settings,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let estimate = self.counted(model, settings);
        output.object(&json!(Line {
            event: "estimate",
            estimate: &estimate
        }));
        output.report(&estimate.text());
        estimate.refused(self.remedy).map(|()| Exit::Done)
    }

    /// As the service counts it, if it can without being paid.
    fn counted<'e>(&'e self, model: &'e dyn Model, settings: &Settings) -> Estimate<'e> {
        let counted = model.count_tokens(&self.request(), &mut Blind);
        self.estimate(model, counted.ok().flatten(), settings)
    }

    fn request(&self) -> Request<'_> {
        Request {
            prompt: &self.prompt,
            schema: self.schema.as_ref(),
            ..Request::default()
        }
    }

    fn estimate<'e>(
        &'e self,
        model: &'e dyn Model,
        counted: Option<u64>,
        settings: &Settings,
    ) -> Estimate<'e> {
        let (id, prices) = (model.id(), settings.prices());
        let price = today().and_then(|day| prices.of(id, None, &day).cloned());
        let of_provider = || {
            settings
                .provider_of(id)
                .and_then(|provider| provider.window)
        };
        let window = price
            .as_ref()
            .and_then(|price| price.window)
            .or_else(of_provider);
        let request = self.request();
        let schema = self
            .schema
            .as_ref()
            .map_or(0, |schema| schema.to_string().len());
        let input_tokens = counted.unwrap_or_else(|| tokens(self.prompt.len() + schema));
        let input = Usage {
            input_tokens: Some(input_tokens),
            output_tokens: Some(0),
            ..Usage::default()
        };
        let forecast = |price: &Price| Forecast::of(&request, Some(input_tokens), Some(price)).cost;
        Estimate {
            model: id,
            prompt_bytes: self.prompt.len(),
            input_tokens,
            counted: counted.is_some(),
            window,
            fits: window.is_none_or(|window| input_tokens <= window),
            input_usd: price
                .as_ref()
                .and_then(|price| price.cost(&input))
                .map(Money::as_usd),
            most_usd: price.as_ref().and_then(forecast).map(Money::as_usd),
            largest: self.largest(),
        }
    }

    fn largest(&self) -> Vec<File<'_>> {
        let mut files = self.files.clone();
        files.sort_by_key(|&(path, bytes)| (std::cmp::Reverse(bytes), path));
        files.truncate(NAMED);
        files
            .into_iter()
            .map(|(path, bytes)| File {
                path,
                tokens: tokens(bytes),
            })
            .collect()
    }
}

impl Estimate<'_> {
    fn refused(&self, remedy: &str) -> Result<(), Failure> {
        let Some(window) = self.window.filter(|_| !self.fits) else {
            return Ok(());
        };
        let window = phrases::thousands(window);
        let error = anyhow!(
            "the prompt has {}, more than the {window} that {} takes",
            self.size(),
            self.model
        );
        let largest: Vec<String> = self.largest.iter().map(File::text).collect();
        let named = if largest.is_empty() {
            String::new()
        } else {
            format!("; the largest files: {}", largest.join(", "))
        };
        Err(Failure::refused(error, format!("{remedy}{named}")))
    }

    fn size(&self) -> String {
        let by = if self.counted {
            "counted by the service"
        } else {
            "estimated at three bytes per token"
        };
        format!("{} ({by})", phrases::count(self.input_tokens, "token"))
    }

    fn text(&self) -> String {
        let takes = |window| format!("takes {}", phrases::thousands(window));
        let window = self
            .window
            .map_or_else(|| "has an unknown limit".to_owned(), takes);
        let mut lines = vec![format!("prompt: {}; {} {window}", self.size(), self.model)];
        lines.push(match (self.input_usd, self.most_usd) {
            (Some(input), Some(most)) => {
                format!("cost: ${input:.4} for the prompt, ${most:.4} with the longest reply")
            }
            (Some(input), None) => format!("cost: ${input:.4} for the prompt"),
            (None, _) => format!("cost: unknown, because {} has no price", self.model),
        });
        lines.extend(self.largest.iter().map(|file| format!("  {}", file.text())));
        lines.join("\n")
    }
}

impl File<'_> {
    fn text(&self) -> String {
        format!(
            "{} ({})",
            printable_name(self.path),
            phrases::thousands(self.tokens)
        )
    }
}
