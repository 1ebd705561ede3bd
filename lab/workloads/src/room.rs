//! Checks whether the machine has the memory that a run needs.

use heapdrome_schema::Bytes;
use heapdrome_system::room;

use crate::{Parameters, Refusal};

/// Refuses a run whose blocks and arrays alone need more memory than is available.
///
/// # Errors
/// [`Refusal::Contradiction`] with both sizes.
pub fn fits(parameters: &Parameters) -> Result<(), Refusal> {
    fits_bytes(parameters, (parameters.description().needs)(parameters))
}

fn compare(parameters: &Parameters, needed: u64, available: Option<u64>) -> Result<(), Refusal> {
    match available {
        Some(available) if needed > available => Err(Refusal::Contradiction {
            workload: parameters.description().name,
            reason: format!(
                "these parameters need about {} of memory at the peak, and {} are free; take \
                 smaller ones",
                amount(needed),
                amount(available)
            ),
        }),
        _ => Ok(()),
    }
}

fn amount(bytes: u64) -> String {
    match bytes {
        u64::MAX => "more than 16 EiB".to_owned(),
        _ => Bytes(bytes).to_string(),
    }
}

/// Checks whether a run that needs `needed` bytes fits, regardless of the estimate in the
/// workload's description.
///
/// # Errors
/// Returns the errors of [`fits`].
pub fn fits_bytes(parameters: &Parameters, needed: u64) -> Result<(), Refusal> {
    compare(parameters, needed, available())
}

/// Returns the number of bytes of memory available to this process; `None` if it is unknown.
pub(crate) fn available() -> Option<u64> {
    room::available().map(|room| room.bytes.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused() {
        let description = crate::find("threadtest").unwrap();
        let parameters = Parameters::parse(description, &[""; 0]).unwrap();
        let needed = (description.needs)(&parameters);
        assert!(compare(&parameters, needed, Some(1 << 40)).is_ok());
        assert!(compare(&parameters, needed, None).is_ok());
        let refused = compare(&parameters, needed, Some(1000)).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("are free"), "{refused}");
    }
}
