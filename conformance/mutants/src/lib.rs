//! Broken delegators.
