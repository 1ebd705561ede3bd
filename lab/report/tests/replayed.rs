//! Tests of the report of a replay: the verdicts that the replay's speed supports, the smaller gain
//! of the program itself, and the outcome of a check of the replay.

mod races;

use heapdrome_report::{Advice, Brief, Conclusion, Exporter, Markdown, Source, Terminal, page};
use heapdrome_schema::{
    Agreement, Fidelity, FidelityCheck, PEAK_RSS, Property, RaceResult, ReplaySpeed, Replayed,
    Saved, Verdict, WALL,
};

use races::{compared, rival, usual};

/// Text in place of a verdict that the speed does not support.
const REFUSED: &str = "not judged";

fn fidelity(agreement: Agreement) -> Fidelity {
    let check = FidelityCheck {
        property: Property::PeakMemory,
        agreement,
        program: "10 MiB".to_owned(),
        replay: "12 MiB".to_owned(),
        found: "+20.0%".to_owned(),
        limit: "5%".to_owned(),
    };
    Fidelity {
        trace_sha256: "ab".to_owned(),
        process: 0,
        command: vec!["app".to_owned()],
        checked: "2026-11-26T00:00:00Z".to_owned(),
        entrants: Vec::new(),
        rounds: 5,
        checks: vec![check],
    }
}

/// Returns the race of a replay, as the engine creates it. The entrant `rival` is far better in
/// wall time and in peak memory. Its verdict on a figure that `speed` does not support is
/// `NotJudged`.
fn replayed(speed: ReplaySpeed, fidelity: Option<Fidelity>) -> RaceResult {
    let mut result = usual();
    result.entrants.truncate(2);
    let replay = Replayed {
        speed,
        trace_sha256: "ab".to_owned(),
        allocator_share: None,
        fidelity,
    };
    let mut both = [
        (WALL, compared(Verdict::Faster, 0.5, 0.01)),
        (PEAK_RSS, compared(Verdict::Less, 0.6, 0.01)),
    ];
    for (figure, compared) in &mut both {
        if !replay.supports(figure) {
            compared.verdict = Verdict::NotJudged;
        }
        let known = replay.fidelity.iter();
        let misses = known.flat_map(|known| known.misses_on(figure));
        compared.misses = misses.map(|miss| miss.property).collect();
    }
    let [(_, wall), (_, memory)] = both;
    result.entrants.push(rival("rival", wall, memory));
    result.options.judged = vec![WALL.to_owned()];
    result.options.replay = Some(replay);
    result
}

/// Returns the full text, the brief text, the Markdown and the page of a result, with spaces in
/// place of line breaks.
fn forms(result: &RaceResult) -> [String; 4] {
    let terminal = Terminal {
        width: 100,
        colour: false,
    };
    let brief = Brief {
        terminal,
        name: "latest",
    };
    let html = page(&[Source {
        name: "r.json".to_owned(),
        saved: Saved::Race(Box::new(result.clone())),
    }]);
    let bytes = [
        terminal.export(result).expect("text"),
        brief.export(result).expect("text"),
        Markdown.export(result).expect("text"),
        html.expect("a page"),
    ];
    bytes.map(|bytes| {
        let text = String::from_utf8(bytes).expect("UTF-8");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn a_paced_replay_takes_an_allocator_for_memory_and_has_no_verdict_on_time() {
    let result = replayed(ReplaySpeed::Paced, None);
    let conclusion = Conclusion::of(&result);
    assert_eq!(
        conclusion.taken().map(|row| row.allocator.as_str()),
        Some("rival")
    );
    let told = conclusion.to_string();
    assert!(told.contains("peak memory 40% less"), "{told}");
    assert!(
        told.contains("speed paced supports no claim on time"),
        "{told}"
    );
    assert!(told.contains("was not checked"), "{told}");
    for form in forms(&result) {
        assert!(form.contains(REFUSED), "{form}");
        assert!(!form.contains("50% less"), "{form}");
    }
}

#[test]
fn a_replay_at_dependencies_has_verdicts_on_time_and_peak() {
    let result = replayed(ReplaySpeed::Dependencies, None);
    let told = Conclusion::of(&result).to_string();
    assert!(told.contains("50% less"), "{told}");
    assert!(told.contains("no claim on memory over time"), "{told}");
    assert!(forms(&result)[0].contains("40% less"));
}

#[test]
fn the_program_gains_less_than_its_replay() {
    let mut result = replayed(ReplaySpeed::Dependencies, None);
    let told = Conclusion::of(&result).to_string();
    assert!(told.contains("own times differ less, because"), "{told}");
    let replay = result.options.replay.as_mut().expect("a replay");
    replay.allocator_share = Some(0.12);
    // The rival takes half the time.
    for form in forms(&result) {
        assert!(
            form.contains(
                "about 12% of its processor time in the allocator, so it would save about 6.0%"
            ),
            "{form}"
        );
        assert!(form.contains("a forecast without an interval"), "{form}");
    }
    let paced = Conclusion::of(&replayed(ReplaySpeed::Paced, None)).to_string();
    assert!(!paced.contains("own times differ less"), "{paced}");
}

#[test]
fn only_a_trace_that_can_be_checked_gets_that_advice() {
    let mut result = replayed(ReplaySpeed::Dependencies, None);
    let advice = "heapdrome trace check";
    assert!(Conclusion::of(&result).to_string().contains(advice));
    result.options.workload = Some("replay 'trace=library:redis' speed=dependencies".to_owned());
    let told = Conclusion::of(&result).to_string();
    assert!(
        told.contains("was not checked.") && !told.contains(advice),
        "{told}"
    );
}

#[test]
fn a_locked_replay_has_no_answer() {
    let result = replayed(ReplaySpeed::Locked, None);
    let conclusion = Conclusion::of(&result);
    assert!(matches!(conclusion.advice, Advice::NoAnswer));
    for form in forms(&result) {
        assert!(
            !form.contains("faster (") && !form.contains("% less"),
            "{form}"
        );
    }
}

#[test]
fn a_miss_stands_beside_each_verdict_that_relies_on_it() {
    let result = replayed(ReplaySpeed::Paced, Some(fidelity(Agreement::Miss)));
    for form in forms(&result) {
        let told = ["misses peak memory", "the replay misses its program"];
        assert!(told.iter().any(|words| form.contains(words)), "{form}");
        assert!(form.contains("peak memory (+20.0%; limit 5%)"), "{form}");
    }
    let result = replayed(ReplaySpeed::Dependencies, Some(fidelity(Agreement::Miss)));
    let time = &result.entrants[2].versus_baseline[WALL];
    assert!(time.misses.is_empty());
}

#[test]
fn a_replay_within_its_limits_says_so_and_doubts_nothing() {
    let result = replayed(ReplaySpeed::Paced, Some(fidelity(Agreement::Within)));
    for form in forms(&result) {
        assert!(
            form.contains(
                "within the limits of heapdrome trace check, in peak memory under the allocator of the \
                 recording."
            ),
            "{form}"
        );
        assert!(!form.contains("misses"), "{form}");
    }
}

#[test]
fn agreement_names_the_allocators_that_were_compared() {
    let mut within = fidelity(Agreement::Within);
    let order = FidelityCheck {
        property: Property::MemoryOrder,
        ..within.checks[0].clone()
    };
    within.checks.push(order);
    within.entrants = ["system", "rival"].map(str::to_owned).to_vec();
    let told = Conclusion::of(&replayed(ReplaySpeed::Paced, Some(within))).to_string();
    let scopes = "in peak memory under the allocator of the recording, and in order by memory across \
                  system and rival.";
    assert!(told.contains(scopes), "{told}");
}
