//! The files of the console, embedded when it was built before the program (`make console`). A program that
//! was built without it has a page that says so.

use std::borrow::Cow;

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../console/dist"]
#[allow_missing = true]
struct Built;

/// The page of a program without the console.
const NOT_BUILT: &str = include_str!("not_built.html");

/// The content security policy of the console's pages: nothing from other hosts, no inline script or style.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                                           connect-src 'self'; base-uri 'none'; form-action 'self'; \
                                           frame-ancestors 'none'";

/// A file of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its content.
    pub bytes: Cow<'static, [u8]>,
    /// The media type.
    pub media_type: &'static str,
    /// The content is compressed by gzip.
    pub is_gzip: bool,
    /// Its name changes with its content: it may be kept for ever.
    pub is_immutable: bool,
}

/// The file at this path of the console, if there is one. `gzip`: the client takes that coding.
///
/// ```
/// let page = portcullis_api::console::asset("/", false).unwrap();
/// assert_eq!(page.media_type, "text/html; charset=utf-8");
/// assert!(portcullis_api::console::asset("/../Cargo.toml", false).is_none());
/// ```
pub fn asset(path: &str, gzip: bool) -> Option<Asset> {
    let name = match path.strip_prefix('/')? {
        "" => "index.html",
        name => name,
    };
    let (_, extension) = name.rsplit_once('.')?;
    // Compressed forms are no files of their own.
    let media_type = media_type(extension)?;
    if name == "index.html" && !is_built() {
        let bytes = Cow::Borrowed(NOT_BUILT.as_bytes());
        return Some(Asset { bytes, media_type, is_gzip: false, is_immutable: false });
    }
    let compressed = if gzip { Built::get(&format!("{name}.gz")) } else { None };
    let is_gzip = compressed.is_some();
    let bytes = compressed.or_else(|| Built::get(name))?.data;
    Some(Asset { bytes, media_type, is_gzip, is_immutable: name.starts_with("assets/") })
}

/// True if the console is part of this program.
pub fn is_built() -> bool {
    Built::get("index.html").is_some()
}

fn media_type(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}
