//! Checks of every workload's description and presets, and of the parsing of parameters.

use std::collections::HashSet;

use heapdrome_workloads::{Parameters, Refusal, list};

#[test]
fn every_preset_can_be_read_and_read_again() {
    for description in list() {
        for preset in description.presets {
            let parameters = Parameters::parse(description, &[preset.name]);
            let parameters = parameters.unwrap_or_else(|refusal| panic!("{refusal}"));
            let again = Parameters::parse(description, &parameters.words()).unwrap();
            assert_eq!(parameters.words(), again.words(), "{}", preset.name);
            for (name, value) in preset.values {
                assert_eq!(parameters.get(name), Some(*value), "{}", preset.name);
            }
        }
    }
}

#[test]
fn every_workload_has_a_quick_and_a_published_form() {
    for description in list() {
        let names: Vec<_> = description.presets.iter().map(|one| one.name).collect();
        // No document has published heapdrome's own workloads, so they have no published preset.
        let own = description.origin.starts_with("heapdrome's own");
        for begin in ["quick", "published"] {
            let any = names.iter().any(|name| name.starts_with(begin));
            let needed = begin == "quick" || !own;
            assert_eq!(any, needed, "{}: {begin}", description.name);
            assert!(!names[0].starts_with(begin), "{}", description.name);
        }
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    }
}

#[test]
fn every_workload_has_the_common_parameters_and_explains_itself() {
    for description in list() {
        let names: HashSet<_> = description.parameters.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), description.parameters.len());
        // A workload may count producers and consumers instead of threads.
        let threads = names.contains("threads") || names.contains("producers");
        assert!(threads && names.contains("seed") && names.contains("latency"));
        let texts = [
            description.summary,
            description.models,
            description.origin,
            description.meaning,
            description.silence,
        ];
        for text in texts.iter().chain(
            &description
                .parameters
                .iter()
                .map(|one| one.meaning)
                .collect::<Vec<_>>(),
        ) {
            assert!(
                !text.is_empty() && !text.contains("  ") && !text.contains('\n'),
                "{text}"
            );
        }
    }
}

#[test]
fn numbers_are_taken_in_order_and_words_must_make_sense() {
    let description = heapdrome_workloads::find("malloctest").unwrap();
    let read = |words: &[&str]| Parameters::parse(description, words);
    let published = read(&["1", "500", "1000000", "10", "1000"]).unwrap();
    assert_eq!(published.words(), read(&["published"]).unwrap().words());
    let with = published.with("threads", 4).unwrap();
    assert_eq!(with.get("threads"), Some(4));
    assert_eq!(with.get("no-such"), None);
    assert!(matches!(
        with.clone().with("threads", 0),
        Err(Refusal::Range { .. })
    ));
    assert!(matches!(
        with.with("upper", 5),
        Err(Refusal::Contradiction { .. })
    ));
    assert!(matches!(read(&["no-such"]), Err(Refusal::Word { .. })));
    assert!(matches!(read(&["no-such=1"]), Err(Refusal::Unknown { .. })));
    assert!(matches!(
        read(&["1", "threads=2"]),
        Err(Refusal::Twice { .. })
    ));
    assert!(matches!(read(&["0"]), Err(Refusal::Range { .. })));
    assert!(matches!(read(&["1.5"]), Err(Refusal::Range { .. })));
    assert!(matches!(
        read(&["99999999999999999999"]),
        Err(Refusal::Range { .. })
    ));
    assert!(matches!(
        read(&["1"; 30]),
        Err(Refusal::TooMany { .. } | Refusal::Twice { .. })
    ));
}
