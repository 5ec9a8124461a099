//! The C interface, driven by scripts of calls: any order, closed and made-up handles, null pointers, buffers of any size. No
//! call panics (the interface would report it as an error code), writes beyond a buffer, or accepts a handle that is closed. For
//! the fuzz target `ffi` and the property test below.

use crate::{arguments::SizedConfig, *};
use std::{
    ffi::{CString, c_char},
    ptr::{null, null_mut},
};

/// Maximum number of calls of one script, most of which are system calls.
const MAX_CALLS: usize = 200;
/// Bytes behind each buffer that must not change.
const GUARD: [u8; 8] = [0xa5; 8];

/// A channel of each mode.
const CHANNELS: [rp_channel; 4] = {
    let channel = rp_channel {
        size: size_of::<rp_channel>() as u32,
        mode: RP_CHANNEL_RELIABLE_ORDERED,
        max_to_server: 4_000,
        max_to_client: 4_000,
        priority: 0,
        max_age_ms: 0,
        rate: 0,
        queue: 4_000,
        receipts: 1,
    };
    [
        channel,
        rp_channel { mode: RP_CHANNEL_RELIABLE_UNORDERED, max_to_client: 0, ..channel },
        rp_channel { mode: RP_CHANNEL_SEQUENCED, receipts: 0, ..channel },
        rp_channel { mode: RP_CHANNEL_EXPIRING, receipts: 0, ..channel },
    ]
};

/// A client and a server on loopback, whatever else the script opened, and buffers.
struct Script<'a> {
    input: std::slice::Iter<'a, u8>,
    /// Handles that were open at some time.
    handles: Vec<u64>,
    closed: Vec<u64>,
    players: Vec<u32>,
    address: CString,
}

/// Runs a script: each call takes its function and its arguments from the input.
///
/// # Panics
/// If the interface does not keep what it promises.
pub fn run(data: &[u8]) {
    let mut script = Script {
        input: data.iter(),
        handles: Vec::new(),
        closed: Vec::new(),
        players: Vec::new(),
        address: CString::default(),
    };
    script.open_server();
    script.open_client();
    for _ in 0..MAX_CALLS {
        let Some(function) = script.input.next() else { break };
        let result = script.call(*function);
        assert_ne!(result, RP_ERROR_PANIC, "function {function} panicked");
    }
    for handle in std::mem::take(&mut script.handles) {
        script.close(handle);
    }
}

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        self.input.next().copied().unwrap_or_default()
    }

    /// Mostly a handle that is or was open; sometimes an arbitrary number.
    fn handle(&mut self) -> u64 {
        let byte = usize::from(self.byte());
        match self.handles.len() + self.closed.len() {
            count if count > 0 && byte < 240 => {
                let index = byte % count;
                self.handles.get(index).or_else(|| self.closed.get(index - self.handles.len())).copied().unwrap_or(0)
            }
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    fn player(&mut self) -> u32 {
        let byte = usize::from(self.byte());
        self.players.get(byte).copied().unwrap_or(byte as u32 | 0x100)
    }

    /// A text that may be invalid, without zero bytes; or none.
    fn text(&mut self) -> Option<CString> {
        let length = self.byte() % 40;
        if length == 39 {
            return None;
        }
        let bytes: Vec<u8> = (0..length).map(|_| self.byte().max(1)).collect();
        CString::new(bytes).ok()
    }

    /// Channels and their number; often none, sometimes more than there are.
    fn channels(&mut self) -> (*const rp_channel, u32) {
        match self.byte() % 8 {
            0..4 => (CHANNELS.as_ptr(), CHANNELS.len() as u32),
            4 => (CHANNELS.as_ptr(), 1),
            5 => (null(), 4),
            6 => (CHANNELS.as_ptr(), 33),
            _ => (null(), 0),
        }
    }

    fn open_server(&mut self) -> i32 {
        let (channels, channel_count) = self.channels();
        let key = [7; RP_KEY_LENGTH];
        let flags = self.byte();
        let config = rp_server_config {
            listen: c"127.0.0.1:0".as_ptr(),
            game: c"tag".as_ptr(),
            max_players: self.byte().into(),
            window: 64,
            max_stream_message: if channel_count == 0 { u32::from(self.byte()) << 8 } else { 0 },
            channels,
            channel_count,
            decides_logins: u32::from(flags & 1),
            plain_channel: u32::from(flags >> 1 & 1),
            token_key: if flags >> 4 == 0xf { key.as_ptr() } else { null() },
            ..rp_server_config::zeroed()
        };
        let mut server = 0;
        // SAFETY: all pointers are valid.
        let result = unsafe { rp_server_bind(&config, &mut server) };
        if result == 0 {
            let mut text = [0_u8; 64];
            // SAFETY: the buffer has this length.
            let length = unsafe { rp_server_local_address(server, 0, text.as_mut_ptr().cast(), text.len()) };
            self.address = CString::new(&text[..usize::try_from(length).unwrap_or(0)]).unwrap_or_default();
            self.handles.push(server);
        }
        result
    }

    fn open_client(&mut self) -> i32 {
        let (channels, channel_count) = self.channels();
        let token = [1; RP_MAX_TOKEN];
        let has_token = self.byte() == 255;
        let config = rp_client_config {
            encryption: (self.byte() % 4).into(),
            username: c"alice".as_ptr(),
            game: c"tag".as_ptr(),
            reconnect: (self.byte() % 2).into(),
            window: 64,
            max_stream_message: if channel_count == 0 { u32::from(self.byte()) << 8 } else { 0 },
            channels,
            channel_count,
            token_length: if has_token { self.byte().into() } else { 0 }.min(RP_MAX_TOKEN as u32),
            token: token.as_ptr(),
            ..rp_client_config::zeroed()
        };
        let mut client = 0;
        // SAFETY: all pointers are valid.
        let result = unsafe { rp_client_connect(self.address.as_ptr(), &config, &mut client) };
        self.handles.extend((result == 0).then_some(client));
        result
    }

    fn open_announcer(&mut self) -> i32 {
        let name = self.text();
        let id = self.text();
        let config = rp_announcer_config {
            port: u32::from(self.byte()) * 300,
            transport: (self.byte() % 3).into(),
            name: pointer(&name),
            // A port that nothing listens on.
            lobbies: c"127.0.0.1:9".as_ptr(),
            lobby_id: pointer(&id),
            ..rp_announcer_config::zeroed()
        };
        let mut announcer = 0;
        // SAFETY: all pointers are valid or null.
        let result = unsafe { rp_announcer_start(&config, &mut announcer) };
        self.handles.extend((result == 0).then_some(announcer));
        result
    }

    fn open_scan(&mut self) -> i32 {
        // Reading names of hosts from the input would query name servers.
        let target =
            if self.byte().is_multiple_of(2) { self.address.clone() } else { c"lobby://127.0.0.1:9/gg2".into() };
        let config = rp_scan_config {
            detail: (self.byte() % 6).into(),
            timeout_ms: 5,
            ip_version: (self.byte() % 8).into(),
            ..rp_scan_config::zeroed()
        };
        let mut scan = 0;
        // SAFETY: all pointers are valid.
        let result = unsafe { rp_scan_start(target.as_ptr(), &config, &mut scan) };
        self.handles.extend((result == 0).then_some(scan));
        result
    }

    fn close(&mut self, handle: u64) -> i32 {
        let results =
            [rp_client_close(handle), rp_server_close(handle), rp_announcer_close(handle), rp_scan_close(handle)];
        let closed = results.iter().filter(|result| **result == 0).count();
        assert!(closed <= 1 && (closed == 0 || !self.closed.contains(&handle)), "closed twice: {handle:x}");
        if closed == 1 {
            self.handles.retain(|open| *open != handle);
            self.closed.push(handle);
        }
        results.into_iter().max().unwrap_or(0)
    }

    fn call(&mut self, function: u8) -> i32 {
        // SAFETY: pointers are null, or point to buffers of the length that is passed.
        unsafe {
            match function % 29 {
                0 if self.handles.len() < 8 => self.open_client(),
                1 if self.handles.len() < 8 => self.open_server(),
                2 if self.handles.len() < 8 => self.open_announcer(),
                3 if self.handles.len() < 8 => self.open_scan(),
                4 => {
                    let handle = self.handle();
                    self.close(handle)
                }
                5..=8 => {
                    for handle in self.handles.clone() {
                        let results = [rp_client_poll(handle), rp_server_poll(handle), rp_announcer_poll(handle)];
                        assert!(!results.contains(&RP_ERROR_PANIC));
                    }
                    0
                }
                9 | 10 => {
                    let handle = self.handle();
                    let player = self.player();
                    let length = usize::from(self.byte()) * 3;
                    let message = vec![7; length];
                    let data = if length == 3 { null() } else { message.as_ptr() };
                    rp_client_send(handle, data, length).max(rp_server_send(handle, player, data, length))
                }
                11 | 12 => self.take_event(),
                13 => {
                    let handle = self.handle();
                    let player = self.player();
                    let reason = self.text();
                    rp_server_disconnect(handle, player, pointer(&reason))
                }
                14 => rp_client_disconnect(self.handle()),
                15 => {
                    let handle = self.handle();
                    let player = self.player();
                    let mut stats = rp_stats { size: self.byte().into(), ..rp_stats::default() };
                    // A structure is never larger than it says.
                    stats.size = stats.size.min(size_of::<rp_stats>() as u32);
                    rp_client_stats(handle, &mut stats).max(rp_server_stats(handle, player, &mut stats))
                }
                16 => {
                    let handle = self.handle();
                    let index = self.byte().into();
                    let player = self.player();
                    self.with_buffer(|buffer, capacity| {
                        let local = rp_server_local_address(handle, index, buffer.cast(), capacity);
                        local.max(rp_server_player_address(handle, player, buffer.cast(), capacity))
                    })
                }
                17 => {
                    let handle = self.handle();
                    let key = self.text();
                    let length = usize::from(self.byte()) * 20;
                    let value = vec![b'v'; length];
                    rp_announcer_set_key(handle, pointer(&key), value.as_ptr(), length)
                }
                18 => {
                    let handle = self.handle();
                    let slots = u32::from(self.byte()) << 10;
                    rp_announcer_set_occupancy(handle, slots, 1, 2, 3)
                }
                19 => {
                    let handle = self.handle();
                    self.with_buffer(|buffer, capacity| rp_announcer_next_event(handle, buffer.cast(), capacity))
                }
                20 => self.take_record(),
                21 => {
                    let handle = self.handle();
                    rp_client_wait(handle, 0).max(rp_server_wait(handle, 0))
                }
                22 => {
                    let handle = self.handle();
                    rp_client_state(handle).max(rp_client_is_delivered(handle)).max(rp_client_flush(handle))
                }
                23 => self.set_info(),
                28 => self.call_gamemaker(),
                24 | 25 => {
                    let handle = self.handle();
                    let player = self.player();
                    let channel = (self.byte() % 40).into();
                    let message = vec![7; usize::from(self.byte()) * 20];
                    let data = message.as_ptr();
                    let length = message.len();
                    let mut number = 0;
                    let client = rp_client_send_on(handle, channel, data, length, &mut number);
                    let server = rp_server_send_on(handle, player, channel, data, length, null_mut());
                    client.max(server).max(rp_server_broadcast(handle, channel, data, length))
                }
                26 => {
                    let handle = self.handle();
                    let player = self.player();
                    let accepted = rp_server_accept(handle, player);
                    accepted.max(
                        self.with_buffer(|buffer, capacity| rp_server_token_data(handle, player, buffer, capacity)),
                    )
                }
                _ => {
                    let name = self.text();
                    let length = usize::from(self.byte());
                    let key = [7; RP_KEY_LENGTH];
                    let data = [1; 256];
                    self.with_buffer(|buffer, capacity| {
                        let secret = key.as_ptr();
                        let server = key.as_ptr();
                        rp_token_issue(secret, server, pointer(&name), 9, data.as_ptr(), length, buffer, capacity)
                    })
                }
            }
        }
    }

    /// A double with any bits, or a small number.
    fn double(&mut self) -> f64 {
        match self.byte() {
            0..128 => f64::from(self.byte()),
            _ => f64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    /// The layer for GameMaker, with any numbers.
    fn call_gamemaker(&mut self) -> i32 {
        let object = if self.byte() < 200 { self.handle() as f64 } else { self.double() };
        let number = self.double();
        let text = self.text();
        let function = self.byte();
        let mut buffer = [0_u8; 256];
        // SAFETY: texts are null or zero-terminated, and a length is at most that of the buffer, or is refused.
        let result = unsafe {
            match function % 13 {
                0 => rpgm_handle_io(),
                1 => rpgm_next_event(object),
                2 => rpgm_send_text(object, number, pointer(&text)),
                3 => rpgm_write_byte(number),
                4 => rpgm_send_written(object, number),
                5 => rpgm_state(object),
                6 => rpgm_set_occupancy(object, number, number, number, number),
                7 => rpgm_event_byte(number),
                8 if !(256.0..=1e10).contains(&number) => {
                    rpgm_send_buffer(object, number, buffer.as_ptr().cast(), number)
                        .min(rpgm_event_copy(buffer.as_mut_ptr().cast(), number))
                }
                9 => rpgm_set_channel(number),
                10 => rpgm_event_channel(),
                11 => {
                    let server = c"127.0.0.1:9".as_ptr();
                    let client = rpgm_connect_channels(server, c"a".as_ptr(), c"tag".as_ptr(), pointer(&text));
                    if client > 0.0 { rpgm_close(client) } else { client }
                }
                _ => rpgm_scan_number(pointer(&text)),
            }
        };
        assert!(!result.is_nan());
        result as i32
    }

    unsafe fn take_event(&mut self) -> i32 {
        let handle = self.handle();
        let mut event = rp_event::default();
        let out: *mut rp_event = if self.byte() == 255 { null_mut() } else { &mut event };
        // SAFETY: pointers are null, or point to buffers of the length that is passed.
        let result = self.with_buffer(|buffer, capacity| unsafe {
            let client = rp_client_next_event(handle, out, buffer, capacity);
            client.max(rp_server_next_event(handle, out, buffer, capacity))
        });
        let is_player = matches!(event.kind, RP_EVENT_CONNECTED | RP_EVENT_LOGIN_REQUEST);
        if result == 1 && is_player && event.player != 0 && !self.players.contains(&event.player) {
            self.players.push(event.player);
        }
        result
    }

    unsafe fn take_record(&mut self) -> i32 {
        let handle = self.handle();
        let mut record = std::mem::MaybeUninit::<rp_scan_record>::zeroed();
        // SAFETY: the structure consists of integers and pointers.
        let record = unsafe { record.assume_init_mut() };
        record.size = size_of::<rp_scan_record>() as u32;
        let out: *mut rp_scan_record = if self.byte() == 255 { null_mut() } else { record };
        // SAFETY: pointers are null, or point to buffers of the length that is passed.
        self.with_buffer(|buffer, capacity| unsafe { rp_scan_next(handle, out, buffer.cast(), capacity, 1) })
    }

    unsafe fn set_info(&mut self) -> i32 {
        let handle = self.handle();
        let texts = [self.text(), self.text()];
        let info = rp_server_info {
            size: size_of::<rp_server_info>() as u32,
            players: i32::from(self.byte()) - 2,
            max_players: i32::from(self.byte()) << 10,
            bots: -1,
            password: 0,
            reserved: 0,
            name: pointer(&texts[0]),
            game: pointer(&texts[1]),
            mode: null(),
            map: null(),
            player_names: pointer(&texts[1]),
        };
        // SAFETY: all pointers are valid or null.
        unsafe { rp_server_set_info(handle, &info) }
    }

    /// Calls a function with a buffer whose length the script chooses, or none, and checks that nothing behind it is written.
    fn with_buffer(&mut self, call: impl FnOnce(*mut u8, usize) -> i32) -> i32 {
        let capacity = usize::from(self.byte()) * 4;
        if capacity == 4 {
            return call(null_mut(), capacity);
        }
        let mut buffer = vec![0; capacity];
        buffer.extend_from_slice(&GUARD);
        let result = call(buffer.as_mut_ptr(), capacity);
        assert_eq!(buffer[capacity..], GUARD, "written beyond the buffer");
        result
    }
}

fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(null(), |text| text.as_ptr())
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn no_script_of_calls_breaks_the_interface(script in vec(any::<u8>(), 0..600)) {
            super::run(&script);
        }
    }
}
