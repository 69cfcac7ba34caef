//! What an editor has chosen for a project.

use std::collections::BTreeSet;
use std::path::PathBuf;

use code_commit_rpc::{Params, RpcError};
use code_commit_settings::{Files, Options};
use code_commit_timeline::Run;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Agent;

/// What a prompt does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    Commit,
    Implement,
    CheckOnly,
}

const MODES: [(Mode, &str, &str); 3] = [
    (
        Mode::Commit,
        "Commit",
        "Change the project, build it, and repair it if the build fails",
    ),
    (
        Mode::Implement,
        "Implement",
        "Rounds over a growing transcript, with a system prompt of your own",
    ),
    (
        Mode::CheckOnly,
        "Check only",
        "Run the build; no model is asked",
    ),
];

impl Mode {
    /// That of a recorded run; `None` for a loop that sessions do not have.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        match run.kind.as_str() {
            "commit" => Some(Self::Commit),
            "implement" => Some(Self::Implement),
            _ => None,
        }
    }
}

/// A project in an editor.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) cwd: PathBuf,
    pub(crate) mode: Mode,
    /// The one of the settings, then the others that they name.
    models: Vec<String>,
    /// Which of them is asked.
    model: usize,
    /// The name of its newest run.
    pub(crate) last: Option<String>,
    pub(crate) prompts: u32,
    /// In US dollars; `None` once a price was unknown.
    pub(crate) spent: Option<f64>,
    /// Whether the editor has named MCP servers, which nothing here uses.
    pub(crate) has_unused_servers: bool,
    /// Whether the user was asked to trust the project's configuration.
    pub(crate) is_asked: bool,
}

impl Session {
    /// One that is new, or that is loaded.
    pub(crate) fn open(id: &str, params: &Params, agent: &Agent) -> Result<Self, RpcError> {
        let cwd = PathBuf::from(params.text("cwd")?);
        if !cwd.is_absolute() || !cwd.is_dir() {
            return Err(RpcError::invalid_params(
                "cwd is not the absolute path of a folder",
            ));
        }
        let files = Files::read(&cwd, &agent.environment);
        let files = files.map_err(|error| RpcError::invalid_params(error.to_string()))?;
        let settings = files.settings(&agent.environment, &agent.layer).settings;
        let others = settings
            .all_models()
            .into_iter()
            .map(|model| model.to_string());
        let mut models = vec![settings.models().to_string()];
        models.extend(others);
        let mut seen = BTreeSet::new();
        models.retain(|model| seen.insert(model.clone()));
        let servers = params.get("mcpServers").and_then(Value::as_array);
        Ok(Self {
            id: id.to_owned(),
            cwd,
            mode: Mode::Commit,
            models,
            model: 0,
            last: None,
            prompts: 0,
            spent: Some(0.0),
            has_unused_servers: servers.is_some_and(|servers| !servers.is_empty()),
            is_asked: false,
        })
    }

    /// What may be chosen, and what is.
    pub(crate) fn state(&self) -> Value {
        let modes =
            MODES.map(|(id, name, what)| json!({ "id": id, "name": name, "description": what }));
        json!({
            "modes": { "currentModeId": self.mode, "availableModes": modes },
            "configOptions": self.options(),
        })
    }

    fn options(&self) -> Value {
        let option = |model: &String| json!({ "value": model, "name": model });
        let models: Vec<Value> = self.models.iter().map(option).collect();
        json!([{
            "type": "select", "id": "model", "name": "Model", "category": "model",
            "currentValue": self.models.get(self.model), "options": models,
        }])
    }

    /// The settings that override those of the files.
    pub(crate) fn layer(&self, of_all: &Options) -> Options {
        let mut layer = of_all.clone();
        if let (Some(model), true) = (self.models.get(self.model), self.model > 0) {
            // It comes from settings that were read.
            layer.model.name = model.parse().ok();
        }
        layer
    }
}

impl Agent {
    pub(crate) fn set_mode(&self, params: &Params) -> Result<Value, RpcError> {
        let mode = serde_json::from_value(params.get("modeId").cloned().unwrap_or_default());
        let mode = mode.map_err(|_| RpcError::invalid_params("there is no such mode"))?;
        self.session(params, |session| session.mode = mode)?;
        Ok(json!({}))
    }

    pub(crate) fn set_option(&self, params: &Params) -> Result<Value, RpcError> {
        let (option, value) = (params.text("configId")?, params.text("value")?);
        let known = self.session(params, |_| {})?.models;
        let chosen = known.iter().position(|model| model == value);
        let chosen = chosen.filter(|_| option == "model");
        let model = chosen.ok_or_else(|| RpcError::invalid_params("there is no such option"))?;
        let session = self.session(params, |session| session.model = model)?;
        Ok(json!({ "configOptions": session.options() }))
    }
}
