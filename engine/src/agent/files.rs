//! Files of the harness in places that only a loop names, and the identity of what a place holds.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::text::digest;
use crate::{Answer, Request, Text};

/// What a loop's roles, places and repositories are. Types, so that a request can only name what
/// the harness has.
pub trait AgentLoop: fmt::Debug + Clone + 'static {
    /// Who works.
    type Role: Named;
    /// A folder that holds files of the harness or files that it reads.
    type Place: Named;
    /// Where commits go.
    type Repository: Named;
}

/// A role, a place or a repository.
pub trait Named: Serialize + Copy + PartialEq + fmt::Debug {
    /// Its name in the record: lower-case, without blanks.
    fn name(self) -> &'static str;
}

/// A file in one of the loop's places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct At<P> {
    /// The place.
    pub place: P,
    /// The file, relative to it.
    pub file: String,
}

impl<P> At<P> {
    /// `file` in `place`.
    pub fn new(place: P, file: impl Into<String>) -> Self {
        Self {
            place,
            file: file.into(),
        }
    }
}

/// Such a file as the journal names it.
pub type Place = At<String>;

/// Read a file.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Read<P: AgentLoop>(pub At<P::Place>);

impl<P: AgentLoop> Request for Read<P> {
    const KIND: &'static str = "read";
    type Answer = WasRead;
}

/// The content of a file, or that it does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "was-read")]
pub struct WasRead {
    /// Which.
    pub place: Place,
    /// The content.
    pub text: Option<Text>,
    /// Whether something else is there that is not read: a symlink, a folder, a pipe, a file that
    /// is too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub odd: bool,
}

impl Answer for WasRead {
    fn texts_mut(&mut self) -> Vec<&mut Text> {
        self.text.iter_mut().collect()
    }
}

/// Write a whole file.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Replace<P: AgentLoop> {
    /// Which.
    pub at: At<P::Place>,
    /// Its new content.
    #[serde(serialize_with = "digest")]
    pub text: Arc<str>,
}

impl<P: AgentLoop> Request for Replace<P> {
    const KIND: &'static str = "replace";
    type Answer = Wrote;
}

/// Append lines to a file, unless it already ends with them. They record what has happened, so
/// Ctrl-C does not prevent it.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Append<P: AgentLoop> {
    /// Which.
    pub at: At<P::Place>,
    /// The beginning of a new file.
    pub head: &'static str,
    /// The lines.
    pub text: String,
}

impl<P: AgentLoop> Request for Append<P> {
    const KIND: &'static str = "append";
    type Answer = Wrote;
}

/// Remove a file. It may be missing.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Delete<P: AgentLoop>(pub At<P::Place>);

impl<P: AgentLoop> Request for Delete<P> {
    const KIND: &'static str = "delete";
    type Answer = Wrote;
}

/// A file is now as requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "wrote")]
pub struct Wrote {
    /// Which.
    pub place: Place,
}

impl Answer for Wrote {}

/// Tell what a place holds now. A verdict that was given for other content is void.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Identify<P: AgentLoop> {
    /// The place.
    pub place: P::Place,
}

impl<P: AgentLoop> Request for Identify<P> {
    const KIND: &'static str = "identify";
    type Answer = Identified;
}

/// The identity of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "what", rename = "identified")]
pub struct Identified {
    /// Which.
    pub place: String,
    /// A hash over its files, except ignored ones: paths, executable bits, contents. `None` if there is no
    /// such folder.
    pub sha256: Option<String>,
}

impl Answer for Identified {}
