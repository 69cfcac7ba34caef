use super::*;
use crate::End;
use runner::Confinement;

#[test]
fn a_gemini_that_knows_no_stream_answers_all_the_same() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/agents/gemini-object.sh");
    let cli = Installed::at(Kind::Gemini, &program).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (home, walls) = (folder.path().join("home"), Confinement::off());
    let spawn = Spawn::new(folder.path(), "do it", &home, &walls);
    let (mut log, mut events) = (Vec::new(), Vec::new());
    let cancel = Cancel::new().unwrap();
    let outcome = run(&cli, &spawn, &cancel, &mut log, &mut |event| events.push(event.clone())).unwrap();
    assert_eq!((outcome.end, outcome.text.as_str()), (End::Ok, "It is done.\nReally."));
    let models: Vec<&str> = outcome.usage.iter().map(|of| of.model.as_str()).collect();
    assert_eq!(models, ["gemini-3.5-flash-lite", "gemini-3.8-flash"]);
    assert!(events.contains(&Event::Text(outcome.text)), "{events:?}");
    assert!(String::from_utf8(log).unwrap().ends_with("\n  }\n}\n"));
}
