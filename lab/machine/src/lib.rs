//! Description of the machine, and the conditions that could distort a measurement.
//!
//! This crate changes nothing on the machine. It reports unreadable values as such and never
//! guesses them. A missing file of `/proc` or `/sys` is not an error, because containers hide many
//! of them.

mod activity;
mod cgroup;
mod faults;
mod kernel;
mod memory;
mod processor;
mod system;
mod tell;
mod topology;

pub use topology::processors_in_order;

use heapdrome_schema::{Condition, Level, Machine};

/// Describes the machine. The warnings among its conditions become remarks.
///
/// Observes the machine for about half a second.
pub fn describe() -> Machine {
    describe_with(&examine())
}

/// Describes the machine. The warnings among `conditions`, which [`examine`] returned, become
/// remarks.
pub fn describe_with(conditions: &[Condition]) -> Machine {
    let text = |path: &str| tell::read(path).unwrap_or_default();
    let os_release = tell::read("/etc/os-release").or_else(|| tell::read("/usr/lib/os-release"));
    let distribution = os_release.as_deref().and_then(kernel::distribution);
    Machine {
        processor: processor::name(&text("/proc/cpuinfo")),
        processors: system::usable_processors(),
        memory_bytes: memory::total(&text("/proc/meminfo")),
        kernel: format!("Linux {}", system::kernel_release()),
        libc: system::c_library(),
        distribution: distribution.unwrap_or_default(),
        fault_s: faults::cost(),
        remarks: remarks(conditions),
    }
}

/// Returns the warnings, one line each.
fn remarks(conditions: &[Condition]) -> Vec<String> {
    let warnings = conditions
        .iter()
        .filter(|condition| condition.level == Level::Warning);
    let told = |condition: &Condition| {
        format!(
            "{}: {} ({})",
            condition.name, condition.value, condition.meaning
        )
    };
    warnings.map(told).collect()
}

/// Checks the conditions that could distort a measurement. Takes about half a second.
pub fn examine() -> Vec<Condition> {
    let here = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let temporary = std::env::temp_dir();
    let mut conditions = activity::examine();
    conditions.extend(processor::examine());
    conditions.extend(memory::examine());
    conditions.extend(cgroup::examine());
    conditions.extend(kernel::examine());
    conditions.push(memory::free_disk("this folder", system::free_bytes(&here)));
    conditions.push(memory::free_disk(
        "temporary folder",
        system::free_bytes(&temporary),
    ));
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_says_what_it_means_and_warnings_how_to_mend_them() {
        let conditions = examine();
        assert!(conditions.len() >= 20, "{}", conditions.len());
        for condition in &conditions {
            assert!(!condition.value.is_empty(), "{}", condition.name);
            assert!(!condition.meaning.is_empty(), "{}", condition.name);
            let has_fix = condition.level != Level::Warning || condition.fix.is_some();
            assert!(has_fix, "{}", condition.name);
        }
        let mut names: Vec<_> = conditions.iter().map(|condition| &condition.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), conditions.len(), "a name is used twice");
    }

    #[test]
    fn remarks_are_the_warnings_only() {
        let swap = tell::warning("swap", "in use", "it costs time", "swapoff -a");
        let kernel = tell::good("kernel", "6.1", "it is new");
        assert_eq!(remarks(&[swap, kernel]), ["swap: in use (it costs time)"]);
    }

    #[test]
    fn the_machine_is_described() {
        let machine = describe_with(&[]);
        assert!(machine.processors >= 1);
        assert!(machine.kernel.starts_with("Linux "));
        assert!(machine.remarks.is_empty());
    }
}
