//! Entrant for the command as it runs today, if the command links or preloads an allocator itself.
//!
//! For such a command, "nothing preloaded" does not mean the C library. Therefore the C library is
//! preloaded for every entrant that stands for it. The entrant `as-is` joins the race with nothing
//! preloaded and an unchanged environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heapdrome_measure::journal;
use heapdrome_registry::package_of;
use heapdrome_schema::{Coverage, Entrant, JournalLine, Plan, Proof, Role};
use heapdrome_system::sha256_of_file;

use super::contest::Contest;
use super::measure_failure;
use super::rules::Rules;
use crate::failure::Failure;

impl Contest {
    /// Returns the library that the command itself chooses. The `proof` shows one if `entrant`
    /// stands for the C library, but another library serves malloc. A program that defines malloc
    /// itself does not count, because preloading cannot replace its allocator. Returns `None` after
    /// the first timed run, because entrants can no longer be added.
    pub(super) fn choice_of_command(&self, entrant: usize, proof: &Proof) -> Option<PathBuf> {
        let libc = self.libc.as_deref()?.canonicalize().ok()?;
        let chosen = proof.served_by.as_deref().map(Path::new)?;
        let is_program = |path: &Path| {
            let first = proof.unserved.first();
            first.is_some_and(|first| Path::new(&first.program) == path)
        };
        let displaced = self.race.runs().is_empty()
            && proof.coverage == Coverage::TooLittle
            && self.race.plan().entrants[entrant].means_system()
            && chosen != libc
            && !is_program(chosen);
        displaced.then(|| chosen.to_owned())
    }

    /// Preloads the C library for every entrant that stands for it, and adds the entrant `as-is` in
    /// the role that the plan gives it. Returns a remark for the reader. All proofs become invalid.
    pub(super) fn heed_choice(&mut self, chosen: &Path) -> Result<String, Failure> {
        let mut plan = self.race.plan().clone();
        let forced: Vec<_> = plan
            .entrants
            .iter_mut()
            .filter(|entrant| entrant.means_system())
            .collect();
        for entrant in forced {
            entrant.preload = self.libc.iter().cloned().collect();
            entrant.library = self.libc.clone();
            entrant.sha256 = self.libc.as_deref().and_then(|it| sha256_of_file(it).ok());
        }
        if let Some(role) = plan.options.as_is {
            let settings = self.untouched_settings();
            enter(&mut plan.entrants, role, as_is(chosen, settings));
        }
        let told = told(&plan, chosen);
        let machine = Box::new(self.race.machine().clone());
        let line = JournalLine::Plan {
            schema: journal::SCHEMA,
            plan: Box::new(plan),
            machine,
        };
        self.race.record(line).map_err(measure_failure)?;
        self.rules = Rules::new(self.race.plan());
        self.progress.follow_plan(self.race.plan());
        Ok(told)
    }

    /// Returns the variables of heapdrome's own environment that tune an allocator, with their
    /// values. They are removed for every other entrant. `LD_PRELOAD` is excluded, because it would
    /// affect heapdrome, too.
    fn untouched_settings(&self) -> BTreeMap<String, String> {
        let removed = self.race.base_environment().removed.iter();
        let names = removed.filter(|name| *name != "LD_PRELOAD");
        let set = names.filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)));
        set.collect()
    }
}

/// Returns the entrant for the command as it runs today, with the allocator `library`.
fn as_is(library: &Path, settings: BTreeMap<String, String>) -> Entrant {
    Entrant {
        name: Entrant::AS_IS.to_owned(),
        role: Role::Rival,
        version: package_of(library).unwrap_or_else(|| library.display().to_string()),
        library: Some(library.to_owned()),
        sha256: sha256_of_file(library).ok(),
        preload: Vec::new(),
        settings,
        hardened: false,
        known_faults: Vec::new(),
        faults_of_new: Vec::new(),
        as_is: true,
    }
}

/// Adds `as_is` to the entrants: as the last rival, or in place of the baseline and its twin. In
/// the second case, the former baseline becomes the last rival, and the other entrants keep their
/// positions.
fn enter(entrants: &mut Vec<Entrant>, role: Role, as_is: Entrant) {
    if role == Role::Rival {
        entrants.push(as_is);
        return;
    }
    let mut former = None;
    for entrant in entrants.iter_mut() {
        let name = match entrant.role {
            Role::Rival => continue,
            Role::Baseline => as_is.name.clone(),
            Role::Twin => twin_name(&as_is.name),
        };
        let role = entrant.role;
        let own = Entrant {
            name,
            role,
            ..as_is.clone()
        };
        let before = std::mem::replace(entrant, own);
        former = former.or(Some(before));
    }
    entrants.extend(former.map(|former| Entrant {
        role: Role::Rival,
        ..former
    }));
}

/// Returns the name of the baseline's twin.
pub(super) fn twin_name(baseline: &str) -> String {
    format!("{baseline} (again)")
}

/// Describes the command's choice of an allocator for a reader of the race.
fn told(plan: &Plan, chosen: &Path) -> String {
    let chosen = chosen.display();
    let forced = "the C library is preloaded for system";
    let name = Entrant::AS_IS;
    match plan.options.as_is {
        None => format!("the command itself chooses {chosen}, so {forced}"),
        Some(Role::Rival) => {
            format!("{name} is what the command itself chooses, {chosen}; {forced}")
        }
        Some(_) => {
            format!("{name}, the baseline, is what the command itself chooses, {chosen}; {forced}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(role: Role) -> Vec<(String, Role)> {
        let as_is = as_is(Path::new("/no/such/library.so"), BTreeMap::new());
        let entrant = |name: &str, role| Entrant {
            name: name.to_owned(),
            role,
            as_is: false,
            ..as_is.clone()
        };
        let mut entrants = vec![
            entrant("system", Role::Baseline),
            entrant("system (again)", Role::Twin),
            entrant("mine", Role::Rival),
        ];
        enter(&mut entrants, role, as_is);
        let told = entrants
            .into_iter()
            .map(|entrant| (entrant.name, entrant.role));
        told.collect()
    }

    #[test]
    fn the_former_baseline_becomes_a_rival_and_the_others_keep_their_places() {
        let expected = [
            ("as-is", Role::Baseline),
            ("as-is (again)", Role::Twin),
            ("mine", Role::Rival),
            ("system", Role::Rival),
        ];
        let expected = expected.map(|(name, role)| (name.to_owned(), role));
        assert_eq!(entered(Role::Baseline), expected);
    }

    #[test]
    fn a_baseline_that_was_asked_for_stays() {
        let entered = entered(Role::Rival);
        assert_eq!(entered[0], ("system".to_owned(), Role::Baseline));
        assert_eq!(entered[3], ("as-is".to_owned(), Role::Rival));
    }
}
