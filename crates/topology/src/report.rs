//! What `-dc` prints.

use std::fmt::Write as _;

use crate::clusters::{Place, Topology};
use crate::layout::Layout;
use crate::machine::CACHE_LEVELS;

impl Layout {
    /// The processors, the clusters and the threads, as HAProxy's `-dc` prints them.
    #[must_use]
    pub fn report(&self) -> String {
        let mut text = String::new();
        for place in &self.topology.places {
            write_place(&mut text, &self.topology, place);
        }
        text.push_str("CPU clusters:\n");
        for (number, cluster) in self.topology.clusters.iter().enumerate() {
            if cluster.cpus > 0 {
                let _ = writeln!(
                    text,
                    "  {number:3}  cpus={:3} cores={:3} capa={}",
                    cluster.cpus, cluster.cores, cluster.capacity
                );
            }
        }
        text.push_str("Thread CPU Bindings:\n  Tgrp/Thr  Tid        CPU set\n");
        for (group, range, cpus) in self.ranges() {
            let first = range.first + 1 - self.groups[group].first;
            let span = |first: usize| match range.count {
                1 => first.to_string(),
                count => format!("{first}-{}", first + count - 1),
            };
            let set = match cpus.len() {
                0 => "<all>".to_owned(),
                count => format!("{count}: {cpus}"),
            };
            let _ = writeln!(
                text,
                "  {:<9} {:<10} {set}",
                format!("{}/{}", group + 1, span(first)),
                span(range.first + 1)
            );
        }
        text
    }
}

fn write_place(text: &mut String, topology: &Topology, place: &Place) {
    let kept = if place.is_enabled { "[keep]" } else { "[----]" };
    let _ = write!(
        text,
        "{kept} cpu={:3} pk={:02} no={:02} cl={:03}({:03})",
        place.number, place.package, place.node, place.cluster, place.cluster_in_node
    );
    for level in (0..CACHE_LEVELS).rev() {
        if let Some(number) = place.caches[level] {
            let width = if level > 2 { 3 } else { 2 };
            let _ = write!(text, " l{level}={number:0width$}");
        }
    }
    let _ = write!(text, " ts={:03} capa={}", place.core, place.capacity);
    if topology.tells_threads {
        match place.core_threads {
            0 => {}
            1 => text.push_str(" smt=1"),
            count => {
                let _ = write!(text, " smt={}/{count}", place.thread);
            }
        }
    }
    text.push('\n');
}
