//! The lobby that `doctor` examines.

use crate::{local_lobby::LocalLobby, registration_outcomes};
use rallypoint_query::{HttpUrl, LobbyAddress};
use std::str::FromStr;

/// A lobby as given with `--lobby`.
#[derive(Clone, Debug)]
pub struct LobbyRef {
    pub address: LobbyAddress,
    /// Its page, if the lobby was given by its URL.
    pub page: Option<HttpUrl>,
    /// The API beside that page.
    pub api: Option<HttpUrl>,
}

/// `host[:port][/list]`, or the URL of a page: then the lobby is at its default port.
impl FromStr for LobbyRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with("http://") && !text.starts_with("https://") {
            let address = text.parse::<LobbyAddress>().map_err(|error| error.to_string())?;
            return Ok(Self { address, page: None, api: None });
        }
        let url = text.parse::<HttpUrl>().map_err(|error| error.to_string())?;
        let local = LocalLobby::load();
        let local_lobby = local.host().parse::<LobbyAddress>().ok();
        let is_local = |lobby: &LobbyAddress| local.http_port_of(&url.host, lobby.port()) == url.port;
        let port = local_lobby.filter(is_local).and_then(|lobby| lobby.port);
        let path = url.path.split('?').next().unwrap_or_default();
        let site = &path[..path.rfind('/').unwrap_or(0)];
        let api = registration_outcomes::api_url(url.host.clone(), url.port);
        let api = HttpUrl { is_secure: url.is_secure, path: format!("{site}{}", api.path), ..api };
        let address = LobbyAddress { host: url.host.clone(), port, id: None };
        Ok(Self { address, page: Some(url), api: Some(api) })
    }
}
