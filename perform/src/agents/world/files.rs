//! What a loop reads and writes in the places of its project.

use std::io;
use std::path::{Path, PathBuf};

use code_commit_engine::{
    AgentLoop, Append, At, Delete, Live, Named, Place, Read, Replace, WasRead, Wrote,
};

use super::{AgentWorld, Cast};
use crate::agents::fault::{AgentFault, fault};

/// Larger files are not read.
const LARGEST: u64 = 16 << 20;

impl<P: AgentLoop, C: Cast<P>> Live<Read<P>> for AgentWorld<'_, C> {
    /// Reads only regular files: an agent could have left a symlink, a pipe, or a file that exhausts memory.
    fn perform(&mut self, Read(at): &Read<P>) -> Result<WasRead, AgentFault> {
        self.begin()?;
        let path = self.path(at);
        let read = match code_commit_dir::read(&path, LARGEST, code_commit_dir::Links::Refused) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // A role may have made it unreadable.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(None),
            read => Some(read.map_err(fault("read", &path))?),
        };
        let odd = matches!(read, Some(None));
        // A role has chosen the file's own name: it may be long, or one of the harness's.
        let name = format!("{}-file.txt", at.place.name());
        let keep = |bytes: Vec<u8>| self.store(&name, &String::from_utf8_lossy(&bytes));
        Ok(WasRead {
            place: shown(at),
            text: read.flatten().map(keep).transpose()?,
            odd,
        })
    }
}

impl<P: AgentLoop, C: Cast<P>> Live<Replace<P>> for AgentWorld<'_, C> {
    fn perform(&mut self, Replace { at, text }: &Replace<P>) -> Result<Wrote, AgentFault> {
        self.begin()?;
        self.change(at, "write", |path| {
            code_commit_dir::replace(path, text.as_bytes())
        })
    }
}

impl<P: AgentLoop, C: Cast<P>> Live<Append<P>> for AgentWorld<'_, C> {
    /// Also after Ctrl-C: the lines report what happened.
    fn perform(&mut self, Append { at, head, text }: &Append<P>) -> Result<Wrote, AgentFault> {
        self.change(at, "write", |path| {
            code_commit_dir::append_once(path, head, text)
        })
    }
}

impl<P: AgentLoop, C: Cast<P>> Live<Delete<P>> for AgentWorld<'_, C> {
    fn perform(&mut self, Delete(at): &Delete<P>) -> Result<Wrote, AgentFault> {
        self.begin()?;
        self.change(at, "remove", code_commit_dir::remove)
    }
}

impl<C> AgentWorld<'_, C> {
    fn path<P: AgentLoop>(&self, at: &At<P::Place>) -> PathBuf
    where
        C: Cast<P>,
    {
        self.cast.folder(at.place).join(&at.file)
    }

    fn change<P: AgentLoop>(
        &self,
        at: &At<P::Place>,
        doing: &'static str,
        change: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Wrote, AgentFault>
    where
        C: Cast<P>,
    {
        let path = self.path::<P>(at);
        change(&path).map_err(fault(doing, &path))?;
        Ok(Wrote { place: shown(at) })
    }
}

/// The form used in the journal.
fn shown<N: Named>(at: &At<N>) -> Place {
    At::new(at.place.name().to_owned(), at.file.clone())
}
