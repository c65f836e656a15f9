//! A delegator that keeps every promise.
