//! Checks the modules and stacks of a trace.

use crate::error::Damage;
use crate::records::{Record, Stack};

/// Number of modules and of stacks so far. They are numbered in the order of their records, so a
/// count suffices to check references to them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    modules: u32,
    pub stacks: u32,
}

impl Known {
    /// Checks and counts a module or a stack. Accepts every other record.
    pub(crate) fn add(&mut self, record: &Record) -> Result<(), Damage> {
        match record {
            Record::Module(module) => count(&mut self.modules, module.module),
            Record::Stack(stack) => {
                if stack.frames.len() > Stack::MAX_FRAMES {
                    return Err(Damage::Length(stack.frames.len() as u64));
                }
                let mut modules = stack.frames.iter().filter_map(|frame| frame.module);
                if modules.any(|module| module >= self.modules) {
                    return Err(Damage::Reference);
                }
                count(&mut self.stacks, stack.stack)
            }
            _ => Ok(()),
        }
    }
}

fn count(known: &mut u32, number: u32) -> Result<(), Damage> {
    if number != *known {
        return Err(Damage::Reference);
    }
    *known = known.checked_add(1).ok_or(Damage::Number)?;
    Ok(())
}
