//! The command line.

use std::path::PathBuf;

use crate::Result;

/// How to call it.
const USAGE: &str = "usage: anabranch-benches NAME [--quick] [--rounds N] [--dir DIR]";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// The benchmark.
    pub name: String,
    /// Whether it has to end soon, and so may be less precise.
    pub quick: bool,
    /// How often every contender has its turn; the benchmark's own choice if it is not given.
    pub rounds: Option<usize>,
    /// Where the files are made; the system's folder for temporary files if it is not given.
    pub dir: Option<PathBuf>,
}

impl Arguments {
    /// Reads the arguments that follow the program's name.
    ///
    /// # Errors
    ///
    /// What is wrong with them, and how it is done.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut parsed = Self {
            name: String::new(),
            quick: false,
            rounds: None,
            dir: None,
        };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("{argument} needs a value\n{USAGE}"))
            };
            match argument.as_str() {
                "--quick" => parsed.quick = true,
                "--rounds" => match value()?.parse() {
                    Ok(rounds) if rounds > 0 => parsed.rounds = Some(rounds),
                    _ => return Err(format!("--rounds takes a number above 0\n{USAGE}").into()),
                },
                "--dir" => parsed.dir = Some(value()?.into()),
                option if option.starts_with('-') => {
                    return Err(format!("there is no option {option}\n{USAGE}").into());
                }
                name if parsed.name.is_empty() => name.clone_into(&mut parsed.name),
                _ => return Err(format!("one benchmark at a time\n{USAGE}").into()),
            }
        }
        if parsed.name.is_empty() {
            return Err(USAGE.into());
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_stand_before_or_after_the_name() {
        let parsed = parse("--quick save --rounds 3 --dir somewhere").unwrap();
        assert_eq!((parsed.name.as_str(), parsed.quick), ("save", true));
        assert_eq!(
            (parsed.rounds, parsed.dir),
            (Some(3), Some("somewhere".into()))
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (line, named) in [
            ("", "usage"),
            ("save --fast", "--fast"),
            ("save --rounds", "needs a value"),
            ("save --rounds 0", "above 0"),
            ("save read", "one benchmark"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(named), "{line}: {error}");
        }
    }
}
