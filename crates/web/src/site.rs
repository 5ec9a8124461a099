//! The operator's settings for the pages: title, welcome text, logo, colour, base path, map pictures, countries.

mod base_path;
mod color;
mod country;
mod files;

pub use base_path::{BasePath, InvalidBasePath};
pub use color::{AccentColor, InvalidColor};
pub(crate) use country::Country;
pub use files::SiteFileError;
pub(crate) use files::{Picture, SiteFiles};

use std::path::PathBuf;

/// The operator's settings for the pages.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteSettings {
    /// Title of the site. Default: "Rallypoint".
    pub title: String,
    /// Text above the list of servers; empty for none, which is the default.
    pub welcome: String,
    /// Image beside the title: SVG, PNG, JPEG, WebP or GIF. Default: that of this project.
    pub logo: Option<PathBuf>,
    /// Colour of buttons and links. Default: that of this project.
    pub color: Option<AccentColor>,
    /// Path at which a proxy publishes the pages. Default: none.
    pub base_path: Option<BasePath>,
    /// Directory with pictures of maps: `ctf_truefort.png`. Default: none.
    pub maps: Option<PathBuf>,
    /// Database of countries in the format of MaxMind. Default: none.
    pub geoip: Option<PathBuf>,
}

impl SiteSettings {
    /// The files that cannot be read. The pages do without them.
    #[must_use]
    pub fn check_files(&self) -> Vec<SiteFileError> {
        SiteFiles::read(self).1
    }

    /// The prefix of every address on a page: the base path, or nothing.
    #[must_use]
    pub fn base(&self) -> &str {
        self.base_path.as_ref().map_or("", BasePath::as_str)
    }
}

impl Default for SiteSettings {
    fn default() -> Self {
        Self {
            title: "Rallypoint".into(),
            welcome: String::new(),
            logo: None,
            color: None,
            base_path: None,
            maps: None,
            geoip: None,
        }
    }
}
