//! What is told, and in which form.

pub mod record;
pub mod terminal;
