use super::*;

#[test]
fn instructions_survive_the_way_to_the_child() {
    let read = Read {
        total: Bytes(1 << 30),
        threads: 2,
        strategy: Strategy::Batch { pages: 32 },
        holder: Holder::Lgalloc,
        order: Order::Uniform,
        seed: u64::MAX,
        warm_up: Duration::from_millis(500),
        seconds: Duration::from_secs(1),
    };
    for job in [Job::Probe, Job::Read(read)] {
        let instructions = Instructions {
            join: vec!["/a folder/cgroup.procs".into()],
            job,
        };
        let text = serde_json::to_string(&instructions).expect("has a JSON form");
        assert_eq!(
            serde_json::from_str::<Instructions>(&text).expect("read back"),
            instructions
        );
    }
}
#[test]
fn times_are_numbers_of_seconds_and_not_longer_than_a_day() {
    let job = |seconds: &str| {
        let words = r#""variant":"mmap","threads":1,"warm_up":0.5,"seconds":"#;
        serde_json::from_str::<Throughput>(&format!("{{{words}{seconds}}}"))
    };
    let right = job("1.5").expect("a second and a half");
    assert_eq!(right.seconds, Duration::from_millis(1500));
    let text = serde_json::to_string(&right).expect("has a JSON form");
    assert!(text.contains(r#""warm_up":0.5,"seconds":1.5"#), "{text}");
    for wrong in ["-1", "86401", "1e300", "null"] {
        assert!(job(wrong).is_err(), "{wrong}");
    }
}
