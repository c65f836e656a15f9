//! A baseline file as it is written: its keys, and what they may say.

use jiff::civil::Date;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{Entry, Kind, glob};
use crate::yaml::{self, YamlError};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    known_failures: Option<Vec<Spanned<Written>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    scenario: Spanned<String>,
    #[serde(default)]
    check: Option<Spanned<String>>,
    reason: Spanned<String>,
    #[serde(default)]
    issue: Option<String>,
    #[serde(default)]
    kind: Option<Spanned<String>>,
    #[serde(default)]
    until: Option<Spanned<String>>,
    #[serde(default)]
    flaky: Option<Flaky>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flaky {
    rate: Spanned<f64>,
    until: Spanned<String>,
}

/// The entries of a file, in their order.
pub(super) fn read(file: &str, text: &str, today: Date) -> Result<Vec<Entry>, Box<YamlError>> {
    let parsed: File = yaml::parse(file, text)?;
    let entries = parsed.known_failures.unwrap_or_default().into_iter();
    let reader = Reader { file, text, today };
    entries
        .map(|written| {
            let offset = yaml::offset(text, written.referenced);
            reader.entry(written.value, offset)
        })
        .collect()
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    today: Date,
}

impl Reader<'_> {
    fn wrong<T>(&self, at: &Spanned<T>, message: String, help: Option<String>) -> Box<YamlError> {
        let offset = yaml::offset(self.text, at.referenced);
        Box::new(YamlError::at(self.file, self.text, message, help, offset))
    }

    fn entry(&self, written: Written, offset: usize) -> Result<Entry, Box<YamlError>> {
        let scenario = &written.scenario.value;
        if written.reason.value.trim().is_empty() {
            let message = format!("the entry for `{scenario}` has no reason");
            let help = "say why it is known to fail".to_owned();
            return Err(self.wrong(&written.reason, message, Some(help)));
        }
        let pattern = |at: &Spanned<String>| {
            glob(&at.value).map_err(|error| self.wrong(at, error.to_string(), None))
        };
        let kind = written.kind.as_ref().map(|at| self.kind(at)).transpose()?;
        let day = written.until.as_ref().map(|at| self.date(at)).transpose()?;
        let (flaky, until) = match &written.flaky {
            None => (None, day),
            Some(flaky) => {
                let rate = flaky.rate.value;
                if !(rate > 0.0 && rate < 1.0) {
                    let message = format!("the rate {rate} is not between 0 and 1");
                    let help =
                        "it is the share of runs in which it fails; what always fails is no flake";
                    return Err(self.wrong(&flaky.rate, message, Some(help.to_owned())));
                }
                let last = self.date(&flaky.until)?;
                (Some(rate), Some(day.map_or(last, |day| day.min(last))))
            }
        };
        let any = "*".to_owned();
        let checks = written.check.as_ref().map(pattern).transpose()?;
        let checks = match checks {
            Some(checks) => checks,
            None => glob(&any)
                .map_err(|error| self.wrong(&written.scenario, error.to_string(), None))?,
        };
        Ok(Entry {
            scenarios: pattern(&written.scenario)?,
            checks,
            check: written.check.map_or(any, |check| check.value),
            scenario: written.scenario.value,
            reason: written.reason.value,
            issue: written.issue,
            kind,
            until,
            flaky,
            expired: until.is_some_and(|until| until < self.today),
            offset,
            met: false,
            used: false,
            hits: 0,
            misses: 0,
            named: 0,
        })
    }

    fn kind(&self, at: &Spanned<String>) -> Result<Kind, Box<YamlError>> {
        let found = Kind::all().find(|kind| kind.word() == at.value);
        found.ok_or_else(|| {
            let words: Vec<&str> = Kind::all().map(Kind::word).collect();
            let message = format!("there is no kind `{}`", at.value);
            self.wrong(at, message, Some(yaml::suggestion(&at.value, &words)))
        })
    }

    fn date(&self, at: &Spanned<String>) -> Result<Date, Box<YamlError>> {
        at.value.parse().map_err(|_| {
            let message = format!("`{}` is no date", at.value);
            let help = "write year, month and day, such as 2027-06-30".to_owned();
            self.wrong(at, message, Some(help))
        })
    }
}
