//! Corpora built from a seed.
