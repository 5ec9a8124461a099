//! Popular replies in files, where the system can send those without a copy.

#[cfg(all(target_os = "linux", not(rallypoint_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(rallypoint_portable))))]
mod portable;

#[cfg(all(target_os = "linux", not(rallypoint_portable)))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(rallypoint_portable))))]
pub(crate) use portable::*;
