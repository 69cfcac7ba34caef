//! The newest recorded run of a phase, and the specs that it worked by.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use code_commit_engine::{Line, Named as _, WasRead};
use code_commit_loop_phase::{Place, Start};
use serde::Deserialize;

use crate::records;
use crate::registry::RUN_JSON;

/// The folder with the runs, in the phases' own folder.
pub const LOGS: &str = "logs";

/// The folder of the newest run of a phase, by its name.
pub(super) fn newest(logs: &Path, phase: u32) -> Option<PathBuf> {
    let entries = code_commit_dir::list(logs).into_iter().flatten().flatten();
    let is_its =
        |run: &PathBuf| run.file_name().and_then(|name| phase_of(name.to_str()?)) == Some(phase);
    entries.map(|entry| entry.path()).filter(is_its).max()
}

/// The `3` in `…-phase3` and `…-phase3-2`.
fn phase_of(name: &str) -> Option<u32> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (_, end) = name.rsplit_once("-phase")?;
    let (phase, count) = end.split_once('-').unwrap_or((end, "2"));
    phase
        .parse()
        .ok()
        .filter(|_| is_number(phase) && is_number(count))
}

/// The part of `run.json` that says where a run began: its facts only make sense from there.
#[derive(Deserialize)]
struct Begun {
    start: Start,
}

/// The specs that the newest run of a phase worked by at its end; none if that is not known.
pub(crate) fn specs_of_last_run(logs: &Path, phase: u32) -> BTreeMap<u32, String> {
    let Some(run) = newest(logs, phase) else {
        return BTreeMap::new();
    };
    let folder = records::open(&run);
    let begun = folder
        .read(RUN_JSON)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok());
    let Some(Begun { start }) = begun else {
        return BTreeMap::new();
    };
    let mut specs: BTreeMap<u32, String> = start
        .specs
        .into_iter()
        .map(|spec| (spec.number, spec.text))
        .collect();
    let past = code_commit_perform::Past::read(&run).unwrap_or_default();
    for line in past.lines {
        if let Line::WasRead(WasRead {
            place,
            text: Some(text),
            ..
        }) = line
            && place.place == Place::Specs.name()
            && let Some(number) = code_commit_loop_phase::spec::number(&place.file)
            && let Ok(text) = folder.read(&text.stored.file)
        {
            specs.insert(number, text);
        }
    }
    specs
}
