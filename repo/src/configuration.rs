//! Git's configuration, as it was when the work tree was opened.

use gix::bstr::BString;
use gix::config::source::Kind;

use crate::WorkTree;

impl WorkTree {
    /// Git's configuration from all its files, as it was read.
    pub fn configuration(&self) -> Vec<u8> {
        self.repository
            .config_snapshot()
            .plumbing()
            .to_bstring()
            .into()
    }

    /// Whether the repository's own configuration names filters. They do not run, so files that go
    /// through them look changed.
    pub fn has_own_filters(&self) -> bool {
        !self.own_filters().is_empty()
    }

    pub(crate) fn own_filters(&self) -> Vec<BString> {
        let config = self.repository.config_snapshot();
        let filters = config
            .plumbing()
            .sections_by_name("filter")
            .into_iter()
            .flatten();
        let own = filters.filter(|section| section.meta().source.kind() == Kind::Repository);
        own.filter_map(|section| section.header().subsection_name().map(ToOwned::to_owned))
            .collect()
    }
}
