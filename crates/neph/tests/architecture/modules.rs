//! Owns which module of a crate uses which, read from its `use` lines. A module is a file. A name
//! that a module re-exports leads to the file that defines it, so that no use hides behind a parent.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Attribute, Block, Ident, ImplItemFn, Item, ItemMod, ItemUse, UseTree};

/// The segments of a module's path from the root of its crate, which has none.
type ModulePath = Vec<String>;

/// For each module those that it uses, and by which names.
pub(crate) type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What a module, in a file or inline, defines and imports.
#[derive(Default)]
struct Scope {
    is_file: bool,
    names: BTreeSet<String>,
    imports: Vec<Import>,
}

struct Import {
    path: Vec<String>,
    /// The name in this module; none for a glob.
    name: Option<String>,
    /// A `use` inside a function names nothing for other modules.
    in_body: bool,
}

/// Where a path leads.
struct Target {
    module: ModulePath,
    /// Whether the path names the module itself, not an item in it.
    is_module: bool,
}

/// The modules of one crate, without its tests.
pub(crate) struct Modules(BTreeMap<ModulePath, Scope>);

impl Modules {
    /// Reads the files of a crate: paths below `src`, with their text.
    pub(crate) fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut reader = Reader::default();
        for (path, text) in files {
            if is_test_file(path) {
                continue;
            }
            let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
            reader.module = module_path(path);
            reader.scope().is_file = true;
            reader.visit_file(&file);
        }
        let Reader {
            mut scopes, tests, ..
        } = reader;
        scopes.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
        Self(scopes)
    }

    /// Which module uses which. A module and its own ancestor or descendant are one family, whose
    /// uses do not count.
    pub(crate) fn uses(&self) -> Uses {
        let mut graph = Uses::new();
        for (scope, content) in &self.0 {
            let user = self.file_of(scope);
            for import in &content.imports {
                let Some(target) = self.resolve(scope, &import.path, &mut BTreeSet::new()) else {
                    continue;
                };
                let owner = self.file_of(&target.module);
                if owner.starts_with(user) || user.starts_with(owner) {
                    continue;
                }
                let names = graph.entry(user.join("::")).or_default();
                let names = names.entry(owner.join("::")).or_default();
                names.extend(import.path.last().cloned());
            }
        }
        graph
    }

    /// The module of the file that holds `scope`.
    fn file_of<'a>(&self, mut scope: &'a [String]) -> &'a [String] {
        while let [parents @ .., _] = scope
            && !self.0.get(scope).is_some_and(|scope| scope.is_file)
        {
            scope = parents;
        }
        scope
    }

    /// Where `path` leads when it is written in `scope`; none for other crates. `seen` ends
    /// re-exports that lead back to themselves.
    fn resolve(
        &self,
        scope: &[String],
        path: &[String],
        visited: &mut BTreeSet<(ModulePath, Vec<String>)>,
    ) -> Option<Target> {
        if !visited.insert((scope.to_vec(), path.to_vec())) {
            return None;
        }
        let (mut module, mut rest) = (scope.to_vec(), path);
        match rest.first()?.as_str() {
            "crate" => (module, rest) = (ModulePath::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while let ["super", ..] = rest.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                    module.pop();
                    rest = &rest[1..];
                }
            }
            first if !self.is_known(scope, first) => return None,
            _ => {}
        }
        while let Some((name, after)) = rest.split_first() {
            let child = [&module[..], std::slice::from_ref(name)].concat();
            if !self.0.contains_key(&child) {
                let imported = self.follow_imports(&module, rest, visited);
                let here = Target {
                    module,
                    is_module: false,
                };
                return Some(imported.unwrap_or(here));
            }
            (module, rest) = (child, after);
        }
        Some(Target {
            module,
            is_module: true,
        })
    }

    /// Where `path` leads from `module` when its first name is imported there. A private `use`
    /// counts too: children see it.
    fn follow_imports(
        &self,
        module: &[String],
        path: &[String],
        visited: &mut BTreeSet<(ModulePath, Vec<String>)>,
    ) -> Option<Target> {
        let scope = self.0.get(module)?;
        let (name, after) = path.split_first()?;
        if scope.names.contains(name) {
            return None;
        }
        let imports = || scope.imports.iter().filter(|import| !import.in_body);
        for import in imports().filter(|import| import.name.as_ref() == Some(name)) {
            let full_path = [&import.path[..], after].concat();
            if let Some(target) = self.resolve(module, &full_path, visited) {
                return Some(target);
            }
        }
        for glob in imports().filter(|import| import.name.is_none()) {
            if let Some(target) = self.resolve(module, &glob.path, visited)
                && target.is_module
                && self.is_known(&target.module, name)
            {
                let path = [&["self".to_owned()], path].concat();
                return self.resolve(&target.module, &path, visited);
            }
        }
        None
    }

    /// Whether `name` means something in `scope`, by an item, a child module or an import.
    fn is_known(&self, scope: &[String], name: &str) -> bool {
        let child = [scope, &[name.to_owned()]].concat();
        self.0.contains_key(&child)
            || self.0.get(scope).is_some_and(|scope| {
                let mut imports = scope.imports.iter();
                scope.names.contains(name)
                    || imports.any(|import| import.name.as_deref() == Some(name))
            })
    }
}

/// The module of a file below `src`.
fn module_path(file: &str) -> ModulePath {
    let mut path: ModulePath = file
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if matches!(
        path.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        path.pop();
    }
    path
}

pub(crate) fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests")
        || path.ends_with("_tests.rs")
        || path.ends_with("/tests.rs")
        || path == "tests.rs"
}

/// Collects the scopes of the files that it visits.
#[derive(Default)]
struct Reader {
    scopes: BTreeMap<ModulePath, Scope>,
    /// Modules in files of their own that are declared under `#[cfg(test)]`.
    tests: BTreeSet<ModulePath>,
    module: ModulePath,
    blocks: usize,
}

impl Reader {
    fn scope(&mut self) -> &mut Scope {
        self.scopes.entry(self.module.clone()).or_default()
    }

    fn child(&self, name: &Ident) -> ModulePath {
        [&self.module[..], &[name.to_string()]].concat()
    }

    /// Adds what `tree` imports below `path`.
    fn import(&mut self, path: &[String], tree: &UseTree) {
        let below = |name: &Ident| [path, &[name.to_string()]].concat();
        let (path, name) = match tree {
            UseTree::Path(tree) => return self.import(&below(&tree.ident), &tree.tree),
            UseTree::Group(group) => {
                let trees = group.items.iter();
                return trees.for_each(|tree| self.import(path, tree));
            }
            UseTree::Glob(_) => (path.to_vec(), None),
            UseTree::Name(tree) if tree.ident == "self" => (path.to_vec(), path.last().cloned()),
            UseTree::Name(tree) => (below(&tree.ident), Some(tree.ident.to_string())),
            UseTree::Rename(tree) if tree.ident == "self" => {
                (path.to_vec(), Some(tree.rename.to_string()))
            }
            UseTree::Rename(tree) => (below(&tree.ident), Some(tree.rename.to_string())),
        };
        let in_body = self.blocks > 0;
        self.scope().imports.push(Import {
            path,
            name,
            in_body,
        });
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = attributes_and_name(item);
        if attributes.iter().any(is_cfg_test) {
            if let Item::Mod(module) = item {
                self.tests.insert(self.child(&module.ident));
            }
            return;
        }
        if let Some(name) = name
            && self.blocks == 0
        {
            self.scope().names.insert(name.to_string());
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !function.attrs.iter().any(is_cfg_test) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.blocks += 1;
        visit::visit_block(self, block);
        self.blocks -= 1;
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if module.content.is_some() {
            self.module = self.child(&module.ident);
            self.scope();
            visit::visit_item_mod(self, module);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        // A path that begins with `::` names another crate.
        if item.leading_colon.is_none() {
            self.import(&[], &item.tree);
        }
    }
}

pub(crate) fn is_cfg_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute
            .parse_args::<Ident>()
            .is_ok_and(|option| option == "test")
}

/// The attributes of an item and the name that it defines. Modules and imports define none here:
/// they have places of their own in a scope.
fn attributes_and_name(item: &Item) -> (&[Attribute], Option<&Ident>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Impl(item) => (&item.attrs, None),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Mod(item) => (&item.attrs, None),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Use(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}
