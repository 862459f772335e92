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
const MAX_PLACES: usize = 4_000_000;
/// So many pairs of free colours are tried for an edge.
const MAX_PAIRS: usize = 64;
/// The search for rounds always begins here, so that the same input has the same timetable.
const SEED: u64 = 0x6e65_7068;

/// Rounds in which no end occurs twice, each with the indices of its circuits; `min` is what there
/// must be at least, no fewer than circuits at one end. `None` where there are too many of both.
pub(super) fn rounds(circuits: &[Circuit], ends: usize, min: usize) -> Option<Vec<Vec<usize>>> {
    if let Some(rounds) = mesh::rounds(circuits, ends) {
        return Some(rounds);
    }
    let min = min.max(1);
    if ends.saturating_mul(min) > MAX_PLACES {
        return None;
    }
    // With twice as many colours as circuits at one end, any two ends have a free one in common.
    (min..=min.saturating_mul(2))
        .find_map(|colours| Colouring::new(circuits, ends, colours).colour_all())
}

/// Edges with their colours so far.
struct Colouring<'c> {
    circuits: &'c [Circuit],
    colours: usize,
    /// By end, then by colour: which edge has it.
    edge_at: Vec<Vec<Option<usize>>>,
    colour_of: Vec<Option<usize>>,
    generator: Generator,
    steps: usize,
}

impl<'c> Colouring<'c> {
    fn new(circuits: &'c [Circuit], ends: usize, colours: usize) -> Self {
        Self {
            circuits,
            colours,
            edge_at: vec![vec![None; colours]; ends],
            colour_of: vec![None; circuits.len()],
            generator: Generator::seeded(SEED),
            steps: 0,
        }
    }

    /// The edges by colour; `None` if these colours were not enough.
    fn colour_all(mut self) -> Option<Vec<Vec<usize>>> {
        let mut waiting: VecDeque<usize> = (0..self.circuits.len()).collect();
        while let Some(edge) = waiting.pop_front() {
            if self.place(edge) {
                continue;
            }
            if self.steps > MAX_STEPS {
                return None;
            }
            waiting.extend(self.make_room(edge));
        }
        let mut by_colour = vec![Vec::new(); self.colours];
        for (edge, colour) in self.colour_of.iter().enumerate() {
            by_colour[(*colour)?].push(edge);
        }
        by_colour.retain(|round| !round.is_empty());
        Some(by_colour)
    }

    fn paint(&mut self, edge: usize, colour: usize) {
        let Circuit { from, to } = self.circuits[edge];
        self.edge_at[from][colour] = Some(edge);
        self.edge_at[to][colour] = Some(edge);
        self.colour_of[edge] = Some(colour);
    }

    fn clear(&mut self, edge: usize) {
        let Circuit { from, to } = self.circuits[edge];
        if let Some(colour) = self.colour_of[edge].take() {
            self.edge_at[from][colour] = None;
            self.edge_at[to][colour] = None;
        }
    }

    fn free(&self, end: usize) -> impl Iterator<Item = usize> {
        let colours = self.edge_at[end].iter().enumerate();
        colours.filter_map(|(colour, edge)| edge.is_none().then_some(colour))
    }

    /// Gives an edge a colour, exchanging two along a path if need be; `false` if that is not enough.
    fn place(&mut self, edge: usize) -> bool {
        let Circuit { from, to } = self.circuits[edge];
        let common = self.free(from).find(|c| self.edge_at[to][*c].is_none());
        if let Some(colour) = common {
            self.paint(edge, colour);
            return true;
        }
        let (free_at_from, free_at_to): (Vec<_>, Vec<_>) =
            (self.free(from).collect(), self.free(to).collect());
        let pairs = free_at_from
            .iter()
            .flat_map(|colour| free_at_to.iter().map(move |their| [*colour, *their]));
        for [own_colour, their] in pairs.take(MAX_PAIRS) {
            let path = self.path(to, own_colour, their);
            self.steps += path.len() + 1;
            let leads_back = path.last().is_some_and(|last| {
                let Circuit {
                    from: first_end,
                    to: two,
                } = self.circuits[*last];
                first_end == from || two == from
            });
            if !leads_back {
                self.exchange(&path, own_colour, their);
                self.paint(edge, own_colour);
                return true;
            }
        }
        false
    }

    /// The edges of two colours that hang together from `end` on, which lacks `second`.
    fn path(&self, mut end: usize, first: usize, second: usize) -> Vec<usize> {
        let mut edges = Vec::new();
        let mut colour = first;
        while let Some(edge) = self.edge_at[end][colour] {
            edges.push(edge);
            end = self.circuits[edge].other(end);
            colour = if colour == first { second } else { first };
        }
        edges
    }

    fn exchange(&mut self, path: &[usize], first: usize, second: usize) {
        let new: Vec<usize> = path
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
            self.clear(*edge);
        }
        for (edge, colour) in path.iter().zip(new) {
            self.paint(*edge, colour);
        }
    }

    fn any(&mut self, count: usize) -> usize {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.generator.below(count) as usize
    }

    /// Exchanges two colours at random along a path at random, so that the same edges are not in each
    /// other's way for ever.
    fn shake(&mut self) {
        self.steps += 1;
        let (end, first) = (self.any(self.edge_at.len()), self.any(self.colours));
        let free: Vec<usize> = self.free(end).collect();
        if free.is_empty() || self.edge_at[end][first].is_none() {
            return;
        }
        let second = free[self.any(free.len())];
        let path = self.path(end, first, second);
        self.steps += path.len();
        self.exchange(&path, first, second);
    }

    /// Gives an edge a colour at random, and takes it from those that had it at its ends.
    fn make_room(&mut self, edge: usize) -> Vec<usize> {
        self.shake();
        let Circuit { from, to } = self.circuits[edge];
        // A colour that is free at one end takes the place of one edge only.
        let mut colours: Vec<usize> = self.free(from).chain(self.free(to)).collect();
        if colours.is_empty() {
            colours = (0..self.colours).collect();
        }
        let colour = colours[self.any(colours.len())];
        let displaced = [self.edge_at[from][colour], self.edge_at[to][colour]];
        let displaced: Vec<usize> = displaced.into_iter().flatten().collect();
        for other in &displaced {
            self.clear(*other);
        }
        self.paint(edge, colour);
        displaced
    }
}
