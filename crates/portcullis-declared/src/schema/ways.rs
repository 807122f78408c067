//! How far references lead through a schema.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{Schemas, subschemas, target};
use crate::limits::{APPLIED_MAX, CHAIN_MAX};
use crate::problem::Problem;

impl Schemas<'_> {
    /// The definitions that `root` leads to, itself first.
    pub(super) fn reached(&self, root: usize) -> Vec<usize> {
        let (mut reached, mut open) = (vec![root], vec![root]);
        let mut known = HashSet::from([root]);
        while let Some(number) = open.pop() {
            for next in &self.definitions[number].refers {
                if known.insert(*next) {
                    reached.push(*next);
                    open.push(*next);
                }
            }
        }
        reached
    }

    /// A definition leads back to itself beside alternatives. Collecting errors would have each part of a
    /// value asked about once for each way to it.
    pub(super) fn leads_back(&self, reached: &[usize]) -> bool {
        let has_ways = |number: &usize| {
            let mut open = vec![&self.definitions[*number].schema];
            while let Some(schema) = open.pop() {
                let Some(members) = schema.as_object() else { continue };
                let alternatives = ["anyOf", "oneOf", "allOf", "if", "not", "contains"];
                if alternatives.iter().any(|name| members.contains_key(*name)) {
                    return true;
                }
                open.extend(subschemas(members).map(|(schema, _)| schema));
            }
            false
        };
        let leads_back = |number: &&usize| {
            self.definitions[**number].refers.iter().any(|next| self.reached(*next).contains(number))
        };
        reached.iter().filter(leads_back).any(has_ways)
    }

    /// In how many ways references lead from a definition to others; none where they are too deep.
    pub(super) fn ways(&self, number: usize, known: &mut HashMap<usize, u64>, depth: usize) -> Option<u64> {
        if let Some(ways) = known.get(&number) {
            return Some(*ways);
        }
        if depth > CHAIN_MAX {
            return None;
        }
        // Of definitions that lead back to themselves only once.
        known.insert(number, 1);
        let mut ways = 1u64;
        let mut open = vec![&self.definitions[number].schema];
        while let Some(schema) = open.pop() {
            let Some(members) = schema.as_object() else { continue };
            if let Some(next) = target(members) {
                ways = ways.saturating_add(self.ways(next, known, depth + 1)?);
            }
            open.extend(subschemas(members).map(|(schema, _)| schema));
        }
        known.insert(number, ways);
        Some(ways)
    }

    /// Refuses schemas that refer to themselves without leading into the value, and those of which too many
    /// apply to one value.
    pub(super) fn check(&self, reached: &[usize]) -> Result<(), Problem> {
        let mut known = HashMap::new();
        for number in reached {
            let mut open = vec![&self.definitions[*number].schema];
            while let Some(schema) = open.pop() {
                let Some(members) = schema.as_object() else { continue };
                self.applied(members, 0, &mut known).map_err(|message| {
                    Problem::new(format!("{}{}", self.base, self.definitions[*number].pointer), message)
                })?;
                open.extend(subschemas(members).filter(|(_, is_same)| !is_same).map(|(schema, _)| schema));
            }
        }
        Ok(())
    }

    /// The schemas that apply to a value to which this one does.
    fn applied(
        &self,
        members: &Map<String, Value>,
        chain: usize,
        known: &mut HashMap<usize, usize>,
    ) -> Result<usize, String> {
        if chain > CHAIN_MAX {
            return Err(format!(
                "the schema refers to itself without leading into the value, or has more than {CHAIN_MAX} references and \
                 combinations inside each other"
            ));
        }
        let mut applied = 1usize;
        if let Some(number) = target(members) {
            let of_target = match known.get(&number) {
                Some(applied) => *applied,
                None => match self.definitions[number].schema.as_object() {
                    Some(members) => self.applied(members, chain + 1, known)?,
                    None => 1,
                },
            };
            known.insert(number, of_target);
            applied = applied.saturating_add(of_target);
        }
        for (schema, _) in subschemas(members).filter(|(_, is_same)| *is_same) {
            if let Some(members) = schema.as_object() {
                applied = applied.saturating_add(self.applied(members, chain + 1, known)?);
            }
        }
        match applied > APPLIED_MAX {
            true => Err(format!("more than {APPLIED_MAX} schemas apply to one value")),
            false => Ok(applied),
        }
    }
}
