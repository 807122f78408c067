//! Checks of a site's inspection policy.

use super::Checker;
use crate::checked::Policy;
use crate::convert::{engine, level, request_body, response_body, site_mode};
use crate::declared;
use crate::discovery;
use crate::exclusion;
use crate::learning;
use crate::profile;
use crate::raw;
use crate::semantic;
use crate::spanned::Spanned;

impl Checker<'_> {
    /// Reads the policy from the site's settings, whether its mode uses them or not.
    pub(super) fn policy(&mut self, site: &raw::Site) -> Policy {
        self.check_modes(site);
        let mut policy = Policy {
            level: site.level.as_ref().map(|given| level(given.value)).unwrap_or_default(),
            semantic: site
                .semantic
                .as_ref()
                .map(|raw| semantic::check(&mut self.mistakes, raw))
                .unwrap_or_default(),
            fields: site.fields.as_ref().map(|raw| learning::check(&mut self.mistakes, &site.name, raw)),
            api: site.api.as_ref().and_then(|raw| declared::check(&mut self.mistakes, raw, None)),
            discovery: site
                .discovery
                .as_ref()
                .and_then(|raw| discovery::check(&mut self.mistakes, &site.name, raw)),
            engine: site.engine.map(engine),
            request_body: request_body(&site.request_body),
            response_body: response_body(&site.response_body),
            ..Policy::default()
        };
        if let Some(rules) = &site.rules {
            policy.setup = rules.setup.iter().map(|file| self.mistakes.path(file)).collect();
            policy.crs = rules.crs.as_ref().map(|folder| self.mistakes.path(folder));
            policy.include = rules.include.iter().map(|file| self.mistakes.path(file)).collect();
            policy.directives = rules.directives.clone();
            policy.rule_exclude =
                rules.exclude.iter().map(|each| exclusion::rule(&mut self.mistakes, each)).collect();
            policy.modsecurity3 = rules.compat == Some(raw::RulesCompat::ModSecurity3);
            if let Some(scoring) = &rules.scoring {
                if rules.crs.is_none() {
                    self.mistakes.wrong(
                        scoring.span.clone(),
                        "`scoring` is about the anomaly score of the CRS: it needs `crs`".to_string(),
                    );
                }
                policy.weighted = Some(scoring.value == raw::Scoring::Weighted);
            }
            if let Some(level) = &rules.paranoia {
                if !(1..=4).contains(&level.value) {
                    self.mistakes.wrong(level.span.clone(), "the paranoia level must be 1 to 4".to_string());
                } else if rules.crs.is_none() {
                    self.mistakes.wrong(level.span.clone(), "a paranoia level needs `crs`".to_string());
                }
                policy.paranoia = Some(level.value);
            }
        }
        profile::apply(&mut self.mistakes, &site.profiles, &mut policy);
        policy
    }

    /// Settings that the modes of the site and its routes leave without effect.
    fn check_modes(&mut self, site: &raw::Site) {
        let own = site_mode(site);
        let modes = || std::iter::once(own).chain(site.routes.iter().filter_map(|route| route.mode));
        let has_rules = |mode| matches!(mode, raw::Mode::Crs | raw::Mode::Both);
        let has_semantic = |mode| matches!(mode, raw::Mode::Semantic | raw::Mode::Both);
        let wants_rules = modes().find(|mode| has_rules(*mode));
        match (&site.rules, wants_rules) {
            (None, Some(mode)) => {
                let mode = if mode == raw::Mode::Crs { "crs" } else { "both" };
                self.mistakes.wrong_with_hint(
                    site.name.span.clone(),
                    format!("the site `{}` has the mode `{mode}`, but no rules", site.name.value),
                    "add `rules = { crs = \"FOLDER\" }`".to_string(),
                )
            }
            (Some(rules), None) if own == raw::Mode::Semantic => self.mistakes.wrong_with_hint(
                rules.span.clone(),
                "the mode `semantic` does not read rules".to_string(),
                "write `mode = \"both\"` to have them run beside the semantic detector, or drop them"
                    .to_string(),
            ),
            _ => {}
        }
        let hint = || "write `mode = \"semantic\"` or `mode = \"both\"`, or drop it".to_string();
        let mut useless = |level: &Option<Spanned<raw::Level>>, semantic: &Option<Spanned<raw::Semantic>>| {
            let level = level.as_ref().map(|level| ("level", level.span.clone()));
            let semantic = semantic.as_ref().map(|semantic| ("semantic", semantic.span.clone()));
            for (key, span) in [level, semantic].into_iter().flatten() {
                let message =
                    format!("`{key}` is for the semantic detector, which does not run in this mode");
                self.mistakes.wrong_with_hint(span, message, hint());
            }
        };
        // Deviations from a declared API have exclusions and actions in every mode.
        let none = None;
        if !modes().any(has_semantic) {
            let is_used = site.api.is_some() || site.routes.iter().any(|route| route.api.is_some());
            useless(&site.level, if is_used { &none } else { &site.semantic });
        }
        for route in site.routes.iter().filter(|route| !has_semantic(route.mode.unwrap_or(own))) {
            let is_used = site.api.is_some() || route.api.is_some();
            useless(&route.level, if is_used { &none } else { &route.semantic });
        }
        let is_off = |mode| matches!(mode, raw::Mode::Off);
        let of_site = site.api.as_ref().filter(|_| modes().all(is_off));
        let of_routes = site.routes.iter().filter(|route| is_off(route.mode.unwrap_or(own)));
        for api in of_site.into_iter().chain(of_routes.filter_map(|route| route.api.as_ref())) {
            let message = "requests are not compared with `api` in the mode `off`".to_string();
            let hint = "write `mode = \"semantic\"`, or drop it".to_string();
            self.mistakes.wrong_with_hint(api.span.clone(), message, hint);
        }
        if let Some(fields) = site.fields.as_ref().filter(|_| !modes().any(has_semantic)) {
            let message =
                "`fields` are judged by the semantic detector, which does not run in this mode".to_string();
            self.mistakes.wrong_with_hint(fields.span.clone(), message, hint());
        }
        let is_off = modes().all(|mode| mode == raw::Mode::Off);
        if let Some(discovery) = site.discovery.as_ref().filter(|raw| raw.value.is_on() && is_off) {
            let message =
                "`discovery` is about requests that are inspected, and none of this site is".to_string();
            self.mistakes.wrong_with_hint(
                discovery.span.clone(),
                message,
                "write another mode (with `engine = \"detection_only\"` nothing is refused), or drop it"
                    .to_string(),
            );
        }
        if let Some(profile) = site.profiles.first().filter(|_| is_off) {
            let message = "`profiles` are for inspection, and nothing is inspected in this mode".to_string();
            self.mistakes.wrong_with_hint(profile.span.clone(), message, "drop them".to_string());
        }
    }

    pub(super) fn intern(&mut self, policy: Option<Policy>) -> Option<usize> {
        let policy = policy?;
        Some(self.policies.iter().position(|known| *known == policy).unwrap_or_else(|| {
            self.policies.push(policy);
            self.policies.len() - 1
        }))
    }
}
