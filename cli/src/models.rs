//! From a model's name to a client that can be asked.

use std::sync::Arc;
use std::time::Duration;

use llm::http::{Agent, BaseUrl, Limits, Network};
use llm::{Model, ModelId, Provider};
use llm_gemini::Gemini;

use crate::environment::Environment;
use crate::exit::Failure;
use crate::keys::Keys;

/// A client for `model`: where `base_url` says, else where the environment says, else where the service is.
pub fn open(
    model: &ModelId,
    base_url: Option<&str>,
    keys: &Keys,
    environment: &Environment,
    timeout: Option<Duration>,
) -> Result<Box<dyn Model>, Failure> {
    let key = keys.of(model.provider).cloned().unwrap_or_default();
    let agent = || agent(environment, timeout);
    match model.provider {
        Provider::Gemini => {
            let base = base(base_url, environment.text("GOOGLE_GEMINI_BASE_URL"), llm_gemini::BASE_URL)?;
            Ok(Box::new(Gemini::new(agent()?, base, model.clone(), key)))
        }
        Provider::OpenAi | Provider::Scripted | Provider::Recorded => Err(Failure::refused(
            anyhow::anyhow!("{model} cannot be asked yet"),
            "for example --model gemini-3.8-flash",
        )),
    }
}

fn base(flag: Option<&str>, variable: Option<&str>, default: &str) -> Result<BaseUrl, Failure> {
    flag.or(variable).unwrap_or(default).parse().map_err(|error| {
        Failure::refused(anyhow::Error::from(error), "for example --base-url http://127.0.0.1:8080")
    })
}

/// One agent for the run: its connections and certificates are made once.
fn agent(environment: &Environment, timeout: Option<Duration>) -> Result<Arc<Agent>, Failure> {
    let network = Network::from_env(|name| environment.text(name))
        .map_err(|error| Failure::refused(error, "see HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE"))?;
    let limits = Limits { call: timeout.unwrap_or(Limits::default().call), ..Limits::default() };
    Ok(Arc::new(Agent::new(network, limits)))
}
