//! Kubernetes: Ingress objects and the ConfigMap of ingress-nginx.

mod annotations;
mod config_map;
mod hosts;
mod left;
mod objects;

use crate::error::Error;
use crate::model::Model;
use crate::report::{Entry, Ledger};
use crate::rules::Reading;
use crate::sources::{Place, Sources};
use crate::yaml::{self, Node};

/// What the readers of objects share.
pub(crate) struct Context<'a> {
    pub sources: &'a Sources,
    pub ledger: &'a mut Ledger,
    pub model: &'a mut Model,
    pub reading: Reading<'a>,
}

impl Context<'_> {
    /// A line of an object, as an entry of the report.
    pub fn enter(&mut self, place: Place, text: &str) -> Result<Entry, Error> {
        self.ledger.enter(self.sources, place, text)
    }
}

/// Reads manifests into the model.
pub(crate) fn read(
    names: &[String],
    sources: &mut Sources,
    ledger: &mut Ledger,
    model: &mut Model,
    reading: Reading<'_>,
) -> Result<(), Error> {
    let mut documents: Vec<(crate::sources::FileId, Node)> = Vec::new();
    for name in names {
        let file = sources.open(name)?;
        documents.extend(yaml::parse(sources, file)?.into_iter().map(|node| (file, node)));
    }
    let mut cx = Context { sources, ledger, model, reading };
    let mut settings = config_map::Global::default();
    let mut ingresses = Vec::new();
    let mut ports = hosts::Ports::new();
    for (file, node) in &documents {
        // `kubectl get -o yaml` puts all objects into one list.
        let listed = node.text_at(&["kind"]).is_some_and(|kind| kind.ends_with("List"));
        let objects =
            if listed { node.get("items").map_or(&[][..], Node::items) } else { std::slice::from_ref(node) };
        for object in objects {
            let place = Place { file: *file, line: object.line };
            match object.text_at(&["kind"]) {
                Some("Ingress") => ingresses.push(objects::ingress(object, place, &mut cx)?),
                Some("Service") => service(object, place, &mut ports, &mut cx)?,
                Some("ConfigMap") => config_map::read(object, place, &mut settings, &mut cx)?,
                kind => {
                    let name = object.text_at(&["metadata", "name"]).unwrap_or_default();
                    let entry =
                        cx.enter(place, &format!("{} {name}", kind.unwrap_or("an object without a kind")))?;
                    cx.ledger.left(
                        entry,
                        "of Ingress and the ConfigMap of ingress-nginx alone something is taken over",
                    );
                }
            }
        }
    }
    hosts::all(&ingresses, &settings, &ports, &mut cx);
    Ok(())
}

/// The names of a service's ports.
fn service(object: &Node, place: Place, ports: &mut hosts::Ports, cx: &mut Context<'_>) -> Result<(), Error> {
    let name = object.text_at(&["metadata", "name"]).unwrap_or_default();
    let namespace = object.text_at(&["metadata", "namespace"]).unwrap_or("default");
    let entry = cx.enter(place, &format!("Service {name}"))?;
    cx.ledger.taken(entry, "the names of its ports are known");
    for port in object.at(&["spec", "ports"]).map_or(&[][..], Node::items) {
        if let (Some(called), Some(number)) = (port.text_at(&["name"]), port.text_at(&["port"])) {
            ports.insert((namespace.to_owned(), name.to_owned(), called.to_owned()), number.to_owned());
        }
    }
    Ok(())
}
