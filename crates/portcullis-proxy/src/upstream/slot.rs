//! A group's place: routes know the place, and the group in it is replaced when the names of its endpoints
//! stand for other addresses.

use std::sync::Arc;

use arc_swap::ArcSwap;
use portcullis_config::Upstream;

use super::Group;
use super::group::Origin;
use crate::StartError;
use crate::services::Services;

/// The group of an upstream, as it is at present.
pub(crate) struct Slot {
    current: ArcSwap<Group>,
    configured: Upstream,
}

impl Slot {
    /// Makes the group of `configured`, with what is known of its names. `old` are those before a reload.
    pub(crate) fn build(
        configured: &Upstream,
        services: &Services,
        origin: &Origin,
        old: &[Arc<Slot>],
    ) -> Result<Arc<Slot>, StartError> {
        let settings = origin.names.put_into(configured);
        let groups: Vec<Arc<Group>> = old.iter().map(|slot| slot.group()).collect();
        let group = Group::build(&settings, services, origin, &groups, None)?;
        Ok(Arc::new(Slot { current: ArcSwap::new(group), configured: configured.clone() }))
    }

    /// The group as it is now.
    pub(crate) fn group(&self) -> Arc<Group> {
        self.current.load_full()
    }

    /// The settings, with the names of its endpoints.
    pub(crate) fn configured(&self) -> &Upstream {
        &self.configured
    }

    /// Takes what its names stand for now. Endpoints that are gone get no new requests; those in flight there
    /// end.
    pub(super) fn follow_names(&self, services: &Services, origin: &Origin) -> Result<(), StartError> {
        let (settings, old) = (origin.names.put_into(&self.configured), self.group());
        if settings.endpoints == old.settings.endpoints {
            return Ok(());
        }
        let tls = old.tls.clone();
        self.current.store(Group::build(&settings, services, origin, &[old], tls)?);
        Ok(())
    }
}
