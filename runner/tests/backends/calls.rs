//! System calls that are on no list do not exist in a sandbox.

use crate::support::{Scratch, backends};
use code_commit_runner::Backend;

#[test]
fn a_call_that_is_on_no_list_does_not_exist() {
    for backend in backends() {
        let scratch = Scratch::new();
        scratch.compile("calls");
        let [unlisted, forbidden] = if backend == Backend::Off {
            ["done", "ESRCH"]
        } else {
            ["ENOSYS", "EPERM"]
        };
        let expected = format!(
            "getppid: done\nget_mempolicy: {unlisted}\nset_mempolicy: {unlisted}\nkcmp: {forbidden}\n"
        );
        let told = scratch.sh(backend, "./src/calls").text();
        // Docker before version 23 does not know which error to give.
        let older = expected.replace("ENOSYS", "EPERM");
        assert!(
            told == expected || (backend == Backend::Docker && told == older),
            "{backend}: {told}"
        );
    }
}
