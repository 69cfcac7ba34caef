//! What a verdict holds for: the content of a folder, by its identity.

use serde::{Deserialize, Serialize};

use super::Project;
use crate::{Answer, Request};

/// Tell what a place holds now. A verdict that was given for other content is void.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct Identify<P: Project> {
    /// The place.
    pub place: P::Place,
}

impl<P: Project> Request for Identify<P> {
    const KIND: &'static str = "identify";
    type Answer = Identified;
}

/// The identity of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename = "identified")]
pub struct Identified {
    /// Which.
    pub place: String,
    /// A hash over its files, except ignored ones: paths, executable bits, contents. `None` if there is no
    /// such folder.
    pub sha256: Option<String>,
}

impl Answer for Identified {}
