//! A single mount of the sandbox.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::access::{Access, View};

/// How a path travels: it may be no text, and serde writes paths as text.
pub(super) mod as_bytes {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(in crate::sandbox) fn serialize<S: Serializer>(
        path: &Path,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(to)
    }

    pub(in crate::sandbox) fn deserialize<'d, D: Deserializer<'d>>(
        from: D,
    ) -> Result<PathBuf, D::Error> {
        OsString::deserialize(from).map(PathBuf::from)
    }
}

/// One visible path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Mount {
    /// As on the host, read-only.
    ReadOnly(#[serde(with = "as_bytes")] PathBuf),
    /// As on the host, writable.
    Writable(#[serde(with = "as_bytes")] PathBuf),
    /// The first path at the second one, writable.
    At(
        #[serde(with = "as_bytes")] PathBuf,
        #[serde(with = "as_bytes")] PathBuf,
    ),
    /// A new empty folder that is discarded afterwards.
    Private(#[serde(with = "as_bytes")] PathBuf),
    /// An empty folder in place of a folder.
    EmptyFolder(#[serde(with = "as_bytes")] PathBuf),
    /// An empty file in place of a file.
    EmptyFile(#[serde(with = "as_bytes")] PathBuf),
    /// A symlink, as on the host.
    Link(
        #[serde(with = "as_bytes")] PathBuf,
        #[serde(with = "as_bytes")] PathBuf,
    ),
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Overlay {
    #[serde(with = "as_bytes")]
    pub(super) place: PathBuf,
    #[serde(with = "as_bytes")]
    pub(super) lower: PathBuf,
    /// Receives the changes.
    #[serde(with = "as_bytes")]
    pub(super) upper: PathBuf,
    /// For the kernel's own use.
    #[serde(with = "as_bytes")]
    pub(super) work: PathBuf,
}

impl Overlay {
    /// The view of the tree.
    pub(super) fn of_tree(access: &Access) -> Option<Self> {
        let View { upper, work } = access.view.clone()?;
        let (place, lower) = (access.tree.clone(), access.tree.clone());
        Some(Self {
            place,
            lower,
            upper,
            work,
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
    TERMINAL,
];
pub(super) const TERMINAL: &str = "/dev/tty";
