//! The time of day.

pub(crate) use rallypoint_lobby::unix_now as now;
