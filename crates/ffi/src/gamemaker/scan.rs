//! Announcing, lists and queries.

use super::state::{fail, handle, number, opened, with, with_text};
use crate::{
    announcer::{rp_announcer_config, rp_announcer_set_key, rp_announcer_set_occupancy, rp_announcer_start},
    arguments::SizedConfig,
    failure::{RP_ERROR_NULL_POINTER, guard},
    scan::{rp_scan_config, rp_scan_start},
};
use std::ffi::{CStr, c_char};

/// Registers a server with lobbies. `list` is the UUID or the name of the list, such as "gg2"; `tcp` is 1 if players connect over
/// TCP. Returns a handle or an error.
///
/// # Safety
/// Texts are null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_announce(
    lobbies: *const c_char,
    list: *const c_char,
    name: *const c_char,
    port: f64,
    tcp: f64,
) -> f64 {
    let mut announcer = 0;
    let result = guard(|| {
        let config = rp_announcer_config {
            port: number("port", port)?,
            transport: number("tcp", tcp)?,
            name,
            lobbies,
            lobby_id: list,
            ..rp_announcer_config::zeroed()
        };
        // SAFETY: texts are as the caller promises.
        Ok(unsafe { rp_announcer_start(&raw const config, &raw mut announcer) })
    });
    opened(result, announcer)
}

/// Sets the current number of slots, players and bots of an announced server.
#[unsafe(no_mangle)]
pub extern "C" fn rpgm_set_occupancy(announcer: f64, slots: f64, players: f64, bots: f64, password: f64) -> f64 {
    let call = || {
        let slots = number("slots", slots)?;
        let players = number("players", players)?;
        let bots = number("bots", bots)?;
        let password = number("password", password)?;
        Ok(rp_announcer_set_occupancy(handle(announcer), slots, players, bots, password))
    };
    guard(call).into()
}

/// Sets a key of an announced server, such as "map", to a text.
///
/// # Safety
/// Texts are null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_set_key(announcer: f64, key: *const c_char, value: *const c_char) -> f64 {
    if value.is_null() {
        return fail(RP_ERROR_NULL_POINTER).into();
    }
    // SAFETY: texts are as the caller promises.
    unsafe {
        let value = CStr::from_ptr(value).to_bytes();
        rp_announcer_set_key(handle(announcer), key, value.as_ptr(), value.len()).into()
    }
}

/// Reads lists and queries servers: as `rp_scan_start`, with one of `RP_DETAIL_*`. Returns a handle or an error.
///
/// # Safety
/// `targets` is null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_scan(targets: *const c_char, detail: f64) -> f64 {
    let mut scan = 0;
    let result = guard(|| {
        let config = rp_scan_config { detail: number("detail", detail)?, ..rp_scan_config::zeroed() };
        // SAFETY: the text is as the caller promises.
        Ok(unsafe { rp_scan_start(targets, &raw const config, &raw mut scan) })
    });
    opened(result, scan)
}

/// A number of the record that a scan returned last, by the name of its field in `rp_scan_record`: "players", "ping_us"; -1 if it
/// is unknown.
///
/// # Safety
/// `field` is null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_scan_number(field: *const c_char) -> f64 {
    // SAFETY: the text is as the caller promises.
    let field = unsafe { name(field) };
    with(|state| state.numbers.iter().find(|(name, _)| name.as_bytes() == field).map_or(-1, |(_, number)| *number))
}

/// A text of the record that a scan returned last, by the name of its field in `rp_scan_record`: "name", "address"; empty if it
/// is unknown.
///
/// # Safety
/// `field` is null or zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpgm_scan_text(field: *const c_char) -> *const c_char {
    // SAFETY: the text is as the caller promises.
    let field = unsafe { name(field) };
    with_text(|state| {
        let found = state.texts.iter().find(|(name, _)| name.as_bytes() == field);
        found.map(|(_, text)| text.clone().into_bytes()).unwrap_or_default()
    })
}

unsafe fn name<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: as promised by the caller.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}
