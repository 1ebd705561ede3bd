//! Environment of commands. It is equal for all runs, except for each entrant's own variables and
//! the padding of each run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use heapdrome_schema::{Entrant, Plan, merged_setting};

/// Name of a variable of varying length. It varies the layout of the stack from run to run, so that
/// no entrant profits from one layout.
pub const PAD: &str = "HEAPDROME_PAD";

/// Exclusive upper limit of the length of [`PAD`]'s value.
pub const PAD_LIMIT: u32 = 4096;

/// Names of variables that commands do not inherit: those that choose or tune an allocator, and
/// [`PAD`].
const REMOVED_NAMES: [&str; 10] = [
    "LD_PRELOAD",
    "GLIBC_TUNABLES",
    "SCUDO_OPTIONS",
    "HEAPPROFILE",
    "HEAPCHECK",
    "PERFTOOLS_VERBOSE",
    "JE_MALLOC_CONF",
    "_RJEM_MALLOC_CONF",
    "PREFIX_MALLOC_CONF",
    PAD,
];

/// Prefixes of the names of variables that choose or tune an allocator.
const REMOVED_PREFIXES: [&str; 10] = [
    "MALLOC_",
    "MIMALLOC_",
    "TCMALLOC_",
    "JEMALLOC_",
    "SNMALLOC_",
    "RPMALLOC_",
    "HOARD_",
    "TBB_MALLOC_",
    "ISO_ALLOC_",
    "MESH_",
];

/// Environment of a command without an allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseEnvironment {
    /// Inherited variables and the plan's own variables.
    pub variables: BTreeMap<OsString, OsString>,
    /// Names of variables that are not inherited because they choose or tune an allocator,
    /// including `LD_PRELOAD`.
    pub removed: Vec<String>,
}

/// Returns the environment of a command without an allocator: heapdrome's own, without variables
/// that choose or tune an allocator, and with the plan's variables.
pub fn base_environment(plan: &Plan) -> BaseEnvironment {
    filtered(std::env::vars_os(), plan)
}

/// Returns the environment of a command under `entrant`, without the padding, which differs from
/// run to run.
///
/// If the plan's own environment sets `LD_PRELOAD`, its value follows the entrant's.
pub fn entrant_environment(
    base: &BaseEnvironment,
    entrant: &Entrant,
) -> BTreeMap<OsString, OsString> {
    let mut variables = base.variables.clone();
    for (name, value) in entrant.environment() {
        let given = variables.get(OsStr::new(&name)).and_then(|it| it.to_str());
        let mut value = OsString::from(merged_setting(&name, &value, given));
        if name == "LD_PRELOAD"
            && let Some(asked) = variables.get(OsStr::new("LD_PRELOAD"))
            && !asked.is_empty()
        {
            value.push(":");
            value.push(asked);
        }
        variables.insert(name.into(), value);
    }
    variables
}

/// Returns the environment of a command under `entrant` outside of any plan: heapdrome's own,
/// without variables that choose or tune an allocator, and with the entrant's variables.
pub fn command_environment(entrant: &Entrant) -> BTreeMap<OsString, OsString> {
    let inherited = std::env::vars_os().filter(|(name, _)| !is_removed(name));
    let own = entrant.environment().into_iter();
    let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    inherited.chain(own).collect()
}

fn filtered(inherited: impl Iterator<Item = (OsString, OsString)>, plan: &Plan) -> BaseEnvironment {
    let (removed, kept): (Vec<_>, Vec<_>) = inherited.partition(|(name, _)| is_removed(name));
    let mut removed: Vec<_> = removed
        .into_iter()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .filter(|name| name != PAD)
        .collect();
    removed.sort();
    let mut variables: BTreeMap<_, _> = kept.into_iter().collect();
    for (name, value) in &plan.options.environment {
        variables.insert(name.into(), value.into());
    }
    BaseEnvironment { variables, removed }
}

fn is_removed(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    REMOVED_NAMES.contains(&name.as_ref())
        || REMOVED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_for_tests::plan_of;

    fn os(text: &str) -> OsString {
        text.into()
    }

    #[test]
    fn inherited_allocator_settings_are_removed_and_named() {
        let inherited = [
            ("PATH", "/bin"),
            ("MALLOC_ARENA_MAX", "1"),
            ("LD_PRELOAD", "/x.so"),
            ("MIMALLOC_VERBOSE", "1"),
            ("HOME", "/home/x"),
        ];
        let inherited = inherited
            .into_iter()
            .map(|(name, value)| (os(name), os(value)));
        let mut plan = plan_of(&["true"], 2);
        plan.options
            .environment
            .insert("MALLOC_CONF".into(), "stats_print:true".into());
        let base = filtered(inherited, &plan);
        assert_eq!(
            base.removed,
            ["LD_PRELOAD", "MALLOC_ARENA_MAX", "MIMALLOC_VERBOSE"]
        );
        let names: Vec<_> = base.variables.keys().cloned().collect();
        assert_eq!(names, [os("HOME"), os("MALLOC_CONF"), os("PATH")]);
    }

    #[test]
    fn tunables_that_the_user_asks_for_stay_beside_the_entrants() {
        let mut plan = plan_of(&["true"], 2);
        let tunables = "GLIBC_TUNABLES";
        let (asked, own) = ("glibc.pthread.rseq=0", "glibc.malloc.hugetlb=1");
        let environment = &mut plan.options.environment;
        environment.insert(tunables.into(), asked.into());
        plan.entrants[1]
            .settings
            .insert(tunables.into(), own.into());
        let base = filtered(std::iter::empty(), &plan);
        let value = |place: usize| {
            let variables = entrant_environment(&base, &plan.entrants[place]);
            variables[OsStr::new(tunables)].clone()
        };
        assert_eq!(value(0), os(asked));
        assert_eq!(value(1), os("glibc.pthread.rseq=0:glibc.malloc.hugetlb=1"));
    }

    #[test]
    fn a_preload_that_the_user_asks_for_follows_the_entrants() {
        let mut plan = plan_of(&["true"], 2);
        plan.options
            .environment
            .insert("LD_PRELOAD".into(), "/faketime.so".into());
        plan.entrants[1].preload = vec!["/a.so".into(), "/b.so".into()];
        let base = filtered(std::iter::empty(), &plan);
        let variables = entrant_environment(&base, &plan.entrants[1]);
        assert_eq!(
            variables[OsStr::new("LD_PRELOAD")],
            os("/a.so:/b.so:/faketime.so")
        );
        let variables = entrant_environment(&base, &plan.entrants[0]);
        assert_eq!(variables[OsStr::new("LD_PRELOAD")], os("/faketime.so"));
    }
}
