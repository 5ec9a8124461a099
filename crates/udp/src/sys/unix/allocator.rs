//! Settings of the C library's allocator, which is the global allocator.

/// Number of arenas. Threads that allocate at the same time can use one each; every one of them keeps freed memory for itself.
#[cfg(target_env = "gnu")]
const ARENAS: libc::c_int = 2;

/// Minimum size in bytes of an allocation with a mapping of its own, which is returned to the system when it is freed. Without
/// this setting the allocator raises it to 32 MB as soon as large blocks are freed, and list replies leave gaps in the heap.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: libc::c_int = 128 * 1_024;

/// Makes the allocator return freed memory to the system: a service that runs for months and rebuilds large replies all the time
/// would otherwise keep several times what it uses. To be called once, before other threads are started. It has an effect with
/// glibc only.
pub fn bound_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets two numbers of the allocator, which accepts any value.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
    }
}

/// Returns free memory within the heap to the system. Data of many servers that is replaced all the time leaves gaps, of which the
/// allocator itself returns only those at the end of the heap. It takes up to a tenth of a second per gigabyte, in which other
/// threads wait if they allocate. It has an effect with glibc only.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it may be called at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
