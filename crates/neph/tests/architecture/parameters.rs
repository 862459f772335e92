//! Holds that a function has at most five parameters, and that no tuple hides some of them.
//!
//! The rule for tuples: one whose components all have one type is a value of its own, as a range (from,
//! until), a point (x, y), two ends or two sizes. One whose components differ in type bundles parameters;
//! they stand alone, or a struct names what they are together. Closures are free: their items come from
//! iterators.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{
    FnArg, GenericArgument, ImplItemFn, Item, ItemFn, ItemImpl, ItemMod, PathArguments,
    PathSegment, Signature, TraitItemFn, Type,
};

use crate::modules::{is_cfg_test, is_test_file};
use crate::sources;

/// Parameters of a function, `self` included.
const MAX_PARAMETERS: usize = 5;

/// The functions of a file that break the rule, and the modules that it declares for tests only.
#[derive(Default)]
struct ParameterRule {
    functions: Vec<String>,
    test_modules: BTreeSet<String>,
}

impl ParameterRule {
    fn check(&mut self, signature: &Signature) {
        let has_mixed_tuple = signature.inputs.iter().any(|input| match input {
            FnArg::Receiver(_) => false,
            FnArg::Typed(typed) => is_mixed_tuple(&typed.ty),
        });
        if has_mixed_tuple || signature.inputs.len() > MAX_PARAMETERS {
            self.functions.push(signature.ident.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for ParameterRule {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(ItemFn { attrs, .. }) | Item::Mod(ItemMod { attrs, .. }) => attrs.as_slice(),
            Item::Impl(item_impl) => &item_impl.attrs,
            _ => &[],
        };
        if !attributes.iter().any(is_cfg_test) {
            visit::visit_item(self, item);
        } else if let Item::Mod(module) = item {
            self.test_modules.insert(module.ident.to_string());
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.check(&function.sig);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !function.attrs.iter().any(is_cfg_test) {
            self.check(&function.sig);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        // What a trait asks for is judged where the trait is ours.
        let count_before = self.functions.len();
        visit::visit_item_impl(self, block);
        if block.trait_.is_some() {
            self.functions.truncate(count_before);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        self.check(&function.sig);
        visit::visit_trait_item_fn(self, function);
    }
}

/// Whether a parameter of this type is a tuple of components that differ in type.
fn is_mixed_tuple(parameter: &Type) -> bool {
    match parameter {
        Type::Reference(reference) => is_mixed_tuple(&reference.elem),
        Type::Paren(inner) => is_mixed_tuple(&inner.elem),
        Type::Tuple(tuple) => tuple
            .elems
            .iter()
            .skip(1)
            .any(|other| !is_same(&tuple.elems[0], other)),
        _ => false,
    }
}

/// Whether two types are written alike, lifetimes aside.
fn is_same(first: &Type, other: &Type) -> bool {
    match (first, other) {
        (Type::Reference(first), Type::Reference(other)) => {
            first.mutability.is_some() == other.mutability.is_some()
                && is_same(&first.elem, &other.elem)
        }
        (Type::Slice(first), Type::Slice(other)) => is_same(&first.elem, &other.elem),
        (Type::Tuple(first), Type::Tuple(other)) => {
            first.elems.len() == other.elems.len()
                && first
                    .elems
                    .iter()
                    .zip(&other.elems)
                    .all(|(a, b)| is_same(a, b))
        }
        (Type::Path(first), Type::Path(other)) => {
            let (segments, other) = (&first.path.segments, &other.path.segments);
            segments.len() == other.len()
                && segments
                    .iter()
                    .zip(other)
                    .all(|(a, b)| is_same_segment(a, b))
        }
        _ => false,
    }
}

fn is_same_segment(first: &PathSegment, other: &PathSegment) -> bool {
    let types = |segment: &PathSegment| match &segment.arguments {
        PathArguments::AngleBracketed(generic) => generic
            .args
            .iter()
            .filter_map(|argument| match argument {
                GenericArgument::Type(argument) => Some(argument.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    let (a, b) = (types(first), types(other));
    first.ident == other.ident && a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| is_same(a, b))
}

/// The functions that break the rule, by crate: file and name.
fn violations() -> BTreeMap<String, Vec<String>> {
    let mut by_crate: BTreeMap<String, Vec<(String, ParameterRule)>> = BTreeMap::new();
    for (path, text) in sources() {
        let Some((crate_name, file)) = path
            .strip_prefix("crates/")
            .and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        if is_test_file(file) {
            continue;
        }
        let mut findings = ParameterRule::default();
        let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        findings.visit_file(&syntax);
        let files = by_crate.entry(crate_name.to_owned()).or_default();
        files.push((file.to_owned(), findings));
    }
    by_crate
        .into_iter()
        .map(|(crate_name, files)| {
            let tests: BTreeSet<&String> =
                files.iter().flat_map(|file| &file.1.test_modules).collect();
            let is_test = |file: &str| {
                let module = file.trim_end_matches("/mod.rs").trim_end_matches(".rs");
                let name = module.rsplit('/').next().unwrap_or(module);
                tests.iter().any(|test| *test == name)
            };
            let program = files.iter().filter(|(file, _)| !is_test(file));
            let functions = program.flat_map(|(file, findings)| {
                let names = findings.functions.iter();
                names.map(move |name| format!("{file}: {name}"))
            });
            (crate_name, functions.collect())
        })
        .collect()
}

#[test]
fn functions_have_at_most_five_parameters_and_no_mixed_tuple() {
    let mut by_crate = violations();
    by_crate.retain(|_, functions| !functions.is_empty());
    assert!(
        by_crate.is_empty(),
        "more than {MAX_PARAMETERS} parameters, or a tuple that bundles some: {by_crate:#?}"
    );
}

#[test]
fn a_tuple_of_one_type_is_allowed_and_a_mixed_one_is_not() {
    let parse = |text: &str| syn::parse_str::<Type>(text).expect("a type");
    for value in [
        "(f64, f64)",
        "&(Option<u8>, Option<u8>)",
        "(&'a A, &'b A)",
        "()",
        "u8",
    ] {
        assert!(!is_mixed_tuple(&parse(value)), "{value}");
    }
    for mixed_tuple in [
        "(A, B)",
        "&(A, &A)",
        "(A, A, B)",
        "(Option<A>, Option<B>)",
        "(&A, &mut A)",
    ] {
        assert!(is_mixed_tuple(&parse(mixed_tuple)), "{mixed_tuple}");
    }
}
