//! Races of a sweep: every combination of the values, inserted into commands and settings.

use heapdrome_schema::{Options, SweptParameter};

use crate::failure::Failure;
use crate::placement;
use crate::race::cell::Load;
use crate::workload::{Asked, THREADS};

/// Maximum number of races in one sweep.
const MOST_RACES: usize = 64;

/// Prefix of a parameter that is an environment variable.
pub const VARIABLE: &str = "env:";

/// One race of a sweep.
pub struct Point {
    /// Name of the cell, such as `threads=2` or `jobs=2 size=64`.
    pub cell: String,
    /// Value of each parameter, in order.
    pub values: Vec<String>,
    /// Command or workload of the race.
    pub load: Load,
    /// Settings of each run of the race.
    pub options: Options,
}

/// Checks the swept parameters. `pinned` states whether the command is explicitly pinned to
/// processors.
///
/// # Errors
/// When a parameter or a value is given twice, threads are swept although the command is pinned, or
/// there are too many races.
pub fn check_parameters(all: &[SweptParameter], pinned: bool) -> Result<(), Failure> {
    for (place, one) in all.iter().enumerate() {
        if all[..place].iter().any(|other| other.name == one.name) {
            return Err(Failure::Usage(format!("{} is swept twice", one.name)));
        }
        let mut values = one.values.iter().enumerate();
        if let Some((_, twice)) = values.find(|(place, value)| one.values[..*place].contains(value))
        {
            return Err(Failure::Usage(format!(
                "{}: {twice} is given twice",
                one.name
            )));
        }
    }
    if pinned && all.iter().any(|one| one.name == THREADS) {
        return Err(Failure::usage(
            "a sweep of threads pins the command to as many processors, so it takes no --pin",
        ));
    }
    let races = all.iter().map(|one| one.values.len()).product::<usize>();
    if races > MOST_RACES {
        return Err(Failure::Usage(format!(
            "the sweeps make {races} races; one result holds at most {MOST_RACES}, so sweep fewer values"
        )));
    }
    Ok(())
}

/// Returns the position of the parameter that curves follow: the first with several values, or else
/// the first.
pub fn along(parameters: &[SweptParameter]) -> usize {
    let several = |one: &SweptParameter| one.values.len() > 1;
    parameters.iter().position(several).unwrap_or(0)
}

/// Returns a race for every combination of values. The last parameter varies fastest.
///
/// # Errors
/// When a value does not suit the workload, or its parameter does not occur in the command. Also
/// when `--env` sets a swept variable, or there is no command.
pub fn points(
    load: &Load,
    parameters: &[SweptParameter],
    options: &Options,
) -> Result<Vec<Point>, Failure> {
    let mut combinations: Vec<Vec<String>> = vec![Vec::new()];
    for parameter in parameters {
        let longer = |start: &Vec<String>| {
            let values = parameter.values.iter();
            let each = values.map(|value| [start.as_slice(), std::slice::from_ref(value)].concat());
            each.collect::<Vec<_>>()
        };
        combinations = combinations.iter().flat_map(longer).collect();
    }
    let point = |values: Vec<String>| point(load, parameters, options, values);
    combinations.into_iter().map(point).collect()
}

fn point(
    load: &Load,
    parameters: &[SweptParameter],
    options: &Options,
    values: Vec<String>,
) -> Result<Point, Failure> {
    let mut options = options.clone();
    let named: Vec<(&str, &String)> = parameters
        .iter()
        .map(|parameter| parameter.name.as_str())
        .zip(&values)
        .collect();
    for (name, value) in &named {
        if let Some(variable) = name.strip_prefix(VARIABLE) {
            let set = options
                .environment
                .insert(variable.to_owned(), (*value).clone());
            if set.is_some() {
                return Err(Failure::Usage(format!(
                    "--sweep {name}: --env sets the same variable"
                )));
            }
        }
        if *name == THREADS {
            let threads = value.parse().ok().filter(|threads| *threads > 0);
            let threads = threads.ok_or_else(|| {
                Failure::Usage(format!(
                    "--sweep threads: '{value}' is not a number of threads"
                ))
            })?;
            options.pin = placement::processors(threads);
        }
    }
    let own: Vec<_> = named
        .iter()
        .filter(|(name, _)| !name.starts_with(VARIABLE))
        .copied()
        .collect();
    let load = match load {
        Load::Workload { name, words, quick } => of_workload(name, words, *quick, &own)?,
        Load::Command(words) => of_command(words, &own, &mut options)?,
    };
    let cells = named.iter().map(|(name, value)| format!("{name}={value}"));
    Ok(Point {
        cell: cells.collect::<Vec<_>>().join(" "),
        values,
        load,
        options,
    })
}

/// Returns the workload with its parameters set to these values.
fn of_workload(
    name: &str,
    words: &[String],
    quick: bool,
    own: &[(&str, &String)],
) -> Result<Load, Failure> {
    let is_set = |word: &String, name: &str| {
        word.split_once('=')
            .is_some_and(|(parameter, _)| parameter == name)
    };
    let mut words = words.to_vec();
    words.retain(|word| !own.iter().any(|(name, _)| is_set(word, name)));
    let rest = own.iter().filter(|(name, _)| *name != THREADS);
    words.extend(rest.map(|(name, value)| format!("{name}={value}")));
    let mut asked = Asked::parse(name, &words, quick)?;
    if let Some((_, threads)) = own.iter().find(|(name, _)| *name == THREADS) {
        asked = asked.with_threads(threads.parse().map_err(Failure::usage)?)?;
    }
    Ok(Load::Workload {
        name: asked.name().to_owned(),
        words: asked.words(),
        quick: false,
    })
}

/// Replaces the placeholders in the command, and in the other commands of the race such as
/// `--prepare`.
fn of_command(
    words: &[String],
    own: &[(&str, &String)],
    options: &mut Options,
) -> Result<Load, Failure> {
    let mut command = words.to_vec();
    for (name, value) in own {
        let placeholder = format!("{{{name}}}");
        let mut found = false;
        let mut fill = |text: &mut String| {
            found |= text.contains(&placeholder);
            *text = text.replace(&placeholder, value);
        };
        command.iter_mut().for_each(&mut fill);
        let around = [
            &mut options.setup,
            &mut options.prepare,
            &mut options.cleanup,
            &mut options.check,
        ];
        around.into_iter().flatten().for_each(&mut fill);
        if let Some(server) = &mut options.server {
            fill(&mut server.serve);
            fill(&mut server.ready);
        }
        if !found {
            let option = match *name {
                THREADS => "-t".to_owned(),
                name => format!("--sweep {name}"),
            };
            return Err(Failure::Usage(format!(
                "{option}: the command has no {placeholder} where its values belong; write it there, \
                 name a workload with -w, or sweep env:{name} for a variable"
            )));
        }
    }
    if command.is_empty() {
        return Err(Failure::usage(
            "there is no command to race; write: heapdrome race --sweep NAME=1,2 -- COMMAND, or -w \
             WORKLOAD",
        ));
    }
    Ok(Load::Command(command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::usual_options;

    fn command(words: &[&str]) -> Load {
        Load::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn workload() -> Load {
        Load::Workload {
            name: "rptest".to_owned(),
            words: Vec::new(),
            quick: true,
        }
    }

    fn parameter(text: &&str) -> SweptParameter {
        let (name, values) = text.split_once('=').expect("a name and values");
        SweptParameter {
            name: name.to_owned(),
            values: values.split(',').map(str::to_owned).collect(),
        }
    }

    fn swept_with(load: &Load, sweeps: &[&str], options: &Options) -> Result<Vec<Point>, Failure> {
        let parameters: Vec<_> = sweeps.iter().map(parameter).collect();
        check_parameters(&parameters, false)?;
        points(load, &parameters, options)
    }

    fn swept(load: &Load, sweeps: &[&str]) -> Vec<Point> {
        swept_with(load, sweeps, &usual_options()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_combination_is_a_race() {
        let points = swept(&command(&["make", "-j{jobs}"]), &["jobs=1,4", "env:A=x,y"]);
        let cells: Vec<&str> = points.iter().map(|point| point.cell.as_str()).collect();
        assert_eq!(
            cells,
            [
                "jobs=1 env:A=x",
                "jobs=1 env:A=y",
                "jobs=4 env:A=x",
                "jobs=4 env:A=y"
            ]
        );
        let Load::Command(command) = &points[3].load else {
            panic!("a command");
        };
        assert_eq!(command[1], "-j4");
        assert_eq!(points[3].options.environment["A"], "y");
        assert_eq!(points[3].values, ["4", "y"]);
    }

    #[test]
    fn a_workload_has_parameters_instead_of_placeholders() {
        let points = swept(&workload(), &["threads=1,2", "blocks=100,200"]);
        assert_eq!(points.len(), 4);
        let Load::Workload { words, .. } = &points[3].load else {
            panic!("a workload");
        };
        for word in ["threads=2", "blocks=200"] {
            assert!(words.iter().any(|own| own == word), "{words:?}");
        }
    }

    #[test]
    fn what_cannot_be_swept_is_refused() {
        let refused = |load: &Load, sweeps: &[&str], options: &Options, told: &str| {
            let error = swept_with(load, sweeps, options).err();
            let error = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(told), "{sweeps:?}: {error}");
        };
        let make = command(&["make", "{jobs}"]);
        let usual = usual_options();
        refused(&make, &["job=1,2"], &usual, "no {job}");
        refused(&make, &["jobs=1,1"], &usual, "given twice");
        refused(&make, &["jobs=1", "jobs=2"], &usual, "swept twice");
        refused(&make, &["threads=1,2"], &usual, "no {threads}");
        refused(&command(&[]), &["env:A=1,2"], &usual, "no command");
        refused(&workload(), &["nothing=1,2"], &usual, "nothing");
        let mut with_variable = usual_options();
        let variable = ("A".to_owned(), "1".to_owned());
        with_variable.environment.extend([variable]);
        let sweeps = ["env:A=1,2", "jobs=1"];
        refused(&make, &sweeps, &with_variable, "--env sets the same");
        let many: Vec<String> = (0..65).map(|value| value.to_string()).collect();
        let many = format!("jobs={}", many.join(","));
        refused(&make, &[&many], &usual, "at most 64");
        let threads = [parameter(&"threads=1,2")];
        let pinned = check_parameters(&threads, true).expect_err("a contradiction");
        assert!(pinned.to_string().contains("no --pin"), "{pinned}");
    }
}
