//! The operator's files, read when the settings are applied.

use super::{SiteSettings, country::Countries};
use axum::http::HeaderValue;
use bytes::Bytes;
use rallypoint_lobby::text::fold;
use std::{
    collections::HashMap,
    error::Error,
    hash::{DefaultHasher, Hasher},
    io,
    path::{Path, PathBuf},
};

/// Maximum size of a picture, in bytes: it is read into memory for each request.
const MAX_PICTURE: u64 = 2 << 20;

/// Maximum number of map pictures.
const MAX_MAPS: usize = 20_000;

/// Content types by file name extension.
const PICTURE_TYPES: [(&str, &str); 6] = [
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
];

/// The operator's files.
#[derive(Debug, Default)]
pub(crate) struct SiteFiles {
    pub logo: Option<Picture>,
    pub countries: Option<Countries>,
    /// Pictures of maps, by the folded name of the map.
    maps: HashMap<String, PathBuf>,
}

/// A file of the operator that cannot be read.
#[derive(Debug)]
pub struct SiteFileError {
    /// The setting that names the file, such as `web.logo`.
    pub setting: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// The reason: an [`io::Error`] or that of the format.
    pub reason: Box<dyn Error + Send + Sync>,
}

/// A picture in memory.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub content_type: HeaderValue,
    pub bytes: Bytes,
    /// A hash of the content, which makes its address change with it.
    pub version: u64,
}

impl SiteFiles {
    /// Reads the files. What cannot be read is logged and left out: the list is more important than its decoration.
    pub fn load(settings: &SiteSettings) -> Self {
        let (files, errors) = Self::read(settings);
        for SiteFileError { setting, path, reason } in errors {
            tracing::warn!(path = %path.display(), error = %reason, "cannot read {setting}; the pages do without it");
        }
        files
    }

    /// Reads the files, and returns those that cannot be read.
    pub fn read(settings: &SiteSettings) -> (Self, Vec<SiteFileError>) {
        let mut errors = Vec::new();
        let files = Self {
            logo: read(&mut errors, "web.logo", &settings.logo, Picture::read),
            maps: read(&mut errors, "web.maps", &settings.maps, list_maps).unwrap_or_default(),
            countries: read(&mut errors, "web.geoip", &settings.geoip, Countries::open),
        };
        (files, errors)
    }

    /// The file name of the picture of a map, for its address.
    pub fn map_picture(&self, map: &str) -> Option<&str> {
        self.maps.get(&fold(map))?.file_name()?.to_str()
    }

    /// The picture with this file name, if it is one of the folder.
    pub fn map_picture_path(&self, file_name: &str) -> Option<&Path> {
        let stem = Path::new(file_name).file_stem()?.to_str()?;
        let path = self.maps.get(&fold(stem))?;
        (path.file_name()?.to_str() == Some(file_name)).then_some(path)
    }
}

impl Picture {
    pub fn read(path: &Path) -> io::Result<Self> {
        let unknown = || io::Error::other("expected a file named .svg, .png, .jpg, .webp or .gif");
        let content_type = content_type(path).ok_or_else(unknown)?;
        if std::fs::metadata(path)?.len() > MAX_PICTURE {
            return Err(io::Error::other(format!("it is larger than {} MB", MAX_PICTURE >> 20)));
        }
        let bytes = Bytes::from(std::fs::read(path)?);
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        Ok(Self { content_type, bytes, version: hasher.finish() })
    }
}

/// The pictures of a folder, by the folded name of their map.
fn list_maps(folder: &Path) -> io::Result<HashMap<String, PathBuf>> {
    let mut maps = HashMap::new();
    for entry in std::fs::read_dir(folder)?.take(MAX_MAPS) {
        let path = entry?.path();
        if content_type(&path).is_some()
            && let Some(stem) = path.file_stem().and_then(|stem| stem.to_str())
        {
            maps.insert(fold(stem), path);
        }
    }
    Ok(maps)
}

fn content_type(path: &Path) -> Option<HeaderValue> {
    let extension = path.extension()?.to_str()?;
    let (_, content_type) = PICTURE_TYPES.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known))?;
    Some(HeaderValue::from_static(content_type))
}

fn read<T, E: Into<Box<dyn Error + Send + Sync>>>(
    errors: &mut Vec<SiteFileError>,
    setting: &'static str,
    path: &Option<PathBuf>,
    read: impl FnOnce(&Path) -> Result<T, E>,
) -> Option<T> {
    let path = path.as_deref()?;
    read(path).map_err(|error| errors.push(SiteFileError { setting, path: path.into(), reason: error.into() })).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_found_by_the_name_of_the_map_in_any_case() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["CTF_Truefort.PNG", "koth.webp", "notes.txt"] {
            std::fs::write(dir.path().join(name), b"x").unwrap();
        }
        let settings = SiteSettings { maps: Some(dir.path().into()), ..SiteSettings::default() };
        let files = SiteFiles::load(&settings);
        assert_eq!(files.map_picture("ctf_truefort"), Some("CTF_Truefort.PNG"));
        assert_eq!(files.map_picture("KOTH"), Some("koth.webp"));
        assert_eq!((files.map_picture("notes"), files.map_picture("")), (None, None));
        assert!(files.map_picture_path("koth.webp").is_some());
        for elsewhere in ["koth.png", "../koth.webp", "/etc/passwd", "notes.txt", ""] {
            assert_eq!(files.map_picture_path(elsewhere), None, "{elsewhere}");
        }
        let missing = SiteSettings { logo: Some("/no/such/file.png".into()), ..SiteSettings::default() };
        assert!(SiteFiles::load(&missing).logo.is_none());
    }
}
