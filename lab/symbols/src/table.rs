//! Symbol table of a file, which finds the function that contains an address.

use std::borrow::Cow;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// A function: the range of its code, and its symbol.
struct Function {
    address: u64,
    /// Size of the code in bytes; 0 if the table does not contain the size.
    size: u64,
    /// End of the address range that gets the function's name.
    end: u64,
    name: String,
}

/// The functions of one file, sorted by address.
pub(crate) struct Table(Vec<Function>);

impl Table {
    /// Reads the functions of a file from its symbol table, or from its dynamic symbol table if the
    /// file was stripped.
    ///
    /// A function without a size extends to the next function of its section, or to the section's
    /// end. In the dynamic table, such a function has only its own address, because the table may
    /// lack the functions that follow.
    pub(crate) fn of<'data>(file: &impl Object<'data>) -> Self {
        let mut functions = read(file.symbols(), |symbol| {
            let section = file.section_by_index(symbol.section_index()?).ok()?;
            section.address().checked_add(section.size())
        });
        if functions.is_empty() {
            functions = read(file.dynamic_symbols(), |_| None);
        }
        functions.sort_by_key(|one| (one.address, one.size));
        Self(functions)
    }

    /// Returns whether the table has no functions.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the decoded name of the function that contains an address.
    pub(crate) fn name(&self, address: u64) -> Option<String> {
        let next = self.0.partition_point(|one| one.address <= address);
        let function = self.0.get(next.checked_sub(1)?)?;
        (address < function.end).then(|| {
            // A name may carry the version of its symbol, such as `malloc@@GLIBC_2.2.5`.
            let name = function.name.split('@').next().unwrap_or_default();
            addr2line::demangle_auto(Cow::Borrowed(name), None).into_owned()
        })
    }
}

/// Reads the functions of a table. `unsized_end` returns the end of a function without a size, or
/// `None` if the function has only its own address.
fn read<'data, S: ObjectSymbol<'data>>(
    symbols: impl Iterator<Item = S>,
    unsized_end: impl Fn(&S) -> Option<u64>,
) -> Vec<Function> {
    let functions = symbols.filter(|one| one.kind() == SymbolKind::Text && one.is_definition());
    let function = |one: S| {
        let name = one.name().ok()?;
        let (address, size) = (one.address(), one.size());
        let end = match size {
            0 => unsized_end(&one).unwrap_or(address.saturating_add(1)),
            size => address.saturating_add(size),
        };
        (!name.is_empty()).then(|| Function {
            address,
            size,
            end,
            name: name.to_owned(),
        })
    };
    functions.filter_map(function).collect()
}
