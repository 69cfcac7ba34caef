use guard::Policy;

use super::*;

/// Those of the commit loops, for an empty tree in `top`.
pub(crate) fn rules(top: &Path) -> Rules {
    let root = top.join("tree");
    std::fs::create_dir(&root).unwrap();
    let guard = Guard::open(&root, Policy::commit()).unwrap();
    let lock = Lock::acquire(&top.join("state"), "a test").unwrap();
    Rules { root, guard, lock }
}

#[test]
fn a_model_is_told_of_many_problems_and_how_many_more_there_are() {
    let problem = |n: usize| Problem {
        code: "dot-git".to_owned(),
        path: None,
        line: None,
        message: format!("problem {n}"),
    };
    let Intake::Rejected { problems, report, .. } =
        Intake::rejected((0..5000).map(problem).collect(), Vec::new())
    else {
        panic!("nothing was rejected")
    };
    assert_eq!((problems.len(), report.lines().count()), (5000, 1 + MOST_TOLD + 1));
    assert!(report.ends_with("- problem 199\n- and 4800 more of the kind.\n"), "{report}");
}
