//! Random sets compared with a model of the tree, then undone.

use std::collections::BTreeMap;

use code_commit_apply::Force;
use proptest::prelude::*;

use crate::tree::Tree;

type Plan = Vec<BTreeMap<String, Option<Vec<u8>>>>;

/// Files in a few folders; the names of folders are never names of files.
fn plan() -> impl Strategy<Value = Plan> {
    let path = (
        prop::collection::vec(prop::sample::select(&["d1", "d2"][..]), 0..3),
        0..4_u8,
    )
        .prop_map(|(folders, file)| {
            [
                folders,
                vec!["abcd".get(file.into()..=file.into()).unwrap()],
            ]
            .concat()
            .join("/")
        });
    let content = prop::option::weighted(0.7, prop::collection::vec(any::<u8>(), 0..20));
    prop::collection::vec(prop::collection::btree_map(path, content, 0..8), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_is_what_the_sets_say_and_undone_what_it_was(plan in plan()) {
        let mut tree = Tree::new(&[("a", "first"), ("d1/a", "second"), ("d1/d2/b", "third")]);
        let old = tree.files();
        let mut model: BTreeMap<String, Vec<u8>> =
            old.iter().filter_map(|(path, (_, content))| Some((path.clone(), content.clone()?))).collect();
        for set in &plan {
            let changes: Vec<_> = set.iter().map(|(path, content)| (path.as_str(), content.as_deref())).collect();
            tree.apply(&changes).unwrap();
            for (path, content) in set {
                match content {
                    Some(content) => model.insert(path.clone(), content.clone()),
                    None => model.remove(path),
                };
            }
        }
        let now: BTreeMap<String, Vec<u8>> =
            tree.files().into_iter().filter_map(|(path, (_, content))| Some((path, content?))).collect();
        prop_assert_eq!(now, model);
        tree.undone(Force::No).unwrap();
        prop_assert_eq!(tree.files(), old);
    }
}
