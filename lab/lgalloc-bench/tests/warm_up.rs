//! Tests of `drive`: the warm-up is not part of the result, failures are reported, and batches and
//! the reference are timed separately.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use heapdrome_lgalloc_bench::{Operation, drive};

/// Duration of the first operation of a thread. It simulates cold caches and first touches.
const SLOW: Duration = Duration::from_millis(120);
const WARM_UP: Duration = Duration::from_millis(400);
const MEASURED: Duration = Duration::from_millis(200);

#[test]
fn operations_of_the_warm_up_are_not_counted() {
    let calls = AtomicU64::new(0);
    let outcome = drive(2, WARM_UP, MEASURED, || {
        let mut mine = 0;
        let calls = &calls;
        Ok::<_, Infallible>(move || {
            mine += 1;
            calls.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(if mine == 1 {
                SLOW
            } else {
                Duration::from_millis(2)
            });
            Ok(())
        })
    })
    .expect("the operation cannot fail");
    let (counted, not_counted) = (outcome.operations(), outcome.warm_up_operations());
    let all = counted + not_counted + outcome.batch_operations();
    assert_eq!(all, calls.load(Ordering::Relaxed));
    assert!(not_counted >= 4, "both threads warmed up: {not_counted}");
    assert!(counted >= 2, "both threads were measured: {counted}");
    // Two threads that sleep for 2 ms per operation cannot exceed 1000 operations a second. If the
    // rate counted the warm-up operations over the measured time alone, it would at least double.
    assert!(outcome.rate() <= 1000.0, "{}", outcome.rate());
}

/// The slowest operation is in the warm-up, so the longest reported operation must be another one.
#[test]
fn the_longest_operation_is_one_that_counts() {
    let outcome = drive(1, WARM_UP, MEASURED, || {
        let mut mine = 0;
        Ok::<_, Infallible>(move || {
            mine += 1;
            let slow = mine == 1;
            std::thread::sleep(if slow {
                SLOW * 2
            } else {
                Duration::from_millis(1)
            });
            Ok(())
        })
    })
    .expect("the operation cannot fail");
    assert!(outcome.operations() > 0);
    assert!(outcome.longest() < SLOW * 2, "{:?}", outcome.longest());
}

#[test]
fn the_failure_of_one_thread_is_told() {
    let ended = drive(2, MEASURED, MEASURED, || Ok(|| Err("no memory")));
    assert_eq!(ended.expect_err("it fails"), Some("no memory"));
}

/// Batches must run, and the time per operation must include the whole operation.
#[test]
fn batches_leave_out_the_clock() {
    let sleep = Duration::from_millis(2);
    let outcome = drive(1, MEASURED, MEASURED, || {
        Ok::<_, Infallible>(move || {
            std::thread::sleep(sleep);
            Ok(())
        })
    })
    .expect("the operation cannot fail");
    let told = outcome.time_without_clock().expect("a batch at least");
    assert!(told >= sleep.as_nanos() as f64, "{told} ns");
    assert!(outcome.batch_operations() > 0);
}

/// The setup of a batch must run once per batch, not once per operation.
#[test]
fn batches_are_done_as_a_whole() {
    struct Dear(u64);
    impl Operation<Infallible> for Dear {
        fn once(&mut self) -> Result<(), Infallible> {
            assert_eq!(self.0, 0, "batches come last, and each as a whole");
            std::thread::sleep(Duration::from_millis(20));
            Ok(())
        }
        fn many(&mut self, times: u64) -> Result<(), Infallible> {
            self.0 += times;
            Ok(())
        }
    }
    let outcome = drive(1, MEASURED, MEASURED, || Ok(Dear(0))).expect("it cannot fail");
    assert!(outcome.operations() > 0 && outcome.batch_operations() > 0);
    let told = outcome.time_without_clock().expect("a batch at least");
    assert!(told < 10_000_000.0, "{told} ns");
}

/// The reference is measured between the operations, and does not count as an operation.
#[test]
fn what_is_compared_is_told_by_itself() {
    struct Both;
    impl Operation<Infallible> for Both {
        fn once(&mut self) -> Result<(), Infallible> {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        }
        fn beside(&mut self, times: u64) -> Result<Option<Duration>, Infallible> {
            Ok(Some(
                Duration::from_nanos(100) * u32::try_from(times).unwrap_or(1),
            ))
        }
    }
    let outcome = drive(1, MEASURED, MEASURED, || Ok(Both)).expect("it cannot fail");
    assert_eq!(outcome.time_beside(), Some(100.0));
    let told = outcome.time_without_clock().expect("a batch at least");
    assert!(told >= 2_000_000.0, "{told} ns");
}
