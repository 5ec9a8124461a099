//! The memory of this machine.

use std::fs;

/// Maximum of the default memory cap, in bytes.
const MAX_DEFAULT: usize = 2 << 30;

/// Minimum of the default memory cap, in bytes.
const MIN_DEFAULT: usize = 16 << 20;

/// The default of [`Caps::memory`](rallypoint_lobby_proto::Caps::memory) on this machine: a quarter of the memory that this
/// process can use in whole MiB, at most 2 GiB.
#[must_use]
pub fn default_memory_cap() -> usize {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    // The limit of a container or a systemd unit, seen from inside.
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    cap([machine, group].into_iter().flatten().min())
}

fn cap(memory: Option<usize>) -> usize {
    memory.map_or(MAX_DEFAULT, |memory| (memory / 4).clamp(MIN_DEFAULT, MAX_DEFAULT) >> 20 << 20)
}

/// The memory of the machine according to `/proc/meminfo`, in bytes.
fn total(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_cap_is_a_quarter_of_the_memory_and_at_most_2_gib() {
        assert_eq!(total("MemTotal:        1024000 kB\nMemFree: 1 kB\n"), Some(1_048_576_000));
        assert_eq!(total("nothing"), None);
        assert_eq!(cap(Some(1_048_576_000)), 262_144_000);
        assert_eq!(cap(Some(64 << 30)), 2 << 30);
        assert_eq!(cap(Some(1)), 16 << 20);
        assert_eq!(cap(None), 2 << 30);
        assert!((16 << 20..=2 << 30).contains(&default_memory_cap()));
    }
}
