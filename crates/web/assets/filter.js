// Whether a server fits the filters of the page: the same rules as the server's, for servers that come while one looks.

const fold = (text) => (text ?? "").toLowerCase();

/** What the form says, without what goes without saying. */
export function parametersOf(form) {
  const parameters = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value !== "" && !(name === "sort" && value === "-players")) parameters.append(name, value);
  }
  return parameters;
}

export function fits(server, parameters) {
  const is = (name, ...texts) => {
    const wanted = parameters.get(name);
    return wanted === null || texts.some((text) => fold(text) === fold(wanted));
  };
  const texts = [server.name, server.map, server.game, server.game_name, server.version].map(fold);
  const words = fold(parameters.get("q") ?? "").split(/\s+/).filter((word) => word !== "");
  return (
    is("lobby", server.lobby) &&
    is("map", server.map) &&
    is("version", server.version) &&
    is("verified", server.verified) &&
    is("game", server.game, server.game_name) &&
    !(parameters.has("not_empty") && server.numplayers === 0) &&
    !(parameters.has("not_full") && server.numplayers >= server.maxplayers) &&
    !(parameters.has("no_password") && server.password) &&
    !(parameters.has("both_families") && !(server.addresses.ipv4 && server.addresses.ipv6)) &&
    words.every((word) => texts.some((text) => text.includes(word)))
  );
}
