//! Entrants of a race.

use heapdrome_schema::{Entrant, Role};

use super::as_is::twin_name;
use crate::allocators::Names;
use crate::engine::Engine;
use crate::failure::Failure;

/// Returns the baseline, its twin and the rivals, with notes on the allocators that are left out.
/// Missing allocators are built. A group member that cannot be built is left out.
///
/// # Errors
/// When a name is unknown, the baseline is `as-is`, an allocator requested by its own name cannot
/// be built, or only the baseline would race. Also when the user interrupts.
pub fn entrants(
    allocators: &[String],
    baseline: &str,
    engine: &Engine,
) -> Result<(Vec<Entrant>, Vec<String>), Failure> {
    if baseline == Entrant::AS_IS {
        return Err(Failure::usage(
            "as-is is the baseline wherever the command chooses an allocator itself; leave out \
             --baseline",
        ));
    }
    let registry = engine.registry()?;
    let known = Names::new(&registry, engine);
    let first = known.ready(baseline)?;
    let rivals = known.ready_all(allocators, Some(baseline))?;
    let twin = twin_name(&first.name);
    let mut entrants = vec![
        Entrant {
            role: Role::Baseline,
            ..first.clone()
        },
        Entrant {
            role: Role::Twin,
            name: twin,
            ..first
        },
    ];
    entrants.extend(rivals.entrants);
    if entrants.len() == 2 {
        return Err(Failure::Usage(format!(
            "only the baseline {baseline} would race; name another allocator with -a"
        )));
    }
    Ok((entrants, rivals.notes))
}
