//! Numbers, sizes and times in checks: `deadline + grace`, `output-cap + extra-text`, `64MiB`, `record-cap - 1`.
//!
//! A name is a figure of the adapter or a setting of the scenario. Blanks stand around `+`, `-` and `*` where a name is
//! next to them, since names contain hyphens; after a plain number they may be left out (`8MiB+1`).

use std::str::FromStr as _;

use fake_pi::act::{Size, Span};
use indexmap::IndexMap;
use serde_json::Value;

use crate::adapter::{Adapter, Figures};
use crate::check::words::nearest;
use crate::scenario::Scenario;

/// What a quantity measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain number: a count, or whatever the other side is.
    Plain,
    /// Milliseconds.
    Time,
    /// Bytes.
    Bytes,
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    /// How many; times are in milliseconds.
    pub amount: f64,
    /// Of what.
    pub unit: Unit,
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = match self.unit {
            Unit::Plain => "",
            Unit::Time => " ms",
            Unit::Bytes => " bytes",
        };
        // Exact below 2^53, and without a fraction that nobody measured.
        write!(f, "{}{unit}", (self.amount * 1000.0).round() / 1000.0)
    }
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ExprError {
    /// It is not written as an expression at all.
    #[error("`{0}` is no number, size or time, nor a sum of them")]
    NotAnExpression(String),
    /// A name that is neither figure nor setting.
    #[error("`{name}` is neither a figure of the adapter nor a setting{}", hint(.nearest))]
    Unknown {
        /// The name.
        name: String,
        /// A name that exists and looks like it.
        nearest: Option<String>,
    },
    /// Times and bytes in one sum.
    #[error("`{0}` adds a time to a size")]
    MixedUnits(String),
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or(String::new(), |word| format!("; nearest is `{word}`"))
}

/// The names that expressions may use, with their values where the adapter gives one.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    names: IndexMap<String, Option<Quantity>>,
}

/// Settings that scenarios may name even when an adapter has no value for them.
pub const SETTINGS: [&str; 4] = ["deadline", "tool-timeout", "start-watchdog", "output-cap"];

impl Scope {
    /// The scope of one scenario under one adapter. A setting of the scenario goes before the adapter's default.
    pub fn of(adapter: &Adapter, scenario: &Scenario) -> Self {
        let mut scope = Self::names_of(scenario);
        for figure in adapter.figures.all() {
            // A time that is not claimed is held to the contract's ceiling; a size that is not claimed has no value.
            let held = figure.claimed.or(figure.ceiling);
            scope.names.insert(figure.name.to_owned(), held);
        }
        for (name, value) in adapter.settings.iter().chain(&scenario.setup.settings) {
            if let Some(quantity) = literal_value(value) {
                scope.names.insert(name.clone(), Some(quantity));
            }
        }
        scope
    }

    /// Only the names, for looking over a scenario before any adapter is known.
    pub fn names_of(scenario: &Scenario) -> Self {
        let figures = Figures::default();
        let known = figures.all().map(|figure| figure.name);
        let known = known.into_iter().chain(SETTINGS).map(str::to_owned);
        let names = known.chain(scenario.setup.settings.keys().cloned());
        Self {
            names: names.map(|name| (name, None)).collect(),
        }
    }

    /// The value of an expression. A known name without a value counts as unknown, without a hint.
    pub fn value(&self, text: &str) -> Result<Quantity, ExprError> {
        let mut unit = Unit::Plain;
        let mut total = 0.0;
        for (sign, product) in sums(text)? {
            let mut amount = sign;
            for factor in product {
                let quantity = self.factor(&factor)?;
                match (unit, quantity.unit) {
                    (_, Unit::Plain) => {}
                    (Unit::Plain, new) => unit = new,
                    (old, new) if old == new => {}
                    _ => return Err(ExprError::MixedUnits(text.to_owned())),
                }
                amount *= quantity.amount;
            }
            total += amount;
        }
        Ok(Quantity {
            amount: total,
            unit,
        })
    }

    /// Whether it could be evaluated once an adapter is known.
    pub fn check(&self, text: &str) -> Result<(), ExprError> {
        for (_, product) in sums(text)? {
            for factor in product {
                if literal(&factor).is_none() && !self.names.contains_key(&factor) {
                    return Err(self.unknown(&factor));
                }
            }
        }
        Ok(())
    }

    fn factor(&self, text: &str) -> Result<Quantity, ExprError> {
        if let Some(quantity) = literal(text) {
            return Ok(quantity);
        }
        match self.names.get(text) {
            Some(Some(quantity)) => Ok(*quantity),
            Some(None) => Err(ExprError::Unknown {
                name: text.to_owned(),
                nearest: None,
            }),
            None => Err(self.unknown(text)),
        }
    }

    fn unknown(&self, name: &str) -> ExprError {
        let nearest = nearest(name, self.names.keys().map(String::as_str)).map(str::to_owned);
        ExprError::Unknown {
            name: name.to_owned(),
            nearest,
        }
    }
}

/// A number, size or time written out.
pub fn literal(text: &str) -> Option<Quantity> {
    let text = text.trim();
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Ok(amount) = text.parse::<f64>() {
        return Some(Quantity {
            amount,
            unit: Unit::Plain,
        });
    }
    if let Ok(Span(time)) = Span::from_str(text) {
        return Some(Quantity {
            amount: time.as_secs_f64() * 1e3,
            unit: Unit::Time,
        });
    }
    let Size(bytes) = Size::from_str(text).ok()?;
    Some(Quantity {
        amount: bytes as f64,
        unit: Unit::Bytes,
    })
}

fn literal_value(value: &Value) -> Option<Quantity> {
    match value {
        Value::Number(number) => number.as_f64().map(|amount| Quantity {
            amount,
            unit: Unit::Plain,
        }),
        Value::String(text) => literal(text),
        _ => None,
    }
}

/// Splits into signed products of factors.
fn sums(text: &str) -> Result<Vec<(f64, Vec<String>)>, ExprError> {
    let wrong = || ExprError::NotAnExpression(text.to_owned());
    let mut sums: Vec<(f64, Vec<String>)> = Vec::new();
    let mut sign = 1.0;
    let mut product: Vec<String> = Vec::new();
    let mut rest = text.trim();
    let mut factor_due = true;
    while !rest.is_empty() {
        if factor_due {
            let end = if rest.starts_with(|c: char| c.is_ascii_digit()) {
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.'))
            } else if rest.starts_with(|c: char| c.is_ascii_lowercase()) {
                rest.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
            } else {
                return Err(wrong());
            };
            let (factor, after) = rest.split_at(end.unwrap_or(rest.len()));
            product.push(factor.to_owned());
            rest = after.trim_start();
        } else {
            let operator = rest.chars().next().ok_or_else(wrong)?;
            match operator {
                '*' => {}
                '+' | '-' => {
                    sums.push((sign, std::mem::take(&mut product)));
                    sign = if operator == '-' { -1.0 } else { 1.0 };
                }
                _ => return Err(wrong()),
            }
            rest = rest[1..].trim_start();
        }
        factor_due = !factor_due;
    }
    if factor_due {
        return Err(wrong());
    }
    sums.push((sign, product));
    Ok(sums)
}
