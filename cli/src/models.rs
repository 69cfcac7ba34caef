//! From a model's name to a client.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use code_commit_llm::http::{Agent, BaseUrl, BaseUrlError, Limits, Network, NetworkError};
use code_commit_llm::scripted::ScriptError;
use code_commit_llm::{Client, Dialect, List, Model, ModelId, Provider, Retry, Scripted, Secret};
use code_commit_llm_anthropic::Anthropic;
use code_commit_llm_gemini::Gemini;
use code_commit_llm_openai::{OpenAi, Responses, Switches};
use code_commit_runs::host::OpenModel;
use code_commit_runs::model::{today, warn_in_the_clear};
use code_commit_runs::{Exit, Failure, Host, preflight};
use code_commit_settings::{Environment, Keys, Models, Settings};

pub struct Services;

/// Makes a client that speaks one dialect.
type Open = fn(Parts<'_>) -> Box<dyn Model>;

/// The dialects. A crate with another one is one more row.
const DIALECTS: [(&str, Open); 4] = [
    ("gemini", |it| {
        it.client(Gemini::new(
            it.base.clone(),
            it.model.clone(),
            it.key.clone(),
        ))
    }),
    ("anthropic", |it| {
        let service = Anthropic::new(it.base.clone(), it.model.clone(), it.key.clone());
        it.client(
            it.max_output
                .into_iter()
                .fold(service, Anthropic::with_max_output),
        )
    }),
    ("openai", |it| {
        let switches = switches(it.settings, Switches::of(&it.base));
        it.client(
            OpenAi::new(it.base.clone(), it.model.clone(), it.key.clone()).with_switches(switches),
        )
    }),
    ("openai-responses", |it| {
        it.client(Responses::new(
            it.base.clone(),
            it.model.clone(),
            it.key.clone(),
        ))
    }),
];

/// What a client is made of.
struct Parts<'s> {
    settings: &'s Settings,
    agent: Arc<Agent>,
    model: &'s ModelId,
    base: BaseUrl,
    key: Secret,
    /// The most that the model can write in one answer, if that is known.
    max_output: Option<u64>,
}

impl Parts<'_> {
    fn client(&self, dialect: impl Dialect + 'static) -> Box<dyn Model> {
        let retry = Retry::default().seeded_at_random();
        Box::new(Client::new(Arc::clone(&self.agent), dialect).with_retry(retry))
    }
}

impl OpenModel for Services {
    fn open(
        &self,
        settings: &Settings,
        keys: &Keys,
        host: Host<'_>,
    ) -> Result<Box<dyn Model>, Failure> {
        let agent = agent(host.environment, settings.patience().silence)?;
        let opener = Opener {
            settings,
            keys,
            host,
            agent,
        };
        opener.one_provider()?;
        let models = &settings.models();
        let first = opener.open(models.first())?;
        let others = opener.open_all(models.others().iter())?;
        let stronger = opener.open_all(settings.model.escalate.iter().flat_map(Models::iter))?;
        if others.is_empty() && stronger.is_empty() {
            return Ok(first);
        }
        Ok(Box::new(List::new(first, others, stronger)))
    }
}

struct Opener<'o> {
    settings: &'o Settings,
    keys: &'o Keys,
    host: Host<'o>,
    agent: Arc<Agent>,
}

impl Opener<'_> {
    fn open_all<'m>(
        &self,
        models: impl Iterator<Item = &'m ModelId>,
    ) -> Result<Vec<Box<dyn Model>>, Failure> {
        models.map(|model| self.open(model)).collect()
    }

    fn open(&self, model: &ModelId) -> Result<Box<dyn Model>, Failure> {
        let settings = self.settings;
        let Some(provider) = preflight::provider(model, settings)? else {
            let script = Scripted::read(Path::new(model.name())).map_err(no_script)?;
            return Ok(Box::new(script));
        };
        let dialect = DIALECTS.iter().find(|(name, _)| *name == provider.dialect);
        let (_, open) = dialect.ok_or_else(|| no_dialect(&provider))?;
        let base = self.base(&provider)?;
        let key = self.keys.of(&provider).cloned().unwrap_or_default();
        let price = today().and_then(|day| settings.prices().of(model, None, day).cloned());
        if price.is_none() {
            self.host.output.warn(&format!(
                "the price of {model} is not known, so its cost cannot be shown or limited; put it into [[price]] of your \
                 configuration"
            ));
        }
        let max_output = price
            .and_then(|price| price.max_output)
            .or(provider.max_output);
        let agent = Arc::clone(&self.agent);
        Ok(open(Parts {
            settings,
            agent,
            model,
            base,
            key,
            max_output,
        }))
    }

    /// An address given as a flag is that of every model: the key of one provider must not be sent to another's server.
    fn one_provider(&self) -> Result<(), Failure> {
        let models = self.settings.all_models().into_iter();
        let providers: BTreeSet<String> = models
            .filter_map(|model| Some(self.settings.provider_of(&model)?.name))
            .collect();
        if !self.settings.is_flag("model.base_url") || providers.len() < 2 {
            return Ok(());
        }
        let names = Vec::from_iter(providers).join(" and ");
        let error =
            anyhow::anyhow!("--base-url is one server, and the models are those of {names}");
        Err(Failure::new(Exit::Usage, error)
            .help("drop --base-url, or name models of one provider"))
    }

    /// Flags and files were validated when read: an error here comes from the environment. An address that was not given as
    /// a flag counts for the provider that it was written for.
    fn base(&self, provider: &Provider) -> Result<BaseUrl, Failure> {
        let Self {
            settings,
            host:
                Host {
                    environment,
                    output,
                    ..
                },
            ..
        } = self;
        let is_for_all = settings.is_flag("model.base_url");
        let is_its = is_for_all || settings.models().first().provider() == provider.name;
        let (set, origin) = if is_its {
            let address = settings.model.base_url.as_ref();
            let origin = settings.origin("model.base_url").to_string();
            (address.map(|address| address.0.as_str()), origin)
        } else {
            let variable = provider.base_env.as_deref().unwrap_or_default();
            (environment.text(variable), variable.to_owned())
        };
        let text = set.unwrap_or(&provider.base_url);
        let base = text.parse().map_err(|error: BaseUrlError| {
            let error = anyhow::Error::from(error)
                .context(format!("the address in {origin} cannot be used"));
            // A server of one's own has its API at the same path.
            let path = provider
                .base_url
                .splitn(4, '/')
                .nth(3)
                .map(|path| format!("/{path}"))
                .unwrap_or_default();
            Failure::refused(
                error,
                format!("write it like http://127.0.0.1:8080{path}, or unset it"),
            )
        })?;
        warn_in_the_clear(&base, output);
        Ok(base)
    }
}

fn no_dialect(provider: &Provider) -> Failure {
    let known = DIALECTS.map(|(name, _)| name).join(", ");
    let error = anyhow::anyhow!(
        "the provider {} has the unknown dialect `{}`",
        provider.name,
        provider.dialect
    );
    Failure::refused(
        error,
        format!("in your configuration choose one of {known}"),
    )
}

fn no_script(error: ScriptError) -> Failure {
    let help = if matches!(error, ScriptError::Malformed { .. }) {
        "fix that entry, or remove it"
    } else {
        "name a file of replies, separated by lines that say `--- next reply ---`"
    };
    Failure::refused(error, help)
}

/// The configuration takes precedence over what the address suggests.
fn switches(settings: &Settings, likely: Switches) -> Switches {
    let set = &settings.model.dialect;
    Switches {
        max_tokens: set.max_tokens.unwrap_or(likely.max_tokens),
        system_role: set.system_role.unwrap_or(likely.system_role),
    }
}

/// One HTTP agent for the run, so that connections and certificates are set up once.
fn agent(environment: &Environment, silence: Duration) -> Result<Arc<Agent>, Failure> {
    let network = Network::from_env(|name| environment.text(name)).map_err(no_way)?;
    let limits = Limits {
        silence,
        ..Limits::default()
    };
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
