//! Whether the machine has the memory that a run needs.

use std::path::Path;

use crate::process::Memory;
use crate::{Parameters, Refusal};

/// Refuses a run whose blocks and arrays alone need more memory than is free now.
///
/// # Errors
/// [`Refusal::Contradiction`] with both sizes.
pub fn fits(parameters: &Parameters) -> Result<(), Refusal> {
    fits_in(parameters, available())
}

fn fits_in(parameters: &Parameters, available: Option<u64>) -> Result<(), Refusal> {
    let needed = (parameters.description().needs)(parameters);
    compare(parameters, needed, available)
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
        _ if bytes >> 30 > 0 => format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64),
        _ => format!("{:.1} MiB", bytes as f64 / (1_u64 << 20) as f64),
    }
}

/// The same for a run that needs so many bytes, whatever its description says.
///
/// # Errors
/// As for [`fits`].
pub fn fits_bytes(parameters: &Parameters, needed: u64) -> Result<(), Refusal> {
    compare(parameters, needed, available())
}

/// The memory that is free to this process: the machine's, or less in a control group with a
/// limit, or under a limit of address space.
pub(crate) fn available() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| field(&text, "MemAvailable:"));
    let machine = machine.map(|kibibytes| kibibytes.saturating_mul(1024));
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let [one, two] = groups_of(&groups).map(|group| {
        let (root, path) = group?;
        group_room(Path::new(root), path)
    });
    let limits = [machine, one, two, address_room()];
    limits.into_iter().flatten().min()
}

/// Where the limits of this process's groups are: of the second version of control groups, and of
/// the first, which has a tree of its own for memory.
fn groups_of(text: &str) -> [Option<(&'static str, &str)>; 2] {
    let unified = text.lines().find_map(|line| line.strip_prefix("0::/"));
    let memory = text.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(":/")?;
        controllers
            .split(',')
            .any(|one| one == "memory")
            .then_some(path)
    });
    [
        unified.map(|path| ("/sys/fs/cgroup", path)),
        memory.map(|path| ("/sys/fs/cgroup/memory", path)),
    ]
}

/// What a limit of address space (`ulimit -v`) leaves.
fn address_room() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a place for the answer.
    let error = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    match error == 0 && limit.rlim_cur != libc::RLIM_INFINITY {
        true => Some(limit.rlim_cur.saturating_sub(Memory::read().mapped)),
        false => None,
    }
}

/// The least room below any limit from the group up to the root.
fn group_room(root: &Path, path: &str) -> Option<u64> {
    let folder = root.join(path);
    let groups = folder.ancestors().take_while(|one| one.starts_with(root));
    groups.filter_map(room_of_group).min()
}

fn room_of_group(folder: &Path) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    // The names of the second version, then those of the first.
    let either = |two, one| read(two).or_else(|| read(one));
    let limit = either("memory.max", "memory.limit_in_bytes")?;
    let used = either("memory.current", "memory.usage_in_bytes")?;
    let (limit, used): (u64, u64) = (limit.trim().parse().ok()?, used.trim().parse().ok()?);
    let cached = read("memory.stat").and_then(|text| {
        let with_descendants = field(&text, "total_inactive_file ");
        with_descendants.or_else(|| field(&text, "inactive_file "))
    });
    Some(limit.saturating_sub(used.saturating_sub(cached.unwrap_or(0))))
}

/// The number after `name` at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read() {
        let text = "MemTotal: 10 kB\nMemAvailable:   7 kB\n";
        assert_eq!(field(text, "MemAvailable:"), Some(7));
        assert_eq!(field(text, "SwapFree:"), None);
        assert!(available().is_some());
    }

    #[test]
    fn the_tightest_group_counts() {
        let root = std::env::temp_dir().join(format!("heapdrome-room-{}", std::process::id()));
        let inner = root.join("outer/inner");
        std::fs::create_dir_all(&inner).unwrap();
        let write = |folder: &Path, name: &str, text: &str| {
            std::fs::write(folder.join(name), text).unwrap();
        };
        write(&inner, "memory.max", "max\n");
        write(&inner, "memory.current", "10\n");
        write(&root.join("outer"), "memory.max", "1000\n");
        write(&root.join("outer"), "memory.current", "900\n");
        write(
            &root.join("outer"),
            "memory.stat",
            "anon 1\ninactive_file 50\n",
        );
        let room = group_room(&root, "outer/inner");
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(room, Some(150));
    }

    #[test]
    fn the_first_version_of_groups_counts_too() {
        let root = std::env::temp_dir().join(format!("heapdrome-room1-{}", std::process::id()));
        let inner = root.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        let write = |name: &str, text: &str| std::fs::write(inner.join(name), text).unwrap();
        write("memory.limit_in_bytes", "1000\n");
        write("memory.usage_in_bytes", "700\n");
        write("memory.stat", "inactive_file 1\ntotal_inactive_file 90\n");
        // Where no limit is set, the first version shows a number that is beyond any memory.
        std::fs::write(root.join("memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        std::fs::write(root.join("memory.usage_in_bytes"), "9000\n").unwrap();
        let room = group_room(&root, "inner");
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(room, Some(390));
    }

    #[test]
    fn groups_of_both_versions_are_found() {
        let text = "9:name=systemd:/\n4:cpu,memory:/a/b\n0::/c\n";
        let found = groups_of(text);
        assert_eq!(found[0], Some(("/sys/fs/cgroup", "c")));
        assert_eq!(found[1], Some(("/sys/fs/cgroup/memory", "a/b")));
        assert_eq!(groups_of("9:name=memory:/x\n"), [None, None]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let description = crate::find("threadtest").unwrap();
        let parameters = Parameters::parse(description, &[""; 0]).unwrap();
        assert!(fits_in(&parameters, Some(1 << 40)).is_ok());
        assert!(fits_in(&parameters, None).is_ok());
        let refused = fits_in(&parameters, Some(1000)).unwrap_err().to_string();
        assert!(refused.contains("are free"), "{refused}");
    }
}
