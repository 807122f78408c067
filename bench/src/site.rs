//! What a site adds to inspection: learned fields, or a declared API.

use std::sync::Arc;

use portcullis_declared::Api;
use portcullis_inspect::{
    ClassAction, DeviationActions, Inspector, Opens, SiteApi, SiteFields, TrustedSources, UnusualAction,
};
use portcullis_learn::{Knowledge, Limits, Site, Store};

/// What a site knows of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Knows {
    /// Nothing.
    Nothing,
    /// The fields of the case, learned and closed where they may be.
    Fields,
    /// The cases `get` and `json_1k`, as a description of OpenAPI that refuses whatever deviates from it.
    Api,
}

/// Days on which a site learns, and networks that teach it: more than are needed to close a field.
pub(crate) const DAYS: u64 = 14;
pub(crate) const NETWORKS: u8 = 40;

/// `inspector` with the description of the API.
pub(crate) fn with_api(inspector: Inspector) -> Inspector {
    let api = Api::compile(DESCRIPTION).unwrap_or_else(|problems| panic!("{problems:?}"));
    let block = ClassAction::Block;
    let actions = DeviationActions {
        unknown_path: block,
        unknown_parameter: block,
        parameters: block,
        body: block,
        security: block,
        responses: ClassAction::Off,
    };
    inspector.with_api(SiteApi::new(Arc::new(api), actions))
}

/// `inspector` with fields that are learned, and with them.
pub(crate) fn with_fields(inspector: Inspector) -> (Inspector, Arc<Site>) {
    let site = Arc::new(Site::default());
    let fields = SiteFields {
        site: Arc::clone(&site),
        unusual: UnusualAction::Block,
        learns: true,
        opens: Opens::Safe,
        trusted: Arc::new(TrustedSources::default()),
    };
    (inspector.with_fields(fields), site)
}

/// Has what was shown learned and used.
pub(crate) fn learn(site: &Site) {
    let mut store = Store::new(Limits::default());
    store.learn(&site.take());
    site.publish(Knowledge::of(&store));
}

const DESCRIPTION: &str = r##"
openapi: 3.1.0
info: { title: bench, version: "1" }
paths:
  /products:
    get:
      parameters:
        - { name: category, in: query, required: true, schema: { enum: [books, music, films] } }
        - { name: sort, in: query, schema: { type: string, maxLength: 20 } }
        - { name: page, in: query, schema: { type: integer, minimum: 0, maximum: 1000 } }
      responses: { default: { description: products } }
  /api:
    post:
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: "#/components/schemas/Order" } } }
      responses: { default: { description: the order } }
components:
  schemas:
    Order:
      type: object
      required: [id, user, items]
      additionalProperties: false
      properties:
        id: { type: integer, minimum: 0 }
        user: { $ref: "#/components/schemas/User" }
        items: { type: array, minItems: 1, maxItems: 1000, items: { $ref: "#/components/schemas/Item" } }
    User:
      type: object
      required: [name, email]
      additionalProperties: false
      properties:
        name: { type: string, maxLength: 40 }
        email: { type: string, maxLength: 80 }
        tags: { type: array, maxItems: 5, items: { type: string, maxLength: 20 } }
    Item:
      type: object
      required: [sku, qty]
      additionalProperties: false
      properties:
        sku: { type: string, minLength: 1, maxLength: 20 }
        qty: { type: integer, minimum: 1, maximum: 99 }
        price: { type: number, minimum: 0 }
"##;
