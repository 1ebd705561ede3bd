//! What holds a working set: an allocator, by the name that someone asked for.

use heapdrome_paging::{Cell, Holder, Preload};
use heapdrome_record::Entrant;

use crate::allocators::Names;
use crate::failure::Failure;
use crate::progress;

/// The name of mappings that are kept, which are no allocator.
const MAPPED: &str = "mapped";
/// The names of libraries that the child links: heapdrome's own, and the published crate.
const LGALLOC: &str = "lgalloc";
const PUBLISHED: &str = "lgalloc-published";

/// What holds a working set.
#[derive(Clone, Debug)]
pub struct Holding {
    /// Its name in tables.
    pub name: String,
    /// The child's way to get memory.
    pub holder: Holder,
    /// What the child's `malloc` comes from.
    pub preload: Option<Preload>,
}

impl Holding {
    /// heapdrome's lgalloc.
    pub fn lgalloc() -> Self {
        Self::plain(LGALLOC, Holder::Lgalloc)
    }

    /// The crate that the document measured.
    pub fn published() -> Self {
        Self::plain(PUBLISHED, Holder::Published)
    }

    /// The same, with the background worker that its own benchmark asks for.
    pub fn published_with_worker() -> Self {
        let holder = Holder::PublishedWorker;
        Self::plain(holder.name(), holder)
    }

    /// Mappings that are kept.
    pub fn mapped() -> Self {
        Self::plain(MAPPED, Holder::Mapped)
    }

    /// The C library's malloc.
    pub fn sysalloc() -> Self {
        Self::plain("sysalloc", Holder::Malloc)
    }

    fn plain(name: &str, holder: Holder) -> Self {
        Self {
            name: name.to_owned(),
            holder,
            preload: None,
        }
    }

    /// A cell whose child gets its memory so.
    pub fn with(&self, mut cell: Cell) -> Cell {
        cell.preload.clone_from(&self.preload);
        cell
    }
}

/// What the names stand for; allocators that are not there yet are built.
///
/// # Errors
/// When there is none of a name, or it cannot be had.
pub fn holdings(asked: &[String]) -> Result<Vec<Holding>, Failure> {
    let own = |name: &str| match name {
        LGALLOC => Some(Holding::lgalloc()),
        PUBLISHED => Some(Holding::published()),
        MAPPED => Some(Holding::mapped()),
        _ => None,
    };
    if let Some(all) = asked.iter().map(|name| own(name)).collect() {
        return Ok(all);
    }
    let engine = progress::engine()?;
    let catalogue = engine.catalogue()?;
    let names = Names::new(&catalogue, &engine);
    let mut found: Vec<Holding> = Vec::new();
    for word in asked {
        let more = match own(word) {
            Some(holding) => vec![holding],
            None => {
                let expanded = names.expand(std::slice::from_ref(word))?;
                let ready = expanded.iter().map(|name| names.ready(name).map(preloaded));
                ready.collect::<Result<Vec<_>, _>>()?
            }
        };
        for holding in more {
            if !found.iter().any(|known| known.name == holding.name) {
                found.push(holding);
            }
        }
    }
    Ok(found)
}

/// The allocators that take and return regions beside lgalloc when nobody asks for others; where they
/// cannot be had, why.
///
/// # Errors
/// When someone interrupts.
pub fn rivals() -> Result<Result<Vec<Holding>, String>, Failure> {
    const RIVALS: [&str; 2] = ["mimalloc3", "jemalloc"];
    match holdings(&RIVALS.map(str::to_owned)) {
        Ok(found) => Ok(Ok(found)),
        Err(Failure::Interrupted) => Err(Failure::Interrupted),
        Err(failure) => Ok(Err(format!("{} left out: {failure}", RIVALS.join(" and ")))),
    }
}

/// An entrant that is to serve the child's `malloc`.
fn preloaded(entrant: Entrant) -> Holding {
    let variables = entrant.environment().into_iter();
    Holding {
        name: entrant.name.clone(),
        holder: Holder::Malloc,
        preload: Some(Preload {
            environment: variables
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            library: entrant.library,
        }),
    }
}
