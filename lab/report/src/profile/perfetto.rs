//! A profile as counters over time, for Perfetto and other viewers that read Chrome's trace format.

use heapdrome_profile::{Level, Point, Profile, Timeline};
use serde_json::{Value, json};

use super::names;
use crate::{Exporter, ReportError};

/// The profile as Chrome trace JSON: live and resident memory, live blocks and calls per second,
/// for each process and, if there are several, for all processes together.
///
/// For an amount, each point of the timeline gives one or two values: at its beginning the maximum
/// within the point, and at its middle the amount at the point's end if that differs.
#[derive(Clone, Copy, Debug)]
pub struct Perfetto;

impl Exporter<Profile> for Perfetto {
    fn export(&self, profile: &Profile) -> Result<Vec<u8>, ReportError> {
        let mut events = Vec::new();
        if profile.processes.len() > 1 {
            counters(&mut events, 0, "all processes", &profile.all.timeline);
        }
        for process in &profile.processes {
            // The system can reuse a process id, so the process's number in the trace identifies
            // it.
            let number = u64::from(process.number) + 1;
            let name = names::process(process);
            counters(&mut events, number, &name, &process.timeline);
        }
        let whole = json!({ "displayTimeUnit": "ms", "traceEvents": events });
        serde_json::to_vec(&whole).map_err(|error| ReportError::Json(error.to_string()))
    }
}

fn counters(events: &mut Vec<Value>, process: u64, name: &str, timeline: &Timeline) {
    if timeline.points.is_empty() {
        return;
    }
    let args = json!({ "name": name });
    events.push(json!({ "ph": "M", "pid": process, "name": "process_name", "args": args }));
    let width = timeline.width;
    let mut count = |name: &str, time: u64, unit: &str, value: Value| {
        let args = json!({ unit: value });
        let time = time as f64 / 1e3;
        events.push(json!({ "ph": "C", "pid": process, "ts": time, "name": name, "args": args }));
    };
    let seconds = width as f64 / 1e9;
    for point in &timeline.points {
        let mut level = |name: &str, unit: &str, level: Level| {
            count(name, point.time, unit, level.most.into());
            if level.last != level.most {
                count(name, middle(point, width), unit, level.last.into());
            }
        };
        level("live", "bytes", point.bytes);
        level("live blocks", "blocks", point.blocks);
        if let Some(resident) = point.resident {
            level("resident", "bytes", resident);
        }
        let rate = (point.calls as f64 / seconds).round();
        count("calls per second", point.time, "calls", rate.into());
    }
}

fn middle(point: &Point, width: u64) -> u64 {
    point.time.saturating_add(width / 2)
}
