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
const MAXIMUM: usize = 5;

/// The functions of a file that break the rule, and the modules that it declares for tests only.
#[derive(Default)]
struct RuleFindings {
    functions: Vec<String>,
    test_modules: BTreeSet<String>,
}

impl RuleFindings {
    fn check(&mut self, signature: &Signature) {
        let bundles = signature.inputs.iter().any(|input| match input {
            FnArg::Receiver(_) => false,
            FnArg::Typed(typed) => is_bundle(&typed.ty),
        });
        if bundles || signature.inputs.len() > MAXIMUM {
            self.functions.push(signature.ident.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for RuleFindings {
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
        let before = self.functions.len();
        visit::visit_item_impl(self, block);
        if block.trait_.is_some() {
            self.functions.truncate(before);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        self.check(&function.sig);
        visit::visit_trait_item_fn(self, function);
    }
}

/// Whether a parameter of this type is a tuple of components that differ in type.
fn is_bundle(of: &Type) -> bool {
    match of {
        Type::Reference(reference) => is_bundle(&reference.elem),
        Type::Paren(inner) => is_bundle(&inner.elem),
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
        (Type::Reference(type_reference), Type::Reference(other)) => {
            type_reference.mutability.is_some() == other.mutability.is_some()
                && is_same(&type_reference.elem, &other.elem)
        }
        (Type::Slice(type_slice), Type::Slice(other)) => is_same(&type_slice.elem, &other.elem),
        (Type::Tuple(type_tuple), Type::Tuple(other)) => {
            type_tuple.elems.len() == other.elems.len()
                && type_tuple
                    .elems
                    .iter()
                    .zip(&other.elems)
                    .all(|(a, b)| is_same(a, b))
        }
        (Type::Path(type_path), Type::Path(other)) => {
            let (punctuated, other) = (&type_path.path.segments, &other.path.segments);
            punctuated.len() == other.len()
                && punctuated
                    .iter()
                    .zip(other)
                    .all(|(a, b)| is_same_segment(a, b))
        }
        _ => false,
    }
}

fn is_same_segment(path_segment: &PathSegment, other: &PathSegment) -> bool {
    let types = |segment: &PathSegment| match &segment.arguments {
        PathArguments::AngleBracketed(angle_bracketed_generic_arguments) => {
            angle_bracketed_generic_arguments
                .args
                .iter()
                .filter_map(|argument| match argument {
                    GenericArgument::Type(argument) => Some(argument.clone()),
                    _ => None,
                })
                .collect()
        }
        _ => Vec::new(),
    };
    let (a, b) = (types(path_segment), types(other));
    path_segment.ident == other.ident
        && a.len() == b.len()
        && a.iter().zip(&b).all(|(a, b)| is_same(a, b))
}

/// The functions that break the rule, by crate: file and name.
fn found() -> BTreeMap<String, Vec<String>> {
    let mut by_type: BTreeMap<String, Vec<(String, RuleFindings)>> = BTreeMap::new();
    for (path, text) in sources() {
        let Some((of, inside)) = path
            .strip_prefix("crates/")
            .and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        if is_test_file(inside) {
            continue;
        }
        let mut findings = RuleFindings::default();
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        findings.visit_file(&file);
        let files = by_type.entry(of.to_owned()).or_default();
        files.push((inside.to_owned(), findings));
    }
    by_type
        .into_iter()
        .map(|(of, files)| {
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
            (of, functions.collect())
        })
        .collect()
}

#[test]
fn parameters_are_few_and_no_tuple_hides_some() {
    let mut by_type = found();
    by_type.retain(|_, functions| !functions.is_empty());
    assert!(
        by_type.is_empty(),
        "more than {MAXIMUM} parameters, or a tuple that bundles some: {by_type:#?}"
    );
}

#[test]
fn a_tuple_of_one_type_is_a_value_and_another_one_a_bundle() {
    let parse = |text: &str| syn::parse_str::<Type>(text).expect("a type");
    for value in [
        "(f64, f64)",
        "&(Option<u8>, Option<u8>)",
        "(&'a A, &'b A)",
        "()",
        "u8",
    ] {
        assert!(!is_bundle(&parse(value)), "{value}");
    }
    for bundle in [
        "(A, B)",
        "&(A, &A)",
        "(A, A, B)",
        "(Option<A>, Option<B>)",
        "(&A, &mut A)",
    ] {
        assert!(is_bundle(&parse(bundle)), "{bundle}");
    }
}
