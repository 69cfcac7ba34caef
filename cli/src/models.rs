//! From a model's name to a client.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use llm::http::{Agent, BaseUrl, BaseUrlError, Limits, Network, NetworkError};
use llm::scripted::ScriptError;
use llm::{Model, Provider, Recorded, Retry, Scripted};
use llm_gemini::Gemini;
use llm_openai::{OpenAi, OutputLimit, Schema, Switches, SystemRole};
use repo::WorkTree;
use report::Output;
use runs::model::{OpenModel, warn_in_the_clear};
use runs::{Failure, Host, records};
use settings::{Environment, Keys, Settings};

/// All supported services.
pub struct Services;

impl OpenModel for Services {
    fn open(
        &self,
        settings: &Settings,
        keys: &Keys,
        tree: &WorkTree,
        host: Host<'_>,
    ) -> Result<Box<dyn Model>, Failure> {
        let Host { environment, output, .. } = host;
        let model = &settings.model.value;
        let key = keys.of(model.provider()).cloned().unwrap_or_default();
        let agent = || agent(environment, settings.timeout.value);
        let retry = Retry::default().seeded_at_random();
        match model.provider() {
            Provider::Gemini => {
                let base = base(settings, llm_gemini::BASE_URL, "http://127.0.0.1:8080", output)?;
                Ok(Box::new(Gemini::new(agent()?, base, model.clone(), key).with_retry(retry)))
            }
            Provider::OpenAi => {
                let base = base(settings, llm_openai::BASE_URL, "http://127.0.0.1:8080/v1", output)?;
                let switches = switches(settings, Switches::of(&base));
                let open = OpenAi::new(agent()?, base, model.clone(), key);
                Ok(Box::new(open.with_switches(switches).with_retry(retry)))
            }
            Provider::Scripted => Ok(Box::new(Scripted::read(Path::new(model.name())).map_err(no_script)?)),
            Provider::Recorded => {
                let run = records::find(tree, Some(model.name()))?;
                let replies = records::replies(&run)?;
                Ok(Box::new(Recorded::new(model.clone(), replies)))
            }
        }
    }
}

fn no_script(error: ScriptError) -> Failure {
    let help = if matches!(error, ScriptError::Entry { .. } | ScriptError::UnknownError { .. }) {
        "fix that entry, or take it out"
    } else {
        "name a file of replies, parted by lines that say `--- next reply ---`"
    };
    Failure::refused(error, help)
}

/// The configuration takes precedence over what the address suggests.
fn switches(settings: &Settings, likely: Switches) -> Switches {
    use settings::{AnswerSchema as Asked, OutputLimit as Limit, SystemRole as Role};
    Switches {
        max_tokens: settings.dialect_max_tokens.value.map_or(likely.max_tokens, |limit| match limit {
            Limit::MaxCompletionTokens => OutputLimit::MaxCompletionTokens,
            Limit::MaxTokens => OutputLimit::MaxTokens,
        }),
        system_role: settings.dialect_system_role.value.map_or(likely.system_role, |role| match role {
            Role::Developer => SystemRole::Developer,
            Role::System => SystemRole::System,
        }),
        schema: settings.dialect_schema.value.map_or(likely.schema, |schema| match schema {
            Asked::JsonSchema => Schema::JsonSchema,
            Asked::JsonObject => Schema::JsonObject,
            Asked::None => Schema::None,
        }),
    }
}

/// Flags and files were validated when read: an error here comes from the environment.
fn base(settings: &Settings, default: &str, example: &str, output: &Output) -> Result<BaseUrl, Failure> {
    let address = &settings.base_url;
    let base = address.value.as_deref().unwrap_or(default).parse().map_err(|error: BaseUrlError| {
        let error =
            anyhow::Error::from(error).context(format!("the address in {} cannot be used", address.origin));
        Failure::refused(error, format!("write it like {example}, or unset it"))
    })?;
    warn_in_the_clear(&base, output);
    Ok(base)
}

/// One HTTP agent for the run, so that connections and certificates are set up once.
fn agent(environment: &Environment, timeout: Duration) -> Result<Arc<Agent>, Failure> {
    let network = Network::from_env(|name| environment.text(name)).map_err(no_way)?;
    let limits = Limits { call: timeout, ..Limits::default() };
    Ok(Arc::new(Agent::new(network, limits)))
}

fn no_way(error: NetworkError) -> Failure {
    let help = if matches!(error, NetworkError::BadProxy { .. }) {
        "write it as http://HOST:PORT, or unset it; NO_PROXY names what is reached without a proxy"
    } else {
        "name a file of PEM certificates with SSL_CERT_FILE, or unset it"
    };
    Failure::refused(error, help)
}
