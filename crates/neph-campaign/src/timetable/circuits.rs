//! Tasks that claim one or two hosts and nothing else: edges of a graph, whose rounds are colours.
//!
//! Colours the edges with Kempe chains: where the ends of an edge have no free colour in common, two
//! colours are exchanged along a path. Where no exchange helps, other edges make room and are placed later,
//! within a fixed number of steps. Then one more colour is taken.

use std::collections::VecDeque;

use crate::order::Generator;

use super::circuit::Circuit;
use super::mesh;

/// So many edges are looked at before one more colour is taken: some 50 ms.
const MAX_STEPS: usize = 4_000_000;
/// A table of more places than this would fill the memory: others colour such circuits.
const MAX_TABLE_CELLS: usize = 4_000_000;
/// So many pairs of free colours are tried for an edge.
const MAX_COLOUR_PAIRS: usize = 64;
/// The search for rounds always begins here, so that the same input has the same timetable.
const SEED: u64 = 0x6e65_7068;

/// Rounds in which no end occurs twice, each with the indices of its circuits; `min_rounds` is how
/// many there must be at least, no fewer than circuits at one end. `None` where there are too many of
/// both.
pub(super) fn rounds(
    circuits: &[Circuit],
    ends: usize,
    min_rounds: usize,
) -> Option<Vec<Vec<usize>>> {
    if let Some(rounds) = mesh::rounds(circuits, ends) {
        return Some(rounds);
    }
    let min_rounds = min_rounds.max(1);
    if ends.saturating_mul(min_rounds) > MAX_TABLE_CELLS {
        return None;
    }
    // With twice as many colours as circuits at one end, any two ends have a free one in common.
    (min_rounds..=min_rounds.saturating_mul(2))
        .find_map(|colours| Colouring::new(circuits, ends, colours).colour_all())
}

/// Edges with their colours so far.
struct Colouring<'c> {
    circuits: &'c [Circuit],
    colours: usize,
    /// By end, then by colour: which edge has it.
    edge_by_end: Vec<Vec<Option<usize>>>,
    colour_of: Vec<Option<usize>>,
    generator: Generator,
    steps: usize,
}

impl<'c> Colouring<'c> {
    fn new(circuits: &'c [Circuit], ends: usize, colours: usize) -> Self {
        Self {
            circuits,
            colours,
            edge_by_end: vec![vec![None; colours]; ends],
            colour_of: vec![None; circuits.len()],
            generator: Generator::seeded(SEED),
            steps: 0,
        }
    }

    /// The edges by colour; `None` if these colours were not enough.
    fn colour_all(mut self) -> Option<Vec<Vec<usize>>> {
        let mut uncoloured_edges: VecDeque<usize> = (0..self.circuits.len()).collect();
        while let Some(edge) = uncoloured_edges.pop_front() {
            if self.colour_edge(edge) {
                continue;
            }
            if self.steps > MAX_STEPS {
                return None;
            }
            uncoloured_edges.extend(self.make_room(edge));
        }
        let mut by_colour = vec![Vec::new(); self.colours];
        for (edge, colour) in self.colour_of.iter().enumerate() {
            by_colour[(*colour)?].push(edge);
        }
        by_colour.retain(|round| !round.is_empty());
        Some(by_colour)
    }

    fn set_colour(&mut self, edge: usize, colour: usize) {
        let Circuit { from, to } = self.circuits[edge];
        self.edge_by_end[from][colour] = Some(edge);
        self.edge_by_end[to][colour] = Some(edge);
        self.colour_of[edge] = Some(colour);
    }

    fn clear_colour(&mut self, edge: usize) {
        let Circuit { from, to } = self.circuits[edge];
        if let Some(colour) = self.colour_of[edge].take() {
            self.edge_by_end[from][colour] = None;
            self.edge_by_end[to][colour] = None;
        }
    }

    fn free_colours(&self, end: usize) -> impl Iterator<Item = usize> {
        let colours = self.edge_by_end[end].iter().enumerate();
        colours.filter_map(|(colour, edge)| edge.is_none().then_some(colour))
    }

    /// Gives an edge a colour, exchanging two along a path if need be; `false` if that is not enough.
    fn colour_edge(&mut self, edge: usize) -> bool {
        let Circuit { from, to } = self.circuits[edge];
        let common_colour = self
            .free_colours(from)
            .find(|c| self.edge_by_end[to][*c].is_none());
        if let Some(colour) = common_colour {
            self.set_colour(edge, colour);
            return true;
        }
        let (free_at_from, free_at_to): (Vec<_>, Vec<_>) = (
            self.free_colours(from).collect(),
            self.free_colours(to).collect(),
        );
        let pairs = free_at_from.iter().flat_map(|colour| {
            free_at_to
                .iter()
                .map(move |other_colour| [*colour, *other_colour])
        });
        for [own_colour, other_colour] in pairs.take(MAX_COLOUR_PAIRS) {
            let path = self.two_colour_path(to, own_colour, other_colour);
            self.steps += path.len() + 1;
            let ends_at_from = path.last().is_some_and(|last| {
                let Circuit {
                    from: first_end,
                    to: second_end,
                } = self.circuits[*last];
                first_end == from || second_end == from
            });
            if !ends_at_from {
                self.exchange(&path, own_colour, other_colour);
                self.set_colour(edge, own_colour);
                return true;
            }
        }
        false
    }

    /// The edges of two colours that hang together from `end` on, which lacks `second`.
    fn two_colour_path(&self, mut end: usize, first: usize, second: usize) -> Vec<usize> {
        let mut edges = Vec::new();
        let mut colour = first;
        while let Some(edge) = self.edge_by_end[end][colour] {
            edges.push(edge);
            end = self.circuits[edge].other(end);
            colour = if colour == first { second } else { first };
        }
        edges
    }

    fn exchange(&mut self, path: &[usize], first: usize, second: usize) {
        let new_colours: Vec<usize> = path
            .iter()
            .map(|edge| {
                if self.colour_of[*edge] == Some(first) {
                    second
                } else {
                    first
                }
            })
            .collect();
        for edge in path {
            self.clear_colour(*edge);
        }
        for (edge, colour) in path.iter().zip(new_colours) {
            self.set_colour(*edge, colour);
        }
    }

    fn random_below(&mut self, count: usize) -> usize {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.generator.below(count) as usize
    }

    /// Exchanges two colours at random along a path at random, so that the same edges are not in each
    /// other's way for ever.
    fn exchange_random_path(&mut self) {
        self.steps += 1;
        let end = self.random_below(self.edge_by_end.len());
        let first = self.random_below(self.colours);
        let free: Vec<usize> = self.free_colours(end).collect();
        if free.is_empty() || self.edge_by_end[end][first].is_none() {
            return;
        }
        let second = free[self.random_below(free.len())];
        let path = self.two_colour_path(end, first, second);
        self.steps += path.len();
        self.exchange(&path, first, second);
    }

    /// Gives an edge a colour at random, and takes it from those that had it at its ends.
    fn make_room(&mut self, edge: usize) -> Vec<usize> {
        self.exchange_random_path();
        let Circuit { from, to } = self.circuits[edge];
        // A colour that is free at one end takes the place of one edge only.
        let free_colours = self.free_colours(from).chain(self.free_colours(to));
        let mut colours: Vec<usize> = free_colours.collect();
        if colours.is_empty() {
            colours = (0..self.colours).collect();
        }
        let colour = colours[self.random_below(colours.len())];
        let displaced = [self.edge_by_end[from][colour], self.edge_by_end[to][colour]];
        let displaced: Vec<usize> = displaced.into_iter().flatten().collect();
        for other in &displaced {
            self.clear_colour(*other);
        }
        self.set_colour(edge, colour);
        displaced
    }
}
