//! Random work on a trie, its invariants checked after every step.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::cuts::Opening;

use super::{Chunk, Content, NODE_BYTES, NONE, Place, Step, Trie};

fn chunk(name: u64) -> Arc<Chunk> {
    let text = format!("{name} ").repeat(1 + name as usize % 3);
    Arc::new(Chunk::new(&text, &[name as u32; 3], name, Opening::Fixed))
}

/// Follows `names` from the root as far as nodes exist.
fn walk(trie: &mut Trie, namespace: u64, names: &[u64]) -> Vec<Step> {
    let mut path: Vec<Step> = Vec::new();
    for &name in names {
        let place = path
            .last()
            .map_or(Place::Root(namespace), |s| Place::Node(s.node));
        match trie.child(place, name) {
            Some(step) => path.push(step),
            None => break,
        }
    }
    path
}

fn link(trie: &mut Trie, namespace: u64, names: &[u64], budget: usize) {
    let path = walk(trie, namespace, names);
    let new: Vec<_> = names[path.len()..].iter().map(|&n| chunk(n)).collect();
    trie.link(namespace, path.iter(), &new, budget);
}

fn check(trie: &Trie) {
    let mut references: HashMap<u64, usize> = HashMap::new();
    let mut leaves = HashSet::new();
    let mut live = 0;
    for (slot, node) in trie.nodes.iter().enumerate() {
        let slot = u32::try_from(slot).expect("a small trie");
        let mut child = node.first_child;
        let mut previous = NONE;
        while child != NONE {
            let below = &trie.nodes[child as usize];
            assert_eq!((below.parent, below.previous), (slot, previous));
            assert!(matches!(below.content, Content::Segment(_)));
            previous = child;
            child = below.next;
        }
        match &node.content {
            Content::Free => {
                assert!(trie.free.contains(&slot));
                continue;
            }
            Content::Root(namespace) => {
                assert_eq!(trie.roots.get(namespace), Some(&slot));
                assert_ne!(node.first_child, NONE, "a bare root");
            }
            Content::Segment(chunk) => {
                *references.entry(chunk.hash()).or_default() += 1;
                assert_eq!(trie.children.get(&(node.parent, chunk.hash())), Some(&slot));
                if node.first_child == NONE {
                    assert_eq!(trie.leaves.get(&node.stamp), Some(&slot));
                    leaves.insert(slot);
                }
            }
        }
        live += 1;
    }
    assert_eq!(live, trie.nodes.len() - trie.free.len());
    assert_eq!(trie.children.len(), live - trie.roots.len());
    assert_eq!(trie.leaves.len(), leaves.len());
    assert_eq!(trie.chunks.len(), references.len());
    assert_eq!(trie.node_bytes, live * NODE_BYTES);
    assert!(trie.chunks.bytes() >= references.len() * 20);
    assert_eq!(live == 0, trie.chunks.bytes() == 0);
}

#[test]
fn invariants_hold() {
    let mut state = 1_u64;
    let mut below = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for budget in [0, 1_000, 5_000, 1 << 20] {
        let mut trie = Trie::default();
        for round in 0..2_000 {
            let namespace = below(3);
            let length = below(12);
            let names: Vec<u64> = (0..length).map(|_| below(4)).collect();
            let stale = walk(&mut trie, namespace, &names);
            match below(40) {
                0 => trie.drop_namespace(namespace),
                1 if round % 7 == 0 => trie.clear(),
                2 => link(&mut trie, namespace, &names, 0),
                _ => link(&mut trie, namespace, &names, budget),
            }
            check(&trie);
            assert!(trie.bytes() <= budget);
            // A path from before: its nodes may be gone, and are linked again.
            trie.link(namespace, stale.iter(), &[chunk(below(4))], budget);
            check(&trie);
            assert!(trie.bytes() <= budget);
        }
        assert!(budget > 5_000 || trie.evictions > 0);
    }
}

#[test]
fn the_most_recent_child_comes_first() {
    let mut trie = Trie::default();
    let mut first_of = |names: &[u64]| {
        link(&mut trie, 0, names, 1 << 20);
        let mut path = Vec::new();
        trie.follow(Place::Root(0), 10, &mut path);
        path.iter().map(|s| s.chunk.hash()).collect::<Vec<_>>()
    };
    assert_eq!(first_of(&[1, 2, 3]), [1, 2, 3]);
    assert_eq!(first_of(&[1, 4]), [1, 4]);
    assert_eq!(first_of(&[1, 2]), [1, 2, 3]);
    assert_eq!(first_of(&[5]), [5]);
}

#[test]
fn texts_that_collide_are_kept_apart() {
    let mut trie = Trie::default();
    let one = Arc::new(Chunk::new("one", &[1], 9, Opening::Fixed));
    let other = Arc::new(Chunk::new("other", &[2], 9, Opening::Fixed));
    trie.link(0, [].iter(), &[Arc::clone(&one)], 1 << 20);
    trie.link(0, [].iter(), &[Arc::clone(&other), chunk(3)], 1 << 20);
    trie.link(1, [].iter(), &[other], 1 << 20);
    check(&trie);
    let holdings = trie.holdings();
    assert_eq!((holdings.nodes, holdings.chunks), (1, 1));
    assert_eq!(trie.chunk(9).expect("the first").text(), "one");
}
