//! Runs the example as its users do.

use std::process::Command;

#[test]
fn nobody_is_mailed_twice() -> std::io::Result<()> {
    let output = Command::new(env!("CARGO_BIN_EXE_live-feed")).output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{errors}");
    for line in [
        "mailer 9 was killed",
        "400 orders, 400 mails in their order, nobody twice and nobody left out",
    ] {
        assert!(told.contains(line), "{line:?} is missing in:\n{told}");
    }
    Ok(())
}
