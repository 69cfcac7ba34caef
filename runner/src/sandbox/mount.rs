//! A single mount of the sandbox.

use std::path::{Path, PathBuf};

use super::access::{Access, View};

/// One visible path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mount {
    /// As on the host, read-only.
    ReadOnly(PathBuf),
    /// As on the host, writable.
    Writable(PathBuf),
    /// The first path at the second one, writable.
    At(PathBuf, PathBuf),
    /// A new empty folder that is discarded afterwards.
    Private(PathBuf),
    /// An empty folder in place of a folder.
    EmptyFolder(PathBuf),
    /// An empty file in place of a file.
    EmptyFile(PathBuf),
    /// A symlink, as on the host.
    Link(PathBuf, PathBuf),
}

impl Mount {
    /// Its path in the sandbox.
    pub(super) fn place(&self) -> &Path {
        match self {
            Self::ReadOnly(path)
            | Self::Writable(path)
            | Self::Private(path)
            | Self::EmptyFolder(path)
            | Self::EmptyFile(path)
            | Self::At(_, path)
            | Self::Link(_, path) => path,
        }
    }
}

/// A mount in which everything is as in `lower`, and whose changes go to a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Overlay {
    pub(super) place: PathBuf,
    pub(super) lower: PathBuf,
    pub(super) layer: View,
}

impl Overlay {
    /// The view of the tree.
    pub(super) fn of_tree(access: &Access) -> Option<Self> {
        let layer = access.view.clone()?;
        Some(Self {
            place: access.tree.clone(),
            lower: access.tree.clone(),
            layer,
        })
    }

    /// Whether it is a view: what is below it is what it covers. Other layers outlive the command.
    pub(super) fn is_view(&self) -> bool {
        self.place == self.lower
    }
}

/// System programs and libraries. Not all of `/nix`, where the socket of its daemon is.
pub(super) const SYSTEM: [&str; 10] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/nix/var/nix/profiles",
];

/// Devices that are only a source or a sink, and the command's own terminal.
pub(super) const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];
