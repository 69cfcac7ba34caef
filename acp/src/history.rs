//! Recorded runs as sessions: those with the same key are one, and every other run is one by its name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use code_commit_perform::Past;
use code_commit_report::SUMMARY;
use code_commit_rpc::{Call, RpcError};
use code_commit_runs::chronicle::{self, Found};
use code_commit_runs::{Host, text};
use code_commit_settings::Keys;
use code_commit_timeline::Run;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::session::{Mode, Session};
use crate::updates::{QUERY, Updates, WORDS};
use crate::{Agent, in_folder, refused, unknown};

/// Of a project, the newest.
const MOST_RUNS: usize = 200;

/// A run of one of the two loops that sessions have.
struct Recorded {
    session: String,
    found: Found,
    run: Run,
}

/// The newest first.
fn runs(cwd: &Path, host: Host<'_>) -> Result<impl Iterator<Item = Recorded>, RpcError> {
    let all = chronicle::all(in_folder(cwd, host)).map_err(|failure| refused(&failure))?;
    let recorded = |found: Found| {
        let run = found.facts();
        let session = run.key.clone().unwrap_or_else(|| run.name.clone());
        Mode::of(&run).map(|_| Recorded {
            session,
            found,
            run,
        })
    };
    Ok(all.into_iter().take(MOST_RUNS).filter_map(recorded))
}

impl Recorded {
    fn show(&self, updates: &Updates) -> Result<(), RpcError> {
        updates.say(QUERY, self.run.asked());
        let folder = &self.found.path;
        let past = Past::read_if_begun(folder);
        let past = past.map_err(|error| RpcError::invalid_params(error.to_string()))?;
        past.json.iter().for_each(|fact| updates.fact(fact));
        let summary = text::read(&folder.join(SUMMARY)).ok().flatten();
        match summary.and_then(|text| serde_json::from_str(&text).ok()) {
            Some(summary) => updates.summary(&summary),
            None => updates.say(WORDS, self.run.stands()),
        }
        Ok(())
    }
}

pub(crate) fn list(call: &Call, host: Host<'_>) -> Result<Value, RpcError> {
    let cwd = match call.params.text("cwd") {
        Ok(cwd) => PathBuf::from(cwd),
        Err(_) => host.root().map_err(|failure| refused(&failure))?,
    };
    let mut seen = BTreeSet::new();
    let newest = runs(&cwd, host)?.filter(|one| seen.insert(one.session.clone()));
    let sessions = newest.map(|one| {
        let at = Timestamp::from_millisecond(one.run.steps.to_ms);
        let (at, title) = (at.ok().map(|at| at.to_string()), one.run.title());
        json!({ "sessionId": one.session, "cwd": cwd, "title": title, "updatedAt": at })
    });
    Ok(json!({ "sessions": sessions.collect::<Vec<_>>() }))
}

impl Agent {
    /// Shows its runs, the oldest first, and goes on from the newest.
    pub(crate) fn load(&self, call: &Call, host: Host<'_>) -> Result<Value, RpcError> {
        let id = call.params.text("sessionId")?;
        let mut session = Session::open(id, &call.params, self)?;
        let keys = Keys::find(&self.environment, &session.cwd);
        self.peer.output().strike_out(keys.exposed());
        let its = runs(&session.cwd, host)?.filter(|one| one.session == id);
        let mut its: Vec<Recorded> = its.collect();
        its.reverse();
        for one in &its {
            session.prompts += 1;
            let mut updates = Updates::new(self, &session);
            updates.run = Some(one.run.name.clone());
            one.show(&updates)?;
            (_, session.spent) = updates.close();
        }
        let newest = its.pop().ok_or_else(unknown)?.run;
        session.mode = Mode::of(&newest).unwrap_or(session.mode);
        session.last = Some(newest.name);
        Updates::new(self, &session).offer_commands();
        self.put(session)
    }
}
