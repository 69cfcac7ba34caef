//! What each reply of the corpus is read as.

#[test]
fn every_reply_of_the_corpus_is_read_as_before() {
    insta::glob!("../../../fixtures/replies", "*.txt", |path| {
        let bytes = std::fs::read(path).unwrap();
        insta::assert_snapshot!(crate::show::check(std::str::from_utf8(&bytes).unwrap()));
    });
}
