//! Numbers the stacks and modules of a trace, and writes each once.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use heapdrome_trace::{Frame, Module, Record, Stack, TraceError, Writer};
use rustc_hash::FxHashMap;

use crate::mappings::FileName;
use crate::module::CodeFile;

/// The stacks and modules that all processes of a trace share.
#[derive(Default)]
pub(crate) struct Stacks {
    /// Files that were requested so far; `None` for a file that cannot be read.
    files: HashMap<FileName, Option<Arc<CodeFile>>>,
    modules: HashMap<FileName, u32>,
    stacks: FxHashMap<Vec<Frame>, u32>,
}

impl Stacks {
    /// Returns a file that a process has mapped, and reads it on first use.
    pub(crate) fn file(&mut self, name: &FileName, pid: Option<u32>) -> Option<Arc<CodeFile>> {
        if let Some(known) = self.files.get(name) {
            return known.clone();
        }
        let file = CodeFile::read(name, pid).map(Arc::new);
        self.files.insert(name.clone(), file.clone());
        file
    }

    /// Returns the number of a module. Writes the module if it is new.
    pub(crate) fn module<W: Write>(
        &mut self,
        file: &CodeFile,
        writer: &mut Writer<W>,
    ) -> Result<u32, TraceError> {
        if let Some(&number) = self.modules.get(&file.name) {
            return Ok(number);
        }
        let module = self.modules.len() as u32;
        writer.record(Record::Module(Module {
            module,
            path: file.name.path.to_string_lossy().into_owned(),
            build_id: file.build_id.clone(),
        }))?;
        self.modules.insert(file.name.clone(), module);
        Ok(module)
    }

    /// Returns the number of a stack. Writes the stack if it is new.
    pub(crate) fn stack<W: Write>(
        &mut self,
        frames: Vec<Frame>,
        writer: &mut Writer<W>,
    ) -> Result<u32, TraceError> {
        if let Some(&number) = self.stacks.get(&frames) {
            return Ok(number);
        }
        let stack = self.stacks.len() as u32;
        let record = Stack {
            stack,
            frames: frames.clone(),
        };
        writer.record(Record::Stack(record))?;
        self.stacks.insert(frames, stack);
        Ok(stack)
    }
}
