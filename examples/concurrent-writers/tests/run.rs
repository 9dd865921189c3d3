//! Runs the example as its users do.

use std::process::Command;

#[test]
fn the_story_holds() -> std::io::Result<()> {
    let output = Command::new(env!("CARGO_BIN_EXE_concurrent-writers")).output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{errors}");
    for line in [
        "is lost to this feed for good",
        "Nothing is lost.",
        "by commit_seq  saw 320 of 320 orders, each once",
        "PRAGMA integrity_check says: ok",
    ] {
        assert!(told.contains(line), "{line:?} is missing in:\n{told}");
    }
    Ok(())
}
