//! What surrounds a run.

use std::path::Path;
use std::{fmt, io};

use report::Output;
use settings::Environment;

use crate::model::OpenModel;

/// All that a run gets from the program around it: it asks for nothing of this by itself.
#[derive(Clone, Copy)]
pub struct Host<'h> {
    /// The folder that a command was given in, or why there is none.
    pub folder: Result<&'h Path, &'h io::Error>,
    /// What the program was started with.
    pub environment: &'h Environment,
    /// Where to tell what happens.
    pub output: &'h Output,
    /// Who opens models.
    pub models: &'h dyn OpenModel,
}

impl fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("folder", &self.folder).finish_non_exhaustive()
    }
}
