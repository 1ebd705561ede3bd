//! Symbol table of a file. It finds the function that contains an address.

use std::borrow::Cow;

use object::{Object, ObjectSymbol, SymbolKind};

/// A function: the range of its code, and its symbol.
struct Function {
    address: u64,
    /// Bytes of its code; 0 if the table does not say so.
    size: u64,
    name: String,
}

/// The functions of one file, by address.
pub(crate) struct Table(Vec<Function>);

impl Table {
    /// Reads the functions of a file from its symbol table, or from its dynamic one if the file was
    /// stripped.
    pub(crate) fn of<'data>(file: &impl Object<'data>) -> Self {
        let mut functions = read(file.symbols());
        if functions.is_empty() {
            functions = read(file.dynamic_symbols());
        }
        functions.sort_by_key(|one| (one.address, one.size));
        Self(functions)
    }

    /// Whether the file has no functions.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the decoded name of the function that contains an address.
    pub(crate) fn name(&self, address: u64) -> Option<String> {
        let next = self.0.partition_point(|one| one.address <= address);
        let function = self.0.get(next.checked_sub(1)?)?;
        let lies_in = function.size == 0 || address - function.address < function.size;
        lies_in.then(|| {
            // A name may carry the version of its symbol, such as `malloc@@GLIBC_2.2.5`.
            let name = function.name.split('@').next().unwrap_or_default();
            addr2line::demangle_auto(Cow::Borrowed(name), None).into_owned()
        })
    }
}

fn read<'data, S: ObjectSymbol<'data>>(symbols: impl Iterator<Item = S>) -> Vec<Function> {
    let functions = symbols.filter(|one| one.kind() == SymbolKind::Text && one.is_definition());
    let function = |one: S| {
        let name = one.name().ok()?;
        (!name.is_empty()).then(|| Function {
            address: one.address(),
            size: one.size(),
            name: name.to_owned(),
        })
    };
    functions.filter_map(function).collect()
}
