use super::*;

fn turn<'a>(role: &'a str, phases: &'a [Phase<'a>], commands: &'a [(String, String)]) -> Turn<'a> {
    Turn {
        role,
        project: Some("A shop."),
        phase: 2,
        iteration: 3,
        iterations: 5,
        workspace: "src",
        phases,
        commands,
        map: "main.js\n",
        failures: None,
    }
}

const PHASES: [Phase<'_>; 3] = [
    Phase {
        number: 1,
        title: "Login",
        completed: true,
        spec: "# Phase 1: Login\nGET /login → 200",
    },
    Phase {
        number: 2,
        title: "Cart",
        completed: false,
        spec: "# Phase 2: Cart\nGET /cart → 200\n",
    },
    Phase {
        number: 3,
        title: "Pay",
        completed: false,
        spec: "# Phase 3: Pay\nSECRET OF LATER",
    },
];

#[test]
fn the_builder_gets_its_parts_in_the_order_of_the_seed() {
    let commands = [("lint".to_owned(), "runs the linter".to_owned())];
    let asked = turn(
        "Build phase <<PHASE>>, iteration <<ITERATION>>.",
        &PHASES,
        &commands,
    );
    let asked = Turn {
        failures: Some("SPEC: a → b\nINPUT: c\nOBSERVED: d\n"),
        ..asked
    };
    insta::assert_snapshot!(builder(&asked), @r#"
    Build phase 2, iteration 3.

    # Project

    A shop.

    # Session state

    - Phase: 2 (Cart)
    - Iteration: 3 of 5
    - Workspace: src

    # Failed contracts

    The last verification failed. Mend these first:

    SPEC: a → b
    INPUT: c
    OBSERVED: d

    # Phases

    - Phase 1: Login (completed)
    - Phase 2: Cart (current)
    - Phase 3: Pay (pending)

    # Spec of phase 2

    # Phase 2: Cart
    GET /cart → 200

    # Commands

    - `abl-cmd get-spec N`: prints the spec of phase N
    - `abl-cmd lint`: runs the linter

    # Files that you can see

    main.js
    "#);
}

#[test]
fn the_verifier_gets_every_spec_up_to_now_and_no_later_one() {
    let text = verifier(&turn("Verify.", &PHASES, &[]));
    assert!(text.contains("GET /login → 200") && text.contains("GET /cart → 200"));
    assert!(!text.contains("SECRET OF LATER"));
}

#[test]
fn a_first_build_says_so() {
    let says_so = |iteration| {
        builder(&Turn {
            iteration,
            ..turn("Build.", &PHASES, &[])
        })
        .contains("first build")
    };
    assert!(says_so(1) && !says_so(2), "the specs were edited since");
}

#[test]
fn no_role_is_told_of_the_other_ones_folder() {
    assert!(!BUILDER.contains("verifier_reports") && !BUILDER.contains("failed_specs.md"));
    assert!(!VERIFIER.contains("builder_reports") && !VERIFIER.contains("src"));
}
