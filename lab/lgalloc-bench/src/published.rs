//! lgalloc 0.7.0 as published, which the document measured. `Cargo.lock` pins the crate by its
//! checksum.

use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::time::Duration;

use heapdrome_schema::Holder;
use lgalloc_published::{
    BackgroundWorkerConfig, LgAlloc, allocate, deallocate, lgalloc_set_config,
};

use crate::failure::Failure;

/// Handle of a region of the published crate, with an implementation of `Debug`.
pub struct Handle(lgalloc_published::Handle);

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a handle of the published lgalloc")
    }
}

/// Enables the crate, which is disabled by default. Only the first call has an effect, so the first
/// holder determines the settings of the process.
fn enable(holder: Holder) {
    static ENABLED: OnceLock<()> = OnceLock::new();
    ENABLED.get_or_init(|| {
        let mut config = LgAlloc::new();
        config.enable();
        if holder == Holder::PublishedWorker {
            // The crate's own benchmark uses these settings.
            config.with_background_config(BackgroundWorkerConfig {
                interval: Duration::from_millis(100),
                clear_bytes: 64 << 20,
            });
        }
        lgalloc_set_config(&config);
    });
}

/// Takes a region of `bytes` bytes.
pub fn take(holder: Holder, bytes: usize) -> Result<(NonNull<u8>, Handle), Failure> {
    enable(holder);
    let (start, _, handle) = allocate::<u8>(bytes)?;
    Ok((start, Handle(handle)))
}

/// Takes and frees a region of `bytes` bytes, `times` times in a row.
pub fn take_and_return(holder: Holder, bytes: usize, times: u64) -> Result<(), Failure> {
    enable(holder);
    (0..times).try_for_each(|_| {
        let (_, _, handle) = allocate::<u8>(bytes)?;
        deallocate(black_box(handle));
        Ok(())
    })
}

/// Returns a region to the crate.
pub fn put(handle: Handle) {
    deallocate(handle.0);
}
