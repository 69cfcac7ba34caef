//! The surroundings of a run.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use anyhow::anyhow;
use code_commit_llm::Model;
use code_commit_repo::WorkTree;
use code_commit_report::Output;
use code_commit_runner::Cancel;
use code_commit_settings::{Environment, Keys, Settings};

use crate::exit::Failure;
use crate::kind::LoopKind;
use crate::trusted::Trusted;

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
    pub loops: &'h [LoopKind],
    /// Opens models.
    pub models: &'h dyn OpenModel,
    /// Stops the command; without it, Ctrl-C does. A program that serves several commands has one for each.
    pub cancel: Option<&'h Cancel>,
}

impl<'h> Host<'h> {
    /// The current folder.
    pub fn here(&self) -> Result<&'h Path, Failure> {
        self.folder.map_err(nowhere)
    }

    /// For commands about the current folder's project, or about none. A repository that cannot be read is none here:
    /// `doctor` has to say what is wrong with it.
    pub fn trusted(&self) -> Trusted {
        let folder = self.folder.unwrap_or(Path::new("/nonexistent"));
        Trusted::at(folder, WorkTree::at(folder).ok(), self.environment)
    }

    /// The root of the project for commands that need no repository: the current folder, links resolved.
    pub fn root(&self) -> Result<PathBuf, Failure> {
        let here = self.here()?;
        here.canonicalize().map_err(|error| {
            let error = anyhow!(error).context(here.display().to_string());
            nowhere(&error)
        })
    }
}

fn nowhere(error: impl fmt::Display) -> Failure {
    let error = anyhow!("{error:#}").context("cannot determine the current folder");
    Failure::refused(error, "change to a folder that exists")
}

impl fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// Opens models. This crate does not know their services by name.
pub trait OpenModel {
    /// A client for the model that the settings name.
    fn open(
        &self,
        settings: &Settings,
        keys: &Keys,
        host: Host<'_>,
    ) -> Result<Box<dyn Model>, Failure>;
}
