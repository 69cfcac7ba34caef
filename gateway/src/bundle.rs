//! A run folder as one file.

use std::io::{self, Read as _, Write};
use std::path::Path;

use anyhow::Context as _;

use crate::environment;
use crate::wire::LARGEST_BUNDLE;

/// The most of each file at first. Where that is too much in total, all files get half of it, and so on.
const LONGEST_FILE: u64 = 64 << 20;
const LEVEL: i32 = 3;

/// Packs the regular files below `folder` as `tar.zst`, each one cut where the whole would be too large.
pub(crate) fn pack(folder: &Path) -> anyhow::Result<Vec<u8>> {
    pack_within(folder, LARGEST_BUNDLE)
}

fn pack_within(folder: &Path, largest: usize) -> anyhow::Result<Vec<u8>> {
    let mut longest = LONGEST_FILE;
    loop {
        let limited = Limited {
            bytes: Vec::new(),
            largest,
        };
        let mut archive = tar::Builder::new(zstd::Encoder::new(limited, LEVEL)?);
        let packed = add(&mut archive, folder, Path::new(""), longest)
            .and_then(|()| archive.into_inner()?.finish());
        match packed {
            Ok(limited) => return Ok(limited.bytes),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge && longest > 0 => {
                longest /= 2;
            }
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("{} cannot be packed", folder.display()));
            }
        }
    }
}

/// Files in the order of their names, so that the same folder makes the same bundle.
fn add<W: Write>(
    archive: &mut tar::Builder<W>,
    root: &Path,
    below: &Path,
    longest: u64,
) -> io::Result<()> {
    let mut names: Vec<_> = std::fs::read_dir(root.join(below))?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<_>>()?;
    names.sort();
    for name in names {
        let path = below.join(name);
        let kind = std::fs::symlink_metadata(root.join(&path))?;
        if kind.is_dir() {
            add(archive, root, &path, longest)?;
        } else if kind.is_file() {
            let mut content = Vec::new();
            environment::open(&root.join(&path))?
                .take(longest)
                .read_to_end(&mut content)?;
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, &path, &*content)?;
        }
    }
    Ok(())
}

/// Refuses to become larger than it may be.
struct Limited {
    bytes: Vec<u8>,
    largest: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.largest {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_is_cut_until_the_bundle_is_small_enough() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("attempt_1")).unwrap();
        std::fs::write(folder.path().join("run.json"), "{}").unwrap();
        // Cannot be compressed.
        let noise: Vec<u8> = (0..200_000_u32)
            .flat_map(|n| n.wrapping_mul(n).wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        std::fs::write(folder.path().join("attempt_1/stdout.txt"), &noise).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let bundle = pack_within(folder.path(), 50_000).unwrap();
        assert!(bundle.len() <= 50_000);
        assert_eq!(bundle, pack_within(folder.path(), 50_000).unwrap());
        let mut archive = tar::Archive::new(zstd::Decoder::new(&*bundle).unwrap());
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            (entry.path().unwrap().into_owned(), entry.size())
        });
        let entries: Vec<_> = entries.collect();
        assert_eq!(entries.len(), 2, "{entries:?}");
        assert_eq!(entries[1].0, Path::new("run.json"));
        assert!(entries[0].1 > 0 && entries[0].1 < noise.len() as u64);
    }
}
