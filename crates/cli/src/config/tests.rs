//! Loading settings from all sources, and printing them.

use super::{settings::Settings, *};
use rallypoint_history::HistoryOptions;
use rallypoint_lobby::LobbyOptions;
use rallypoint_lobby_proto::doors::LOBBY;
use rallypoint_query::proto::Protocol;
use rallypoint_web::{ExportSettings, ListNames, WebOptions};
use std::{path::PathBuf, time::Duration};

/// A temporary configuration file.
struct File {
    dir: tempfile::TempDir,
}

impl File {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("rallypoint.toml"), text).unwrap();
        Self { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("rallypoint.toml")
    }

    fn sources(&self) -> Sources {
        Sources { file: Some(self.path()), ..Sources::default() }
    }

    /// The error message, without the directory of the file.
    fn errors(&self) -> String {
        let folder = format!("{}/", self.dir.path().display());
        self.sources().load().unwrap_err().to_string().replace(&folder, "")
    }
}

fn errors(text: &str) -> String {
    File::new(text).errors()
}

fn settings(text: &str) -> Settings {
    File::new(text).sources().load().unwrap().settings
}

fn flag(path: &str, value: &str) -> Override {
    Override { label: format!("--set {path}"), path: path.into(), value: value.into() }
}

/// No settings from any source, independent of the machine that runs the tests.
fn no_sources() -> Sources {
    Sources { file: Some("/dev/null".into()), ..Sources::default() }
}

fn with_flags(flags: &[(&str, &str)]) -> Result<Settings, String> {
    let flags = flags.iter().map(|(path, value)| flag(path, value)).collect();
    let sources = Sources { flags, ..no_sources() };
    sources.load().map(|loaded| loaded.settings).map_err(|errors| errors.to_string())
}

#[test]
fn no_source_is_required() {
    let loaded = no_sources().load().unwrap();
    assert_eq!(loaded.settings, Settings::default());
    assert_eq!(loaded.warnings, [""; 0]);
    assert_eq!(settings(""), Settings::default());
}

#[test]
fn a_clash_of_listeners_names_both_settings_and_where_they_were_made() {
    let clash = "lobby.listen and web.listen: 127.0.0.1:7 is used twice; choose different ports";
    let both = "[lobby]\nlisten = \"127.0.0.1:7\"\n\n[web]\nlisten = \"127.0.0.1:7\"\n";
    assert_eq!(errors(both), format!("rallypoint.toml:2 and rallypoint.toml:5: {clash}"));
    assert_eq!(
        errors("[lobby]\nlisten = \"0.0.0.0:29950\"\n"),
        "rallypoint.toml:2: lobby.listen and web.listen: 0.0.0.0:29950 is used twice; choose different ports"
    );
    let file = File::new("[lobby]\nlisten = \"127.0.0.1:7\"\n");
    let mut sources = file.sources();
    sources.variables.insert("RALLYPOINT_WEB_LISTEN".into(), "127.0.0.1:7".into());
    let message = sources.load().unwrap_err().to_string();
    assert_eq!(message, format!("{}:2 and RALLYPOINT_WEB_LISTEN: {clash}", file.path().display()));
}

#[test]
fn flags_override_variables_which_override_the_file_which_overrides_defaults() {
    let file = File::new("[lobby]\nlease = \"1m\"\nmax_registration = 1000\n[caps]\ntotal = 10");
    let mut sources = file.sources();
    sources.variables.insert("RALLYPOINT_LOBBY_LEASE".into(), "2m".into());
    sources.variables.insert("RALLYPOINT_LOBBY_MAX_REGISTRATION".into(), "2000".into());
    sources.flags.push(flag("lobby.lease", "3m"));
    let settings = sources.load().unwrap().settings;
    assert_eq!(settings.registry.lease, Duration::from_secs(180));
    assert_eq!(settings.registry.max_registration, 2_000);
    assert_eq!(settings.registry.caps.total, 10);
    assert_eq!(settings.registry.caps.per_address, 32);
}

#[test]
fn a_printed_configuration_loads_to_the_same_settings() {
    let mut first = settings(
        r#"
        data_dir = "/var/lib/somewhere else"
        [lobby]
        listen = "127.0.0.1:0"
        lease = "90s"
        address_map = ["10.0.0.9:8190=203.0.113.5:9000", "10.0.0.0/8 = 203.0.113.5", "[fd00::1]:1=[2001:db8::1]:2"]
        [lists.names]
        00000000-0000-0000-0000-000000000001 = "A \"quoted\" name\n"
        [legacy]
        listen = "off"
        [limits.host]
        packets = "off"
        bytes = "600/m burst 50"
        [log]
        level = "debug"
        format = "json"
        [[ban]]
        address = "203.0.113.9"
        [[ban]]
        network = "2001:db8::/32"
        reason = "spam"
        until = 2030-01-31
        [[ban]]
        name = "*casino*"
        until = "2030-01-31T18:00:00+02:00"
        [[watch]]
        server = "bloodmasters://play.example.org"
        list = "Vanguard"
        [[watch]]
        server = "session://[2001:db8::1]:45555"
        list = "00000000-0000-0000-0000-000000000001"
        "#,
    );
    assert_eq!(first.names.len(), 7, "a file adds names");
    assert_eq!(settings(&print(&first)), first);
    // With every list in its other form.
    first = Settings::default();
    assert_eq!(settings(&print(&first)), first);
}

#[test]
fn a_printed_configuration_marks_settings_that_need_a_restart() {
    let printed = print(&Settings::default());
    let count = SETTINGS.iter().filter(|setting| !setting.reloads).count();
    // Long lines are wrapped.
    assert_eq!(printed.replace("\n# ", " ").matches("; needs a restart)").count(), count);
}

#[test]
fn every_setting_can_be_set_by_a_variable_and_by_a_flag() {
    let printed = Settings::default();
    for setting in SETTINGS.iter() {
        let value = setting.show(&printed);
        assert_eq!(with_flags(&[(setting.path, &value)]).as_ref(), Ok(&printed), "{}", setting.path);
        let variables = [(setting.variable(), "nonsense, [".to_owned())].into();
        let from_variable = Sources { variables, ..no_sources() }.load();
        match (setting.path, from_variable) {
            // Any text is valid.
            ("data_dir" | "web.title" | "web.welcome" | "web.logo" | "web.maps" | "web.geoip", loaded)
            | ("export.directory" | "export.key_file", loaded) => {
                assert!(loaded.is_ok());
            }
            (path, loaded) => assert!(loaded.is_err(), "{path}"),
        }
    }
}

#[test]
fn values_of_variables_and_flags_need_no_quotes() {
    let listen = "127.0.0.1:29944, [::1]:29944";
    let settings = with_flags(&[
        ("lobby.listen", listen),
        ("lobby.allow_private", "false"),
        ("limits.exempt", "off"),
        ("checks.exempt", "10.0.0.0/8"),
        ("log.level", "WARN"),
        ("data_dir", "1234"),
        ("lists.names", r#"{ 00000000-0000-0000-0000-000000000001 = "One" }"#),
    ])
    .unwrap();
    assert_eq!(settings.doors[&LOBBY].len(), 2);
    assert!(!settings.registry.allow_private);
    assert!(settings.limit_exempt.is_empty());
    assert_eq!(settings.check_exempt, ["10.0.0.0/8".parse().unwrap()]);
    assert_eq!(settings.log.level, tracing::Level::WARN);
    assert_eq!(settings.data_dir, Some("1234".into()));
    assert_eq!(settings.names[&"00000000-0000-0000-0000-000000000001".parse().unwrap()], "One");
}

#[test]
fn an_error_names_the_file_the_line_and_the_expected_value() {
    for (text, expected) in [
        ("[lobby]\n\nleese = \"70s\"", r#"rallypoint.toml:3: unknown key "leese" in [lobby]; did you mean "lease"?"#),
        ("lease = \"70s\"", r#"rallypoint.toml:1: unknown key "lease"; did you mean lease in [lobby]?"#),
        ("[http]\nlisten = \"127.0.0.1:0\"", r#"rallypoint.toml:1: unknown key "http"; did you mean "web"?"#),
        ("\n[loby]\nlease = \"70s\"", r#"rallypoint.toml:2: unknown key "loby"; did you mean "lobby"?"#),
        ("[log]\nverbosity = 3", r#"rallypoint.toml:2: unknown key "verbosity" in [log]; known keys: level, format"#),
        ("[lobby]\nlease = 70", r#"rallypoint.toml:2: lobby.lease: expected a duration from "1s" to "24h", not 70"#),
        (
            "[lobby]\nlease = \"2 days ago\"",
            r#"rallypoint.toml:2: lobby.lease: expected a duration from "1s" to "24h", not "2 days ago""#,
        ),
        (
            "[lobby]\nlisten = [\n  \"0.0.0.0:29944\",\n  \"::29944\",\n]",
            r#"rallypoint.toml:4: lobby.listen: expected an address and a port such as "0.0.0.0:29944" or "[::]:29944", not "::29944""#,
        ),
        (
            "[lobby]\nlisten = []",
            r#"rallypoint.toml:2: lobby.listen: expected a list of addresses with ports such as ["0.0.0.0:29944", "[::]:29944"], not an empty list"#,
        ),
        (
            "[lobby]\nmax_registration = 60",
            "rallypoint.toml:2: lobby.max_registration: expected a number from 61 to 65507, not 60",
        ),
        ("[caps]\ntotal = -1", "rallypoint.toml:2: caps.total: expected a number from 1 to 16000000, not -1"),
        ("[caps]\nper_address = 0", "rallypoint.toml:2: caps.per_address: expected a number of at least 1, not 0"),
        ("[checks]\nenabled = \"yes\"", r#"rallypoint.toml:2: checks.enabled: expected true or false, not "yes""#),
        ("lobby = 3", "rallypoint.toml:1: expected the table [lobby], not 3"),
        (
            "[limits.host]\npackets = 10",
            r#"rallypoint.toml:2: limits.host.packets: expected a rate limit such as "10/s burst 300" or "600/m burst 50", or "off", not 10"#,
        ),
        (
            "[limits.host]\npackets = \"0/s burst 1\"",
            "rallypoint.toml:2: limits.host.packets: a rate of 0 lets nothing through: use at least 1, or a longer period",
        ),
        (
            "[log]\nlevel = \"loud\"",
            r#"rallypoint.toml:2: log.level: expected "error", "warn", "info", "debug" or "trace", not "loud""#,
        ),
        (
            "[lists.names]\nquake = \"Quake\"",
            "rallypoint.toml:2: lists.names: expected the list's UUID or one of gg2 (Gang Garrison 2), pygg2 (PyGG2 testing), \
             vanguard (Vanguard), rooms (Rallypoint rooms), bloodmasters (Bloodmasters), quake3 (Quake 3 and relatives), not \"quake\"",
        ),
        (
            "[lobby]\naddress_map = [\"10.0.0.0/8=2001:db8::1\"]",
            r#"rallypoint.toml:2: lobby.address_map: expected two addresses of the same family, not "10.0.0.0/8=2001:db8::1""#,
        ),
        (
            "[lobby]\naddress_map = [\"10.0.0.0/8=0.0.0.0\"]",
            r#"rallypoint.toml:2: lobby.address_map: expected a public address that a server can have, not "10.0.0.0/8=0.0.0.0""#,
        ),
        ("[[ban]]\nreason = \"spam\"", "rallypoint.toml:1: ban: this [[ban]] lacks an address, a network or a name"),
        (
            "[[ban]]\naddress = \"203.0.113.9\"\n\n[[ban]]\naddress = \"203.0.113.300\"",
            r#"rallypoint.toml:5: ban: address: expected a network such as "203.0.113.0/24" or an address, not "203.0.113.300""#,
        ),
        (
            "[[ban]]\nname = \"x\"\nnetwork = \"10.0.0.0/8\"",
            "rallypoint.toml:3: ban: a [[ban]] takes only one of address, network and name",
        ),
        (
            "[[ban]]\nname = \"x\"\nuntil = \"tomorrow\"",
            r#"rallypoint.toml:3: ban: until: expected a date such as 2027-01-31 or 2027-01-31T18:00:00Z, not "tomorrow""#,
        ),
        (
            "[[ban]]\nname = \"x\"\nreson = \"y\"",
            r#"rallypoint.toml:3: ban: unknown key "reson" in [[ban]]; did you mean "reason"?"#,
        ),
    ] {
        assert_eq!(errors(text), expected, "{text}");
    }
}

#[test]
fn syntax_errors_are_reported_with_their_line() {
    let message = errors("[lobby]\nlease = 70s\n\n[log]\nlevel = \n");
    let lines: Vec<_> = message.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(lines, ["rallypoint.toml:2", "rallypoint.toml:5"], "{message}");
    assert_eq!(
        errors("[lobby]\n[lobby]\n"),
        "rallypoint.toml:2: the table [lobby] exists twice; move the keys of this one to the first one"
    );
    let twice = "[lobby]\nlease = \"1m\"\nlease = \"2m\"\n";
    assert_eq!(errors(twice), "rallypoint.toml:3: lease is defined twice; remove one of them");
}

#[test]
fn all_errors_are_reported_at_once_in_the_order_of_their_lines() {
    let text = "[[ban]]\nnam = \"x\"\nuntil = 3\n[[ban]]\naddress = 7\n[lobby]\nleese = 1\nmax_registration = 1\n\
                address_map = [\n\"x\",\n\"y\"]\n[log]\nlevel = \"loud\"\n[lists.names]\na = \"A\"\nb = \"B\"";
    let message = errors(text);
    let lines: Vec<_> = message.lines().map(|line| line.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["2", "3", "5", "7", "8", "10", "11", "13", "15", "16"], "{message}");
}

#[test]
fn an_expired_ban_is_reported() {
    let file = File::new("[[ban]]\nname = \"*gold*\"\nuntil = 2020-01-31\n[[ban]]\naddress = \"192.0.2.1\"");
    let warnings = file.sources().load().unwrap().warnings;
    assert_eq!(warnings, ["the ban of \"*gold*\" expired at 2020-01-31T00:00:00Z and has no effect"]);
}

#[test]
fn errors_in_variables_and_flags_name_them() {
    let variables = [("RALLYPOINT_LOBBY_LEASE".into(), "soon".into())].into();
    let message = Sources { variables, ..no_sources() }.load().unwrap_err().to_string();
    assert_eq!(message, r#"RALLYPOINT_LOBBY_LEASE: expected a duration from "1s" to "24h", not "soon""#);
    for (path, value, expected) in [
        ("lobby.lease", "soon", r#"--set lobby.lease: expected a duration from "1s" to "24h", not "soon""#),
        ("lobby.leese", "1m", r#"--set lobby.leese: unknown key "leese" in [lobby]; did you mean "lease"?"#),
        ("http.listen", "off", r#"--set http.listen: unknown setting "http.listen"; did you mean "web.listen"?"#),
        ("loby.lease", "1m", r#"--set loby.lease: unknown setting "loby.lease"; did you mean "lobby.lease"?"#),
    ] {
        assert_eq!(with_flags(&[(path, value)]).unwrap_err(), expected);
    }
}

#[test]
fn a_possibly_misspelt_variable_is_a_warning_and_not_an_error() {
    let variables = [("RALLYPOINT_LOBBY_LEESE".to_owned(), "1".to_owned())].into();
    let warnings = Sources { variables, ..no_sources() }.load().unwrap().warnings;
    assert!(warnings[0].contains("did you mean \"RALLYPOINT_LOBBY_LEASE\"?"), "{warnings:?}");
}

#[test]
fn a_file_given_by_config_must_exist() {
    let file = Some(PathBuf::from("nowhere/rallypoint.toml"));
    let message = Sources { file, ..Sources::default() }.load().unwrap_err().to_string();
    assert_eq!(message, "nowhere/rallypoint.toml: there is no such file");
}

#[test]
fn the_first_file_in_the_default_directories_is_found() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("rallypoint");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("rallypoint.toml"), "[caps]\ntotal = 7").unwrap();
    let directories = vec![home.path().join("missing"), folder.clone()];
    let loaded = Sources { directories, ..Sources::default() }.load().unwrap();
    assert_eq!(loaded.settings.registry.caps.total, 7);
    assert_eq!(loaded.file, Some(folder.join("rallypoint.toml")));
}

#[test]
fn the_path_of_a_ban_file_is_relative_to_the_configuration_file() {
    let file = File::new("ban_file = \"bans.toml\"\n[[ban]]\nname = \"first\"");
    let bans = file.dir.path().join("bans.toml");
    std::fs::write(&bans, "[[ban]]\nname = \"second\"").unwrap();
    let settings = file.sources().load().unwrap().settings;
    assert_eq!(settings.all_bans().count(), 2);
    assert!(!print(&settings).contains("\"second\""), "bans of another file are not printed");
    std::fs::write(&bans, "[lobby]\nlease = \"1s\"").unwrap();
    assert_eq!(file.errors(), "bans.toml:1: expected only [[ban]] in this file, not \"lobby\"");
    std::fs::remove_file(&bans).unwrap();
    assert_eq!(file.errors(), "bans.toml: there is no such file");
}

#[test]
fn an_expired_ban_is_not_applied() {
    let settings = settings(
        "[[ban]]\nname = \"a\"\nuntil = 2020-01-01\n[[ban]]\nname = \"b\"\n[[ban]]\nname = \"c\"\nuntil = 9000-01-01",
    );
    let now = std::time::Instant::now();
    let bans = settings.registry(now, "2026-11-03T00:00:00Z".parse().unwrap()).bans;
    let banned = |name: &[u8]| bans.by_name(now, name).is_some();
    assert_eq!([banned(b"a"), banned(b"b"), banned(b"c")], [false, true, true]);
}

#[test]
fn the_registry_accepts_what_the_settings_accept() {
    let edges = with_flags(&[
        ("lobby.lease", "24h"),
        ("lobby.max_registration", "65507"),
        ("caps.total", "16000000"),
        ("checks.timeout", "100ms"),
        ("checks.keep", "1s"),
        ("limits.reserved_percent", "90"),
        ("limits.max_entries", "16777216"),
    ]);
    let registry = edges.unwrap().registry(std::time::Instant::now(), jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(registry.validate(), Ok(()));
    let default = Settings::default().registry(std::time::Instant::now(), jiff::Timestamp::UNIX_EPOCH);
    // The program has default names; the crate has none.
    let named_lists = names::known().into_keys().collect();
    assert_eq!(default, rallypoint_lobby_proto::Config { named_lists, ..Default::default() });
}

/// The table has the defaults of the program. The crates have some of their own, for programs that embed them.
#[test]
fn the_defaults_are_those_of_the_crates() {
    let settings = Settings::default();
    let lobby = LobbyOptions::default();
    assert_eq!(settings.doors, lobby.doors);
    assert_eq!((settings.save_every, settings.receive_buffer), (lobby.save_every, lobby.receive_buffer));
    assert_eq!((&settings.list, settings.registry.caps), (&lobby.list, lobby.registry.caps));
    let mut web = WebOptions::default();
    web.settings.names = ListNames(names::known());
    assert_eq!(settings.web(), web);
    let history = HistoryOptions::new("");
    assert_eq!(settings.history.retention, history.retention);
    assert_eq!((settings.history.max_servers, settings.history.max_size), (history.limits.servers, history.max_bytes));
    assert_eq!(settings.export.max_age, ExportSettings::default().max_age);
    assert_eq!(settings.web.settings.site.title, ExportSettings::default().title);
}

#[test]
fn sizes_and_limits_of_bytes_take_units() {
    let mut sources = no_sources();
    sources.variables.insert("RALLYPOINT_LIST_HELD_BYTES".into(), "1.5GiB".into());
    sources.flags.push(flag("caps.memory", "4 GiB"));
    sources.flags.push(flag("lobby.max_registration", "4KiB"));
    sources.flags.push(flag("limits.host.bytes", "50kB/s burst 2MB"));
    let settings = sources.load().unwrap().settings;
    assert_eq!((settings.registry.caps.memory, settings.list.held_bytes), (4 << 30, 3 << 29));
    assert_eq!(settings.registry.max_registration, 4_096);
    assert_eq!(settings.registry.limits.host.bytes, Some(rallypoint_limit::Rate::per_second(50_000, 2_000_000)));
    let text =
        "[caps]\nmemory = \"4GiB\"\n[history]\nmax_size = 1073741824\n[limits.net]\nbytes = \"600000/m burst 500000\"";
    let settings = self::settings(text);
    assert_eq!((settings.registry.caps.memory, settings.history.max_size), (4 << 30, 1 << 30));
    let printed = print(&settings);
    for line in
        ["memory = \"4GiB\"", "max_size = \"1GiB\"", "bytes = \"600kB/m burst 500kB\"", "max_registration = 4096"]
    {
        assert!(printed.lines().any(|printed| printed == line), "{line}");
    }
    for wrong in ["\"4 gigabytes\"", "\"512KiB\"", "\"2048GiB\"", "4.5", "-1"] {
        let expected =
            format!("rallypoint.toml:2: caps.memory: expected a size from \"1MiB\" to \"1TiB\", not {wrong}");
        assert_eq!(errors(&format!("[caps]\nmemory = {wrong}")), expected);
    }
}

#[test]
fn files_for_the_pages_that_cannot_be_read_are_reported_with_their_place() {
    let file = File::new("[web]\nlogo = \"logo.svg\"\nmaps = \"maps\"\ngeoip = \"countries.mmdb\"");
    let folder = format!("{}/", file.dir.path().display());
    let check =
        || file.sources().load().unwrap().check_files().map_err(|errors| errors.to_string().replace(&folder, ""));
    assert_eq!(
        check().unwrap_err(),
        "rallypoint.toml:2: web.logo: logo.svg: there is no such file\n\
         rallypoint.toml:3: web.maps: maps: there is no such file\n\
         rallypoint.toml:4: web.geoip: countries.mmdb: there is no such file"
    );
    std::fs::write(file.dir.path().join("logo.svg"), "<svg/>").unwrap();
    std::fs::create_dir(file.dir.path().join("maps")).unwrap();
    std::fs::write(file.dir.path().join("countries.mmdb"), "nonsense").unwrap();
    let message = check().unwrap_err();
    assert!(
        message.starts_with("rallypoint.toml:4: web.geoip: countries.mmdb: ") && message.lines().count() == 1,
        "{message}"
    );
    assert_eq!(settings("[web]\ntitle = \"x\"").web.settings.site.check_files().len(), 0);
}

#[test]
fn watched_servers_name_a_lobby_by_uuid_or_by_any_of_its_names() {
    let text = r#"
        [[watch]]
        server = "Bloodmasters://play.example.org"
        list = "our own"
        [[watch]]
        server = "session://203.0.113.1:7"
        list = "gg2"
        [lists.names]
        00000000-0000-0000-0000-000000000001 = "Our own"
    "#;
    let watched = settings(text).watch;
    let shown: Vec<_> = watched.iter().map(|one| format!("{one} {}", one.list)).collect();
    assert_eq!(
        shown,
        [
            "bloodmasters://play.example.org:6969 00000000-0000-0000-0000-000000000001",
            "session://203.0.113.1:7 1ccf16b1-436d-856f-504d-cc1af306aaa7"
        ]
    );
}

#[test]
fn errors_in_watched_servers_have_a_line() {
    let names = "\"PyGG2 testing\", \"Gang Garrison 2\", \"Vanguard\", \"Quake 3 and relatives\", \"Rallypoint rooms\", \"Bloodmasters\"";
    let schemes = Protocol::ALL.iter().map(|protocol| format!("{protocol}://host:port"));
    let schemes = schemes.collect::<Vec<_>>().join(" or ");
    assert!(schemes.starts_with("bloodmasters://host:port or session://host:port"));
    for (text, expected) in [
        (
            "[[watch]]\nserver = \"play.example.org\"\nlist = \"gg2\"",
            format!("rallypoint.toml:2: watch: server: expected {schemes}, not \"play.example.org\""),
        ),
        (
            "[[watch]]\nserver = \"session://a:1\"\nlist = \"gg3\"",
            format!("rallypoint.toml:3: watch: list: expected a UUID or one of {names}, not \"gg3\""),
        ),
        (
            "[[watch]]\nserver = \"session://a:1\"",
            "rallypoint.toml:1: watch: this [[watch]] lacks list".to_owned(),
        ),
        (
            "[[watch]]\nserver = 7\nlit = \"gg2\"\nlist = \"gg2\"",
            "rallypoint.toml:2: watch: server: expected text, not 7\nrallypoint.toml:3: watch: unknown key \"lit\" in [[watch]]; did you mean \"list\"?".to_owned(),
        ),
        (
            "[[watch]]\nserver = \"session://a:1\"\nlist = \"gg2\"\n[[watch]]\nserver = \"session://a:1\"\nlist = \"vanguard\"",
            "rallypoint.toml:4: watch: session://a:1 is listed twice; remove one of them".to_owned(),
        ),
    ] {
        assert_eq!(errors(text), expected);
    }
}
