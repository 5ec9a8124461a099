//! Command-line options of the tasks.

use crate::Stop;
use std::str::FromStr;

/// The arguments after the task's name. Options are taken out first; what remains are names.
pub struct Args(Vec<String>);

impl Args {
    pub fn new(arguments: Vec<String>) -> Self {
        Self(arguments)
    }

    /// Takes out an option without a value; returns whether it was given.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|argument| argument != name);
        self.0.len() < before
    }

    /// Takes out `--name VALUE` or `--name=VALUE`, and returns the value.
    pub fn value<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Stop> {
        let Some(at) = self.0.iter().position(|argument| argument.split('=').next() == Some(name)) else {
            return Ok(None);
        };
        let option = self.0.remove(at);
        let value = match option.split_once('=') {
            Some((_, value)) => value.to_owned(),
            None if at < self.0.len() => self.0.remove(at),
            None => return Err(Stop::Usage(format!("{name} needs a value"))),
        };
        value.parse().map(Some).map_err(|_| Stop::Usage(format!("{name} does not accept `{value}`")))
    }

    /// The remaining name, if any. A remaining option is unknown to the task.
    pub fn last_name(self) -> Result<Option<String>, Stop> {
        if let Some(option) = self.0.iter().find(|argument| argument.starts_with('-')) {
            return Err(Stop::Usage(format!("unknown option `{option}` (see cargo xtask --help)")));
        }
        match self.0.len() {
            0 | 1 => Ok(self.0.into_iter().next()),
            _ => Err(Stop::Usage(format!("expected at most one name, not `{}`", self.0.join(" ")))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args::new(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn options_and_the_name_are_accepted_in_any_order() {
        for line in ["--seconds 5 --minimise reader", "reader --minimise --seconds=5", "--minimise reader --seconds 5"]
        {
            let mut args = args(line);
            assert_eq!(args.value::<u64>("--seconds").unwrap(), Some(5), "{line}");
            assert!(args.flag("--minimise"), "{line}");
            assert_eq!(args.last_name().unwrap().as_deref(), Some("reader"), "{line}");
        }
    }

    #[test]
    fn malformed_arguments_are_rejected() {
        assert!(args("--seconds").value::<u64>("--seconds").is_err());
        assert!(args("--seconds soon").value::<u64>("--seconds").is_err());
        assert!(args("--second 5").last_name().is_err());
        assert!(args("reader writer").last_name().is_err());
    }

    #[test]
    fn no_arguments_are_accepted() {
        let mut args = args("");
        assert_eq!(args.value::<u64>("--seconds").unwrap(), None);
        assert!(!args.flag("--minimise"));
        assert_eq!(args.last_name().unwrap(), None);
    }
}
