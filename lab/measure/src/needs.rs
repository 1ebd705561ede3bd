//! Resources that a plan's commands need, determined before the first run.

use std::path::PathBuf;

use heapdrome_schema::Plan;

use crate::output::{self, Masks, Pattern};
use crate::{BaseEnvironment, MeasureError, base_environment, command};

/// Environment, patterns, masks and files of a plan's commands.
pub(crate) struct Needs {
    pub(crate) base: BaseEnvironment,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) masks: Masks,
    pub(crate) directory: PathBuf,
    /// Files of the command, after their lookup.
    files: Option<Files>,
}

/// Files of the measured command, at their resolved paths.
#[derive(Clone)]
pub(crate) struct Files {
    pub(crate) stdin: PathBuf,
    pub(crate) program: PathBuf,
}

impl Needs {
    /// Derives the needs that follow from `plan` and from this process's environment.
    /// [`Needs::find`] looks up files and folders.
    pub(crate) fn of(plan: &Plan) -> Result<Self, MeasureError> {
        Ok(Self {
            base: base_environment(plan),
            patterns: output::patterns(&plan.options.metrics)?,
            masks: Masks::of(&plan.options)?,
            directory: plan.directory(),
            files: None,
        })
    }

    /// Looks up the working folder and the command's files, unless already done.
    pub(crate) fn find(&mut self, plan: &Plan) -> Result<Files, MeasureError> {
        if let Some(files) = &self.files {
            return Ok(files.clone());
        }
        command::check_directory(&self.directory)?;
        let word = plan.command.first().map_or("", String::as_str);
        let files = Files {
            program: command::program(word, &self.directory, &self.base.variables)?,
            stdin: command::stdin(plan)?,
        };
        Ok(self.files.insert(files).clone())
    }
}
