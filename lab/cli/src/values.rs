//! Parsers of single values on the command line, and messages about mistakes in the command line.

use std::time::Duration;

use heapdrome_engine::race::AskedWork;
use heapdrome_replay::{Speed, Touch};
use heapdrome_schema::{Better, SweptParameter};

/// Parsed form of `--metric NAME[:higher|:lower]=REGEX`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricArgument {
    pub name: String,
    /// Regular expression that finds the figure in the output; already validated.
    pub pattern: String,
    /// Whether higher or lower values are better.
    pub better: Better,
}

/// Parses a time such as `0`, `90`, `1.5s`, `10m` or `1h 30m`; a number without a unit is in
/// seconds.
pub fn duration_or_none(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string()),
        Err(_) => humantime::parse_duration(text)
            .map_err(|error| format!("{error}; expected a time such as 90s, 10m or 1h30m")),
    }
}

/// Parses a time above zero, such as `90`, `1.5s`, `10m` or `1h 30m`; a number without a unit is in
/// seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let span = duration_or_none(text)?;
    if span.is_zero() {
        return Err("the time must be greater than zero".to_owned());
    }
    Ok(span)
}

/// Parses a percentage above 0 and below 100, with or without `%`, as a fraction: `1%` and `1` are
/// 0.01.
pub fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err("expected a percentage above 0 and below 100, such as 1%".to_owned()),
    }
}

/// Parses the speed of a replay.
pub fn speed(text: &str) -> Result<Speed, String> {
    let names = Speed::ALL.map(Speed::name).join(", ");
    Speed::find(text).ok_or_else(|| format!("expected one of {names}"))
}

/// Parses the touch model of a replay.
pub fn touch(text: &str) -> Result<Touch, String> {
    let names = Touch::ALL.map(Touch::name).join(", ");
    Touch::find(text).ok_or_else(|| format!("expected one of {names}"))
}

/// Parses `KEY=VALUE`. Refuses `LD_PRELOAD`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("LD_PRELOAD", _)) => Err("heapdrome sets LD_PRELOAD itself; use -a PATH".to_owned()),
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

/// Numbers of processors, in ascending order, each once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Processors(pub Vec<usize>);

/// Parses a list of processors such as `0,2-3`.
pub fn processors(text: &str) -> Result<Processors, String> {
    let wrong = || format!("expected a list of processors such as 0,2-3, got '{text}'");
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| wrong())?;
        let last: usize = last.trim().parse().map_err(|_| wrong())?;
        if first > last || last >= MOST_PROCESSORS {
            return Err(wrong());
        }
        list.extend(first..=last);
    }
    list.sort_unstable();
    list.dedup();
    Ok(Processors(list))
}

/// Number of processors in a `cpu_set_t`.
const MOST_PROCESSORS: usize = 1024;

/// Parses `NAME[:higher|:lower]=REGEX`.
pub fn metric(text: &str) -> Result<MetricArgument, String> {
    let (name, pattern) = text
        .split_once('=')
        .ok_or("write NAME[:higher|:lower]=REGEX")?;
    let (name, better) = match name.rsplit_once(':') {
        Some((name, "higher")) => (name, Better::Higher),
        Some((name, "lower")) => (name, Better::Lower),
        Some((_, other)) => return Err(format!("expected :higher or :lower, got :{other}")),
        None => (name, Better::Lower),
    };
    if name.is_empty() {
        return Err("the metric requires a name".to_owned());
    }
    regular(pattern)?;
    Ok(MetricArgument {
        name: name.to_owned(),
        pattern: pattern.to_owned(),
        better,
    })
}

/// Parses `NAME=a,b,c` or `env:NAME=a,b,c`. Refuses `LD_PRELOAD` and empty values.
pub fn sweep(text: &str) -> Result<SweptParameter, String> {
    let (name, values) = text
        .split_once('=')
        .ok_or("write NAME=VALUE,... or env:NAME=VALUE,...")?;
    match name.strip_prefix("env:") {
        Some("LD_PRELOAD") => {
            return Err("heapdrome sets LD_PRELOAD itself; list allocators with -a".to_owned());
        }
        Some("") => return Err("the variable requires a name".to_owned()),
        None if name.is_empty() => return Err("the sweep requires a name".to_owned()),
        _ => {}
    }
    let values: Vec<String> = values.split(',').map(str::to_owned).collect();
    if values.iter().any(String::is_empty) {
        return Err("a value is empty; write them as 1,2,4".to_owned());
    }
    Ok(SweptParameter {
        name: name.to_owned(),
        values,
    })
}

/// Parses `value`, `same` or a regular expression.
pub fn work(text: &str) -> Result<AskedWork, String> {
    match text {
        "value" => Ok(AskedWork::Value),
        "same" => Ok(AskedWork::Same),
        pattern => regular(pattern).map(|()| AskedWork::Printed(pattern.to_owned())),
    }
}

/// Checks that a text is a regular expression.
fn regular(pattern: &str) -> Result<(), String> {
    let wrong = |error: regex::Error| {
        let error = error.to_string();
        format!(
            "not a regular expression: {}",
            error.lines().last().unwrap_or_default()
        )
    };
    regex::Regex::new(pattern).map(|_| ()).map_err(wrong)
}

/// Returns one line that describes the mistake in a command line and the remedy.
pub fn mistake(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(several)) => several.clone(),
        _ => Vec::new(),
    };
    let option = |text: &String| text.split(' ').next().unwrap_or_default().to_owned();
    let (given, prior) = (named(ContextKind::InvalidArg), named(ContextKind::PriorArg));
    match (given.first(), prior.first()) {
        (Some(one), Some(other)) if error.kind() == ErrorKind::ArgumentConflict && one != other => {
            let others: Vec<String> = prior.iter().map(option).collect();
            format!(
                "{} cannot be combined with {}; omit one of them",
                option(one),
                others.join(", ")
            )
        }
        _ => one_line(&error.render().to_string()),
    }
}

/// Returns clap's message on a mistake in one line, without its usage text and its tips.
fn one_line(told: &str) -> String {
    let told = told.strip_prefix("error: ").unwrap_or(told);
    let told = told.split("\n\nUsage:").next().unwrap_or(told);
    let told = told.split("\n\n  tip:").next().unwrap_or(told);
    let told = told
        .split("\n\nFor more information")
        .next()
        .unwrap_or(told);
    let words: Vec<&str> = told.split_whitespace().collect();
    format!("{}; see --help", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5s"), duration("1500ms"));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        for wrong in ["", "0", "-1", "inf", "nan", "10 parsecs"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentages() {
        assert_eq!(percentage("1%"), Ok(0.01));
        assert_eq!(percentage("0.5"), Ok(0.005));
        for wrong in ["", "%", "0%", "-1%", "100%", "nan"] {
            assert!(percentage(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn processor_lists() {
        assert_eq!(processors("3,0-1,1"), Ok(Processors(vec![0, 1, 3])));
        for wrong in ["", "a", "3-1", "0-99999999", "1,,2", "-1"] {
            assert!(processors(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn metrics() {
        let rps = metric(r"rps:higher=(\d+) requests").expect("a metric");
        assert_eq!((rps.name.as_str(), rps.better), ("rps", Better::Higher));
        assert_eq!(metric("t=a=b").expect("a metric").pattern, "a=b");
        for wrong in ["", "x", "=a", "x:up=a", "x=("] {
            assert!(metric(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sweeps() {
        let jobs = sweep("jobs=1,2").expect("a sweep");
        assert_eq!((jobs.name.as_str(), jobs.values.len()), ("jobs", 2));
        assert_eq!(sweep("env:A=x=y").expect("a sweep").values, ["x=y"]);
        for wrong in [
            "",
            "jobs",
            "=1",
            "jobs=",
            "jobs=1,,2",
            "env:=1",
            "env:LD_PRELOAD=x",
        ] {
            assert!(sweep(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn work_is_a_word_or_a_pattern() {
        assert_eq!(work("value"), Ok(AskedWork::Value));
        assert_eq!(work("same"), Ok(AskedWork::Same));
        assert!(matches!(work(r"(\d+) items"), Ok(AskedWork::Printed(_))));
        assert!(work("(").is_err());
    }

    #[test]
    fn a_mistake_is_one_line() {
        let told =
            "error: invalid value '0' for '--rounds <N>'\n\nFor more information, try '--help'.\n";
        assert_eq!(
            one_line(told),
            "invalid value '0' for '--rounds <N>'; see --help"
        );
        let told =
            "error: unexpected argument '-x' found\n\n  tip: use '-- -x'\n\nUsage: heapdrome\n";
        assert_eq!(one_line(told), "unexpected argument '-x' found; see --help");
    }

    #[test]
    fn a_contradiction_says_what_to_do() {
        use clap::Parser as _;
        let words = ["heapdrome", "suite", "rpmalloc", "--quick", "--published"];
        let error = crate::arguments::Arguments::try_parse_from(words).expect_err("both");
        assert_eq!(
            mistake(&error),
            "--quick cannot be combined with --published; omit one of them"
        );
    }

    #[test]
    fn environment_variables() {
        assert_eq!(key_value("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        for wrong in ["A", "=b", "LD_PRELOAD=x"] {
            assert!(key_value(wrong).is_err(), "{wrong}");
        }
    }
}
