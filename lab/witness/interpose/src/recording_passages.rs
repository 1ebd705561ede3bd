//! Passages: the code that calls run through if every call is recorded. Calls whose stack may be
//! recorded run through [`crate::passages`] instead.
//!
//! A timed call runs through the same code, with readings of the processor's counter before and
//! after it.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64::{first, first_times_second, second, second_times_third, third};
#[cfg(target_arch = "x86_64")]
use x86_64::{first, first_times_second, second, second_times_third, third};

use crate::calls::Size;

#[cfg(target_arch = "aarch64")]
pub use aarch64::record_free;
#[cfg(target_arch = "x86_64")]
pub use x86_64::record_free;

/// Returns the passage of a function whose arguments contain the requested bytes as `size`
/// describes. An entry point jumps to the passage with its slot in r11 or x16.
pub fn recording_of(size: Size) -> usize {
    let passage: unsafe extern "C" fn() = match size {
        Size::First => first,
        Size::Second => second,
        Size::Third => third,
        Size::FirstTimesSecond => first_times_second,
        Size::SecondTimesThird => second_times_third,
    };
    passage as *const () as usize
}
