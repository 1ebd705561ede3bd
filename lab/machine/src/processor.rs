//! Properties of the processor: name, speed, and sharing with other programs and machines.

use std::collections::BTreeSet;

use heapdrome_schema::Condition;

use crate::tell::{good, note, read, unreadable, warning};

/// Returns the processor's name from the text of `/proc/cpuinfo` on x86 or ARM, or `unknown`.
pub(crate) fn name(cpuinfo: &str) -> String {
    let field = |key: &str| {
        let named = cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key && !value.trim().is_empty()).then(|| value.trim().to_owned())
        });
        named.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let arm = || {
        let (implementer, part) = (field("CPU implementer")?, field("CPU part")?);
        Some(match arm_name(&implementer, &part) {
            Some(name) => name.to_owned(),
            None => format!("ARM implementer {implementer} part {part}"),
        })
    };
    field("model name")
        .or_else(arm)
        .or_else(|| field("Hardware"))
        .unwrap_or_else(|| "unknown".into())
}

/// Returns the name of a common ARM core, which the kernel identifies only by numbers.
fn arm_name(implementer: &str, part: &str) -> Option<&'static str> {
    Some(match (implementer, part) {
        ("0x41", "0xd08") => "ARM Cortex-A72",
        ("0x41", "0xd0b") => "ARM Cortex-A76",
        ("0x41", "0xd0c") => "ARM Neoverse N1",
        ("0x41", "0xd40") => "ARM Neoverse V1",
        ("0x41", "0xd49") => "ARM Neoverse N2",
        ("0x41", "0xd4f") => "ARM Neoverse V2",
        _ => return None,
    })
}

/// Returns whether the processor's flags show a hypervisor, or `None` if there are no flags.
pub(crate) fn hypervisor_flag(cpuinfo: &str) -> Option<bool> {
    let flags = cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "flags").then_some(value)
    })?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// Returns the number of processors in a list such as `0-3,8`; `None` if the list is malformed.
pub(crate) fn list_length(list: &str) -> Option<usize> {
    let parts = list
        .trim()
        .split(',')
        .map(|part| match part.split_once('-') {
            None => part.trim().parse::<usize>().ok().map(|_| 1),
            Some((first, last)) => {
                let [first, last] = [first, last].map(|end| end.trim().parse::<usize>().ok());
                last?.checked_sub(first?)?.checked_add(1)
            }
        });
    parts.sum()
}

/// Returns all conditions of the processor that require no observation over time.
pub(crate) fn examine() -> Vec<Condition> {
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let vendor =
        ["sys_vendor", "product_name"].map(|file| read(&format!("/sys/class/dmi/id/{file}")));
    vec![
        governor(&of_each_processor("cpufreq/scaling_governor")),
        boost(
            read("/sys/devices/system/cpu/cpufreq/boost").as_deref(),
            read("/sys/devices/system/cpu/intel_pstate/no_turbo").as_deref(),
        ),
        smt(read("/sys/devices/system/cpu/smt/active").as_deref()),
        affinity(
            crate::system::usable_processors(),
            read("/sys/devices/system/cpu/online")
                .as_deref()
                .and_then(list_length),
        ),
        virtual_machine(
            hypervisor_flag(&cpuinfo),
            &vendor.into_iter().flatten().collect::<Vec<_>>().join(" "),
        ),
    ]
}

/// Reads `file` from each processor's folder; skips unreadable files.
pub(crate) fn of_each_processor(file: &str) -> Vec<String> {
    let Ok(folder) = std::fs::read_dir("/sys/devices/system/cpu") else {
        return Vec::new();
    };
    let processors = folder.filter_map(|entry| {
        let name = entry.ok()?.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("cpu")?;
        let is_processor = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_processor
            .then(|| read(&format!("/sys/devices/system/cpu/{name}/{file}")))
            .flatten()
    });
    processors.collect()
}

/// Checks the kernel's policy for the processor's frequency.
fn governor(governors: &[String]) -> Condition {
    const NAME: &str = "frequency governor";
    const MEANING: &str = "a frequency that follows the load slows short runs and scatters times";
    let kinds: BTreeSet<_> = governors.iter().map(String::as_str).collect();
    let value = kinds.iter().copied().collect::<Vec<_>>().join(", ");
    if kinds.is_empty() {
        let path = "cpufreq/scaling_governor; a hypervisor or the firmware chooses the frequency";
        return unreadable(NAME, path, MEANING);
    }
    if kinds.iter().all(|kind| *kind == "performance") {
        return good(NAME, value, MEANING);
    }
    let fix = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    warning(NAME, value, MEANING, fix)
}

/// Checks whether the processor may temporarily exceed its nominal frequency.
fn boost(boost: Option<&str>, no_turbo: Option<&str>) -> Condition {
    const NAME: &str = "frequency boost";
    const MEANING: &str = "the speed then depends on temperature and on how many cores are busy";
    let (on, fix) = match (boost, no_turbo) {
        (Some(value), _) => (
            value == "1",
            "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost",
        ),
        (None, Some(value)) => (
            value == "0",
            "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
        ),
        (None, None) => return unreadable(NAME, "cpufreq/boost, intel_pstate/no_turbo", MEANING),
    };
    if on {
        note(NAME, "on", MEANING, Some(fix))
    } else {
        good(NAME, "off", MEANING)
    }
}

/// Checks whether two hardware threads share a core.
fn smt(active: Option<&str>) -> Condition {
    const NAME: &str = "threads of a core (SMT)";
    const MEANING: &str =
        "two busy threads on one core slow each other, depending on chance placement";
    let fix = "echo off | sudo tee /sys/devices/system/cpu/smt/control";
    match active {
        Some("0") => good(NAME, "one each, or not shown to this machine", MEANING),
        Some(_) => note(NAME, "on", MEANING, Some(fix)),
        None => unreadable(NAME, "/sys/devices/system/cpu/smt/active", MEANING),
    }
}

/// Checks whether this process may use all processors.
fn affinity(usable: usize, online: Option<usize>) -> Condition {
    const NAME: &str = "processors";
    const MEANING: &str = "allocators size their pools by the number of processors they see";
    match online {
        None => unreadable(NAME, "/sys/devices/system/cpu/online", MEANING),
        Some(online) if usable < online => {
            let value = format!("{usable} of {online} usable");
            note(
                NAME,
                value,
                MEANING,
                Some("taskset -cp 0-$(($(nproc --all) - 1)) $$"),
            )
        }
        Some(online) => good(NAME, format!("{online}, all usable"), MEANING),
    }
}

/// Checks whether this is a virtual machine.
fn virtual_machine(flag: Option<bool>, vendor: &str) -> Condition {
    const NAME: &str = "virtual machine";
    const MEANING: &str = "other machines on the same host disturb runs invisibly; steal time shows only a part of it";
    let known = [
        "QEMU",
        "KVM",
        "VMware",
        "VirtualBox",
        "Xen",
        "Amazon EC2",
        "Google Compute",
        "Virtual Machine",
    ];
    let named = known.iter().any(|name| vendor.contains(name));
    let label = if vendor.is_empty() {
        String::new()
    } else {
        format!(" ({vendor})")
    };
    match flag {
        Some(true) => note(NAME, format!("yes{label}"), MEANING, None),
        _ if named => note(NAME, format!("yes{label}"), MEANING, None),
        Some(false) => good(NAME, "no", MEANING),
        None if !vendor.is_empty() => good(NAME, format!("no sign of one{label}"), MEANING),
        None => unreadable(NAME, "processor flags and /sys/class/dmi", MEANING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_schema::Level;

    const AMD: &str = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7763 64-Core Processor\nflags\t\t: fpu vme hypervisor lahf_lm\n";
    const INTEL: &str =
        "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)  CPU @ 2.20GHz\nflags\t\t: fpu vme\n";
    const ARM: &str = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n";

    #[test]
    fn processors_of_every_kind_have_a_name() {
        assert_eq!(name(AMD), "AMD EPYC 7763 64-Core Processor");
        assert_eq!(name(INTEL), "Intel(R) Xeon(R) CPU @ 2.20GHz");
        assert_eq!(name(ARM), "ARM Neoverse N1");
        assert_eq!(
            name("CPU implementer : 0x99\nCPU part : 0x1\n"),
            "ARM implementer 0x99 part 0x1"
        );
        assert_eq!(name(""), "unknown");
    }

    #[test]
    fn the_hypervisor_flag_is_absent_on_arm_and_not_false() {
        assert_eq!(hypervisor_flag(AMD), Some(true));
        assert_eq!(hypervisor_flag(INTEL), Some(false));
        assert_eq!(hypervisor_flag(ARM), None);
        assert_eq!(virtual_machine(None, "").level, Level::Note);
        assert_eq!(
            virtual_machine(None, "Amazon EC2 m7g.large").value,
            "yes (Amazon EC2 m7g.large)"
        );
    }

    #[test]
    fn lists_of_processors_are_counted() {
        assert_eq!(list_length("0-3,8"), Some(5));
        assert_eq!(list_length("0"), Some(1));
        assert_eq!(list_length("3-1"), None);
        assert_eq!(list_length("x"), None);
    }

    #[test]
    fn one_processor_with_another_governor_is_enough_for_a_warning() {
        let governors = ["performance", "schedutil"].map(str::to_owned);
        assert_eq!(governor(&governors).level, Level::Warning);
        assert_eq!(governor(&governors[..1]).level, Level::Good);
        assert!(governor(&[]).value.starts_with("not readable here"));
    }

    #[test]
    fn turbo_is_told_by_either_driver() {
        assert_eq!(boost(Some("1"), None).value, "on");
        assert_eq!(boost(None, Some("0")).value, "on");
        assert_eq!(boost(None, Some("1")).value, "off");
    }

    #[test]
    fn a_process_bound_to_some_processors_is_told() {
        assert_eq!(affinity(2, Some(8)).value, "2 of 8 usable");
        assert_eq!(affinity(8, Some(8)).level, Level::Good);
    }
}
