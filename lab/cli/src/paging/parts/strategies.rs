//! What advice buys.

use heapdrome_paging::{Cell, Holder, Strategy, beside, size, strategy_table};
use heapdrome_record::Table;

use super::{Measuring, Part, fitting, held_by, limit, named};
use crate::paging::holding::Holding;

/// Readers of the document's last strategy.
const MANY: usize = 8;
/// How far the document prefetches ahead.
const DOCUMENTED: usize = 32;
/// How far ahead is looked where nobody asks for something else.
pub const AHEAD: [usize; 2] = [DOCUMENTED, 128];

/// The document's strategies, with threads that prefetch so many reads ahead; at [`MANY`] readers the first of
/// these. lgalloc's own reader is one more where all memory is lgalloc's.
fn all(threads: usize, ahead: &[usize], reader: bool) -> Vec<(String, usize, Strategy)> {
    let first = [Strategy::Baseline, Strategy::Random, Strategy::Sequential];
    let ahead_of = ahead
        .iter()
        .map(|ahead| Strategy::Prefetch { ahead: *ahead });
    let batches = [8, 32, 128].map(|pages| Strategy::Batch { pages });
    let reader = reader.then_some(Strategy::Reader { pages: 32 });
    let each = first.into_iter().chain(ahead_of).chain(batches);
    let each = each.chain(reader);
    let last = ahead.first().map(|ahead| {
        let more = match *ahead {
            DOCUMENTED => String::new(),
            other => format!(", {other} ahead"),
        };
        let name = format!("MADV_RANDOM+pf ({MANY}thr{more})");
        (name, MANY, Strategy::RandomPrefetch { ahead: *ahead })
    });
    each.map(|strategy| (strategy.name(), threads, strategy))
        .chain(last)
        .collect()
}

/// Every strategy for `total` bytes under a limit of `ram`, and where all fits; each of `holdings` in
/// turn.
pub fn strategies(
    [ram, total]: [u64; 2],
    threads: usize,
    ahead: &[usize],
    holdings: &[Holding],
    measuring: Measuring,
) -> Part {
    const PART: &str = "strategies";
    let under = Some(limit(ram, total));
    let lgalloc = |holding: &Holding| holding.holder == Holder::Lgalloc;
    let all = all(threads, ahead, holdings.iter().all(lgalloc));
    let mut cells = Vec::new();
    for (place, holding) in holdings.iter().enumerate() {
        for (total, ending) in [(total, ""), (fitting(ram), ", all fits")] {
            cells.extend(all.iter().map(|(name, threads, strategy)| {
                let name = named(&format!("{name}{ending}"), place, holding);
                let job = measuring.reads(holding, total, *threads, *strategy);
                holding.with(Cell::new(PART, name, job, under))
            }));
        }
    }
    let each = all.len();
    let names: Vec<String> = all.into_iter().map(|(name, ..)| name).collect();
    let holdings = holdings.to_vec();
    Part::new(
        cells,
        total.saturating_sub(ram),
        Box::new(move |cells| {
            let halves = cells.chunks(each);
            let pairs = halves.clone().step_by(2).zip(halves.skip(1).step_by(2));
            let of = holdings.iter().zip(pairs);
            of.flat_map(|(holding, pair)| {
                tables(pair, [ram, total], (threads, names.as_slice()), holding)
            })
            .collect()
        }),
    )
}

fn tables(
    (pressed, fit): (&[Cell], &[Cell]),
    [ram, total]: [u64; 2],
    (threads, names): (usize, &[String]),
    holding: &Holding,
) -> Vec<Table> {
    let rows = |cells: &[Cell], title: &str| {
        let named: Vec<(String, &Cell)> = names.iter().cloned().zip(cells).collect();
        strategy_table(title, &named)
    };
    let held = held_by(holding);
    let (ram, total, fits) = (size(ram), size(total), size(fitting(ram)));
    let title = format!("Advice, threads: {threads}, {ram} of memory for {total}{held}");
    let pressed = beside(rows(pressed, &title), "strategies", "strategy");
    let title = format!("The same where all fits: {ram} of memory for {fits}{held}");
    vec![pressed, rows(fit, &title)]
}
