//! The effect of memory advice on random reads.

use heapdrome_schema::{Bytes, Experiment, Holder, PagingCell as Cell, Strategy, Table};

use super::{Holding, Measuring, by_holding, fitting, held_by, limit, plain_name, setting};
use crate::published::beside;
use crate::tables::strategy_table;
use crate::words::size;

/// Number of readers of the document's last strategy.
const MANY: usize = 8;
/// Suffix of the name of a cell whose working set fits under its limit.
const FITS: &str = ", all fits";
/// The document's prefetch distance, in reads.
const DOCUMENTED: usize = 32;
/// Default prefetch distances, in reads.
pub const AHEAD: [usize; 2] = [DOCUMENTED, 128];

/// Returns the document's strategies, with a prefetching strategy for each distance of `ahead`. The
/// strategy with [`MANY`] readers uses only the first distance. If `reader` is set, adds lgalloc's
/// own reader as a strategy.
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

/// Returns the cells of every strategy with each of `holdings`: for `total` bytes under a limit of
/// `ram`, and for a working set that fits.
#[must_use]
pub fn strategies(
    [ram, total]: [Bytes; 2],
    threads: usize,
    ahead: &[usize],
    holdings: &[Holding],
    measuring: Measuring,
) -> Vec<Cell> {
    let under = Some(limit(ram, total));
    let lgalloc = |holding: &Holding| holding.holder == Holder::Lgalloc;
    let all = all(threads, ahead, holdings.iter().all(lgalloc));
    let mut cells = Vec::new();
    for (place, holding) in holdings.iter().enumerate() {
        for (total, ending) in [(total, ""), (fitting(ram), FITS)] {
            cells.extend(all.iter().map(|(name, threads, strategy)| {
                let name = format!("{name}{ending}");
                let job = measuring.reads(holding, total, *threads, *strategy);
                holding.cell(place, Experiment::Strategies, &name, job, under)
            }));
        }
    }
    cells
}

pub fn tables(cells: &[&Cell]) -> Vec<Table> {
    let of = |group: &Vec<&Cell>| of_holding(group).unwrap_or_default();
    by_holding(cells).iter().flat_map(of).collect()
}

fn of_holding(cells: &[&Cell]) -> Option<Vec<Table>> {
    let all_fits = |cell: &&Cell| plain_name(cell).ends_with(FITS);
    let (fit, pressed): (Vec<&Cell>, Vec<&Cell>) = cells.iter().partition(|cell| all_fits(cell));
    let (ram, total, threads) = setting(pressed.first()?)?;
    let rows = |cells: &[&Cell], title: &str| {
        let named = |cell: &Cell| plain_name(cell).trim_end_matches(FITS).to_owned();
        let named: Vec<(String, &Cell)> = cells.iter().map(|cell| (named(cell), *cell)).collect();
        strategy_table(title, &named)
    };
    let held = held_by(cells.first()?);
    let (fits, ram, total) = (size(fitting(ram)), size(ram), size(total));
    let title = format!("Advice, threads: {threads}, {ram} of memory for {total}{held}");
    let pressed = beside(rows(&pressed, &title), "strategies", "strategy");
    let title = format!("Advice where all fits: {ram} of memory for {fits}{held}");
    Some(vec![pressed, rows(&fit, &title)])
}
