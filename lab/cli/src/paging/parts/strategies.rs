//! What advice buys.

use heapdrome_paging::{Cell, Strategy, beside, size, strategy_table};
use heapdrome_record::Table;

use super::{Measuring, Part, fitting, held_by, limit, named};
use crate::paging::holding::Holding;

/// Readers of the document's last strategy.
const MANY: usize = 8;

/// The document's strategies, and one that looks further ahead.
fn all(threads: usize) -> Vec<(String, usize, Strategy)> {
    let mut all: Vec<(String, usize, Strategy)> = [
        Strategy::Baseline,
        Strategy::Random,
        Strategy::Sequential,
        Strategy::Prefetch { ahead: 32 },
        Strategy::Prefetch { ahead: 128 },
        Strategy::Batch { pages: 8 },
        Strategy::Batch { pages: 32 },
        Strategy::Batch { pages: 128 },
    ]
    .into_iter()
    .map(|strategy| (strategy.name(), threads, strategy))
    .collect();
    let last = Strategy::RandomPrefetch { ahead: 32 };
    all.push((format!("MADV_RANDOM+pf ({MANY}thr)"), MANY, last));
    all
}

/// Every strategy for `total` bytes under a limit of `ram`, and where all fits; each of `holdings` in
/// turn.
pub fn strategies(
    [ram, total]: [u64; 2],
    threads: usize,
    holdings: &[Holding],
    measuring: Measuring,
) -> Part {
    const PART: &str = "strategies";
    let under = Some(limit(ram, total));
    let mut cells = Vec::new();
    for (place, holding) in holdings.iter().enumerate() {
        for (total, ending) in [(total, ""), (fitting(ram), ", all fits")] {
            cells.extend(all(threads).into_iter().map(|(name, threads, strategy)| {
                let name = named(&format!("{name}{ending}"), place, holding);
                let job = measuring.reads(holding, total, threads, strategy);
                holding.with(Cell::new(PART, name, job, under))
            }));
        }
    }
    let each = all(threads).len();
    let holdings = holdings.to_vec();
    Part::new(
        cells,
        total.saturating_sub(ram),
        Box::new(move |cells| {
            let halves = cells.chunks(each);
            let pairs = halves.clone().step_by(2).zip(halves.skip(1).step_by(2));
            let of = holdings.iter().zip(pairs);
            of.flat_map(|(holding, pair)| tables(pair, [ram, total], threads, holding))
                .collect()
        }),
    )
}

fn tables(
    (pressed, fit): (&[Cell], &[Cell]),
    [ram, total]: [u64; 2],
    threads: usize,
    holding: &Holding,
) -> Vec<Table> {
    let rows = |cells: &[Cell], title: &str| {
        let named: Vec<(String, &Cell)> = all(threads)
            .into_iter()
            .map(|(name, _, _)| name)
            .zip(cells)
            .collect();
        strategy_table(title, &named)
    };
    let held = held_by(holding);
    let (ram, total, fits) = (size(ram), size(total), size(fitting(ram)));
    let title = format!("Advice, threads: {threads}, {ram} of memory for {total}{held}");
    let pressed = beside(rows(pressed, &title), "strategies", "strategy");
    let title = format!("The same where all fits: {ram} of memory for {fits}{held}");
    vec![pressed, rows(fit, &title)]
}
