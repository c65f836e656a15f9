//! What looking something up in the evidence gives.

use serde_json::Value;

/// Who saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Witness {
    /// The subject says so: its results and notifications, as the runner received them.
    Claims,
    /// A fake child or descendant wrote it down.
    Journal,
    /// The kernel showed it to the warden.
    Kernel,
    /// The runner did or timed it.
    Runner,
}

impl Witness {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claims => "claims",
            Self::Journal => "journal",
            Self::Kernel => "kernel",
            Self::Runner => "runner",
        }
    }
}

/// The three ways a look can end. That they are apart is what keeps a check from passing over nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Look {
    /// Something is there.
    Is(Value),
    /// What would carry it was seen, and it has no such thing.
    Absent,
    /// What would carry it was not seen; why.
    Nothing(String),
    /// The subject's adapter does not declare it; what is missing.
    Undeclared(String),
}

/// One look at one thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Sight {
    /// What was looked at, with the name of the call or launch: `call-3.ok`, `a#2.argv`.
    pub label: String,
    /// Whose evidence it is.
    pub witness: Witness,
    /// What was there.
    pub look: Look,
}

impl Sight {
    /// A sight.
    pub fn new(label: impl Into<String>, witness: Witness, look: Look) -> Self {
        Self {
            label: label.into(),
            witness,
            look,
        }
    }

    /// A thing that would carry it was not seen.
    pub fn nothing(label: impl Into<String>, witness: Witness, why: impl Into<String>) -> Self {
        Self::new(label, witness, Look::Nothing(why.into()))
    }
}

impl Look {
    /// A value that is there.
    pub fn is(value: impl Into<Value>) -> Self {
        Self::Is(value.into())
    }

    /// `null` and `None` are absent.
    pub fn of(value: Option<Value>) -> Self {
        match value {
            None | Some(Value::Null) => Self::Absent,
            Some(value) => Self::Is(value),
        }
    }
}

/// A list of texts as a value.
pub fn texts<T: Into<String>>(items: impl IntoIterator<Item = T>) -> Value {
    Value::Array(
        items
            .into_iter()
            .map(|item| Value::String(item.into()))
            .collect(),
    )
}
