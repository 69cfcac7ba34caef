//! What a file has besides its name, content and mode: the access list and other extended attributes.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, XattrFlags};
use rustix::io::Errno;

/// Where Linux keeps a POSIX access list. If a file has one, its group bits are the mask, not the
/// permissions of the group.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
/// The list for what is created in a folder (acl(5), "Object creation and default ACLs").
const DEFAULT_LIST: &str = "system.posix_acl_default";
/// The kernel labels every new file by its policy.
const LABEL: &[u8] = b"security.selinux";
/// The longest possible attribute, and the longest list of names.
const ATTRIBUTE_BYTES: usize = 64 << 10;

/// The attributes of a file, for a copy of it.
#[derive(Debug, Clone, Default)]
pub struct Attributes(Vec<(Vec<u8>, Vec<u8>)>);

impl Attributes {
    /// Those of an open file that this process may read. None where the file system has none.
    pub fn of(file: &File) -> io::Result<Self> {
        let mut names = Vec::with_capacity(ATTRIBUTE_BYTES);
        match rustix::fs::flistxattr(file, spare_capacity(&mut names)) {
            Ok(_) => {}
            // Some have access lists, and nothing to list attributes with.
            Err(Errno::NOTSUP | Errno::NOSYS) => names.extend(ACCESS_LIST),
            Err(error) => return Err(error.into()),
        }
        let mut found = Vec::new();
        for name in names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty() && *name != LABEL)
        {
            let mut value = Vec::with_capacity(ATTRIBUTE_BYTES);
            match rustix::fs::fgetxattr(file, name, spare_capacity(&mut value)) {
                Ok(_) => found.push((name.to_vec(), value.as_slice().to_vec())),
                // A file without its access list could be open to more people.
                Err(error) if name == ACCESS_LIST && !is_none(error) => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(Self(found))
    }

    /// Gives them to a new file, with these permission bits. Returns the names of those that it does not get: only
    /// access lists and the `user.` namespace are copied, since others, such as capabilities, vouch for the content.
    /// If an access list cannot be stored, the group gets no permissions, because its bits would be the mask.
    pub fn give(&self, file: &File, mode: u32) -> io::Result<Vec<String>> {
        let (mut mode, mut lost) = (mode, Vec::new());
        for (name, value) in &self.0 {
            let is_copied = name == ACCESS_LIST || name.starts_with(b"user.");
            if is_copied && rustix::fs::fsetxattr(file, &**name, value, XattrFlags::empty()).is_ok()
            {
                continue;
            }
            if name == ACCESS_LIST {
                mode &= !0o070;
            }
            lost.push(String::from_utf8_lossy(name).into_owned());
        }
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
        Ok(lost)
    }

    /// Whether the file or folder has any; also if that is unknown.
    pub fn are_at(path: &Path) -> bool {
        let mut names = [0_u8; 256];
        match rustix::fs::llistxattr(path, &mut names[..]) {
            Ok(len) => names
                .get(..len)
                .unwrap_or_default()
                .split(|byte| *byte == 0)
                .any(|name| !name.is_empty() && name != LABEL),
            Err(error) => !is_none(error),
        }
    }
}

/// Gives a new file that was not created in the folder the access list that it would have got there.
pub fn inherit_list(folder: &crate::Folder, file: &File) -> io::Result<()> {
    let mut list = Vec::with_capacity(ATTRIBUTE_BYTES);
    match rustix::fs::fgetxattr(folder, DEFAULT_LIST, spare_capacity(&mut list)) {
        Ok(_) => {}
        Err(error) if is_none(error) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    rustix::fs::fsetxattr(file, ACCESS_LIST, &list, XattrFlags::empty())?;
    // The umask does not count then.
    let mode = rustix::fs::fstat(file)?.st_mode;
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o666))?)
}

fn is_none(error: Errno) -> bool {
    matches!(error, Errno::NODATA | Errno::NOTSUP | Errno::NOSYS)
}
