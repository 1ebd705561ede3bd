//! Reads the modules of a crate and the paths between them from its sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Path of a module from the crate's root, which itself has an empty path.
pub type Module = Vec<String>;

/// Modules of one crate and the paths in them. Code under `cfg(test)` is excluded: a test may use
/// all of its crate.
#[derive(Default)]
pub struct Crate {
    /// File of each module; a module within a file has the file of its parent.
    pub files: BTreeMap<Module, PathBuf>,
    /// Path of each name that a module imports or re-exports, as written.
    imports: BTreeMap<(Module, String), Vec<String>>,
    /// Every import of each module and every path of at least two words in it, as written.
    paths: BTreeSet<(Module, Vec<String>)>,
}

impl Crate {
    /// Reads a crate from its root file.
    pub fn read(root: &Path) -> Self {
        let mut whole = Self::default();
        let folder = root.parent().expect("a file lies in a folder");
        whole.read_file(Vec::new(), root, folder);
        whole
    }

    /// Returns all references between modules, as pairs of the referring and the referenced module.
    pub fn references(&self) -> BTreeSet<(Module, Module)> {
        let found = self.paths.iter().filter_map(|(from, path)| {
            let to = self.resolve(self.absolute(from, path)?);
            (to != *from).then(|| (from.clone(), to))
        });
        found.collect()
    }

    fn read_file(&mut self, module: Module, file: &Path, children: &Path) {
        let text = std::fs::read_to_string(file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let tokens = TokenStream::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.files.insert(module.clone(), file.to_owned());
        self.walk(&module, tokens, file, children);
    }

    /// Reads the items and the code of a module; the files of its own modules are in `children`.
    fn walk(&mut self, module: &Module, tokens: TokenStream, file: &Path, children: &Path) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let mut moved = None;
        while at < tokens.len() {
            if let Some(attribute) = attribute(&tokens[at..]) {
                at += 2;
                if is_for_tests(&attribute) {
                    at += length_of_item(&tokens[at..]);
                } else {
                    moved = path_of(attribute).or(moved);
                }
            } else if let Some((name, body)) = declaration(&tokens[at..]) {
                let mut child = module.clone();
                child.push(name.clone());
                let inside = children.join(&name);
                match body {
                    Some(body) => {
                        self.files.insert(child.clone(), file.to_owned());
                        self.walk(&child, body, file, &inside);
                    }
                    None => self.read_child(child, file, children, moved.take()),
                }
                at += 3;
            } else if let Some(tree) = use_tree(&tokens[at..]) {
                self.import(module, &[], tree);
                at += 1 + tree.len();
            } else if let TokenTree::Group(group) = &tokens[at] {
                self.walk(module, group.stream(), file, children);
                at += 1;
            } else {
                let (path, length) = path(&tokens[at..]);
                if path.len() > 1 {
                    self.paths.insert((module.clone(), path));
                }
                at += length.max(1);
            }
        }
    }

    fn read_child(&mut self, child: Module, file: &Path, children: &Path, moved: Option<String>) {
        let name = child.last().expect("a child has a name").clone();
        let (flat, folder) = (children.join(format!("{name}.rs")), children.join(&name));
        match moved {
            Some(path) => {
                let own = file.parent().expect("a file lies in a folder").join(path);
                self.read_file(child, &own, &folder);
            }
            None if flat.is_file() => self.read_file(child, &flat, &folder),
            None => self.read_file(child, &folder.join("mod.rs"), &folder),
        }
    }

    /// Records the imports of the tree after `use`. `before` is the path that precedes the tree.
    fn import(&mut self, module: &Module, before: &[String], tree: &[TokenTree]) {
        let (words, length) = path(tree);
        let path = [before, &words].concat();
        match &tree[length..] {
            [TokenTree::Group(group)] => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                for one in inside.split(|token| is_punct(token, ',')) {
                    self.import(module, &path, one);
                }
                return;
            }
            [TokenTree::Ident(r#as), name] if r#as == "as" => {
                let name = word(name).expect("a name follows `as`");
                self.imports
                    .insert((module.clone(), name), without_self(&path));
            }
            _ => {
                let path = without_self(&path);
                if let Some(name) = path.last() {
                    self.imports
                        .insert((module.clone(), name.clone()), path.clone());
                }
            }
        }
        self.paths.insert((module.clone(), without_self(&path)));
    }

    /// Returns a path of the module `from` as seen from the crate's root; `None` if it leads out of
    /// the crate, or to something that belongs to no module.
    fn absolute(&self, from: &Module, path: &[String]) -> Option<Vec<String>> {
        let mut at = from.clone();
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()?),
            name => {
                at.push(name.to_owned());
                if !self.files.contains_key(&at) {
                    let imported = self.imports.get(&(from.clone(), name.to_owned()))?;
                    // An import whose path begins with its own name, such as `use name::name`,
                    // leads to another crate.
                    let own = imported.first().is_some_and(|first| first != name);
                    at = own.then(|| self.absolute(from, imported))??;
                }
            }
        }
        let ups = rest.iter().take_while(|name| *name == "super").count();
        at.truncate(at.len().checked_sub(ups)?);
        at.extend_from_slice(&rest[ups..]);
        Some(at)
    }

    /// Returns the module that defines the target of a path, not one that re-exports it.
    fn resolve(&self, path: Vec<String>) -> Module {
        let mut path = path;
        // Real chains of re-exports are shorter. The limit also stops at a name that refers to
        // itself.
        for _ in 0..16 {
            let mut lengths = (0..=path.len()).rev();
            let length = lengths.find(|length| self.files.contains_key(&path[..*length]));
            let module = path[..length.expect("the root is a module")].to_vec();
            let Some(name) = path.get(module.len()) else {
                return module;
            };
            let imported = self.imports.get(&(module.clone(), name.clone()));
            let Some(imported) = imported.and_then(|one| self.absolute(&module, one)) else {
                return module;
            };
            let rest = path.split_off(module.len() + 1);
            path = [imported, rest].concat();
        }
        Module::new()
    }
}

/// Removes `{self}` at the end of an import, which stands for its prefix.
fn without_self(path: &[String]) -> Vec<String> {
    match path.split_last() {
        Some((last, before)) if last == "self" && !before.is_empty() => before.to_vec(),
        _ => path.to_vec(),
    }
}

fn word(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(one) if one.as_char() == wanted)
}

/// Returns the tokens in the brackets of an attribute, if `tokens` begin with one.
fn attribute(tokens: &[TokenTree]) -> Option<TokenStream> {
    match tokens {
        [hash, TokenTree::Group(group), ..]
            if is_punct(hash, '#') && group.delimiter() == Delimiter::Bracket =>
        {
            Some(group.stream())
        }
        _ => None,
    }
}

fn is_for_tests(attribute: &TokenStream) -> bool {
    attribute.to_string().replace(' ', "") == "cfg(test)"
}

/// Returns the file that an attribute `path = "..."` names.
fn path_of(attribute: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    match tokens.as_slice() {
        [name, equals, TokenTree::Literal(file)]
            if word(name).as_deref() == Some("path") && is_punct(equals, '=') =>
        {
            Some(file.to_string().trim_matches('"').to_owned())
        }
        _ => None,
    }
}

/// Returns the number of tokens of one item with its attributes. An item ends with a semicolon, a
/// comma or a body in braces.
fn length_of_item(tokens: &[TokenTree]) -> usize {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => is_punct(other, ';') || is_punct(other, ','),
    };
    let end = tokens.iter().position(is_end);
    end.map_or(tokens.len(), |end| end + 1)
}

/// Returns the name of the module that `tokens` declare first, with its body if that is in this
/// file.
fn declaration(tokens: &[TokenTree]) -> Option<(String, Option<TokenStream>)> {
    let [first, name, body, ..] = tokens else {
        return None;
    };
    if word(first).as_deref() != Some("mod") {
        return None;
    }
    match body {
        TokenTree::Group(group) => Some((word(name)?, Some(group.stream()))),
        other if is_punct(other, ';') => Some((word(name)?, None)),
        _ => None,
    }
}

/// Returns the tokens of the imported tree, if `tokens` begin with a `use`. In a bound, `use<...>`
/// imports nothing.
fn use_tree(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    let (first, rest) = tokens.split_first()?;
    let is_import = word(first)? == "use" && !is_punct(rest.first()?, '<');
    let length = rest.iter().take_while(|one| !is_punct(one, ';')).count();
    is_import.then_some(&rest[..length])
}

/// Returns the words of the path at the beginning of `tokens`, and its number of tokens, including
/// a trailing `::`.
fn path(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(word) = tokens.get(at).and_then(word) {
        words.push(word);
        at += 1;
        let colons = tokens[at..].iter().take(2);
        if colons.filter(|token| is_punct(token, ':')).count() < 2 {
            break;
        }
        at += 2;
    }
    (words, at)
}
