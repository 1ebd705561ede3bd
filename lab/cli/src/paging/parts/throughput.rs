//! Regions taken and returned.

use heapdrome_paging::{Cell, Job, Limit, Throughput, Variant, throughput_table};

use super::Part;

/// The document's throughput benchmark at these numbers of threads.
pub fn throughput(threads: &[usize], limit: Option<Limit>, warm_up: f64, seconds: f64) -> Part {
    const PART: &str = "throughput";
    let cell = |threads: &usize, variant: Variant| {
        let job = Job::Throughput(Throughput {
            variant,
            threads: *threads,
            warm_up,
            seconds,
        });
        Cell::new(PART, format!("{} x {threads}", variant.name()), job, limit)
    };
    let per_count = |threads| Variant::ALL.map(|variant| cell(threads, variant));
    Part::new(
        threads.iter().flat_map(per_count).collect(),
        0,
        Box::new(|cells| {
            let title = "Regions of 2 MiB, taken and returned; the warm-up is not counted";
            vec![throughput_table(title, &cells.iter().collect::<Vec<_>>())]
        }),
    )
}
