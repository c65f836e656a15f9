//! Where a session's identifiers come from: outside, so that the session itself stays a function of its inputs.

/// Makes identifiers.
pub trait Ids: Send {
    /// A uuid in its usual form: sessions, UI requests.
    fn uuid(&mut self) -> String;
    /// Eight hexadecimal digits: session entries.
    fn entry(&mut self) -> String;
}

/// Identifiers that count up: the same in every run.
#[derive(Debug, Default)]
pub struct Counting(u64);

impl Ids for Counting {
    fn uuid(&mut self) -> String {
        self.0 += 1;
        format!("00000000-0000-7000-8000-{:012x}", self.0)
    }

    fn entry(&mut self) -> String {
        self.0 += 1;
        format!("{:08x}", self.0)
    }
}
