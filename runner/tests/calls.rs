//! System calls that are on no list do not exist in a sandbox.

mod support;

use code_commit_runner::Rung;
use support::{Scratch, rungs};

#[test]
fn a_call_that_is_on_no_list_does_not_exist() {
    for rung in rungs() {
        let scratch = Scratch::new();
        scratch.compile("calls");
        let [unlisted, forbidden] = if rung == Rung::Off {
            ["done", "ESRCH"]
        } else {
            ["ENOSYS", "EPERM"]
        };
        let expected = format!(
            "getppid: done\nget_mempolicy: {unlisted}\nset_mempolicy: {unlisted}\nkcmp: {forbidden}\n"
        );
        let told = scratch.sh(rung, "./src/calls").text();
        // Docker before version 23 does not know which error to give.
        let older = expected.replace("ENOSYS", "EPERM");
        assert!(
            told == expected || (rung == Rung::Docker && told == older),
            "{rung}: {told}"
        );
    }
}
