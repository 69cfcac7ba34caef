//! The surroundings of a run.

use std::path::Path;
use std::{fmt, io};

use code_commit_report::Output;
use code_commit_settings::Environment;

use crate::life::Row;
use crate::model::OpenModel;

/// Everything that a run gets from the program around it; it accesses none of this itself.
#[derive(Clone, Copy)]
pub struct Host<'h> {
    /// The current folder, or why there is none.
    pub folder: Result<&'h Path, &'h io::Error>,
    /// The program's environment.
    pub environment: &'h Environment,
    /// Where to report.
    pub output: &'h Output,
    /// The loops that there are: [`LOOPS`](crate::LOOPS), and whatever a program adds.
    pub loops: &'h [Row],
    /// Opens models.
    pub models: &'h dyn OpenModel,
}

impl fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("folder", &self.folder).finish_non_exhaustive()
    }
}
