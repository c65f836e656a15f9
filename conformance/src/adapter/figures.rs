//! The figures that a subject declares, and what holds where it declares none.

use fake_pi::act::{Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::check::expr::{Quantity, Unit};

/// Longest time that the default contract gives any promise, in milliseconds.
const CEILING_MS: f64 = 5000.0;

/// Declared figures. Times are upper bounds that the subject promises. What is left out is not claimed: a time is then held to
/// the default contract's ceiling, and what depends on a size is not applicable.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Figures {
    /// From a terminal cause to settlement, at most 5 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<Span>,
    /// From the child's exit to settlement while a descendant holds a pipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_exit_drain: Option<Span>,
    /// From the answer to the forced end of a child that stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_answer_drain: Option<Span>,
    /// Bytes of answer text that a result carries at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_cap: Option<Size>,
    /// Bytes that a result may have beside the answer text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_text: Option<Size>,
    /// Longest record without LF.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_cap: Option<Size>,
    /// Bytes of stderr that are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_cap: Option<Size>,
    /// Longest task, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_limit: Option<u64>,
    /// Longest model id, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_limit: Option<u64>,
    /// How long the runner waits for a fact before it goes on without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<Span>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name in expressions and templates.
    pub name: &'static str,
    /// What the subject promises; `None`: nothing.
    pub claimed: Option<Quantity>,
    /// What a time is held to when nothing is promised.
    pub ceiling: Option<Quantity>,
    /// What templates of scenarios stand for: the promise, else a value of its kind that only fills the place.
    pub filling: Value,
}

impl Figures {
    /// All figures, with what is claimed of each.
    pub fn all(&self) -> [Figure; 10] {
        [
            promise("grace", self.grace),
            promise("post-exit-drain", self.post_exit_drain),
            promise("post-answer-drain", self.post_answer_drain),
            size("output-cap", self.output_cap),
            size("extra-text", self.extra_text),
            size("record-cap", self.record_cap),
            size("stderr-cap", self.stderr_cap),
            count("task-limit", self.task_limit),
            count("model-limit", self.model_limit),
            Figure {
                ceiling: None,
                ..promise("patience", self.patience)
            },
        ]
    }

    /// Whether the subject promises this figure; `None`: there is none of that name.
    pub fn claims(&self, name: &str) -> Option<bool> {
        let figure = self.all().into_iter().find(|figure| figure.name == name)?;
        Some(figure.claimed.is_some())
    }
}

fn promise(name: &'static str, span: Option<Span>) -> Figure {
    let time = |amount| Quantity {
        amount,
        unit: Unit::Time,
    };
    Figure {
        name,
        claimed: span.map(|span| time(span.0.as_secs_f64() * 1e3)),
        ceiling: Some(time(CEILING_MS)),
        filling: span
            .map_or_else(|| format!("{CEILING_MS}ms"), |span| span.to_string())
            .into(),
    }
}

fn size(name: &'static str, size: Option<Size>) -> Figure {
    Figure {
        name,
        claimed: size.map(|size| Quantity {
            amount: size.0 as f64,
            unit: Unit::Bytes,
        }),
        ceiling: None,
        filling: size.map_or(1024, |size| size.0).into(),
    }
}

fn count(name: &'static str, count: Option<u64>) -> Figure {
    Figure {
        name,
        claimed: count.map(|count| Quantity {
            amount: count as f64,
            unit: Unit::Plain,
        }),
        ceiling: None,
        filling: count.unwrap_or(1024).into(),
    }
}
