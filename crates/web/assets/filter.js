// Matches servers that are listed after the page was loaded against its filters, by the rules of src/filter.rs.

const fold = (text) => (text ?? "").toLowerCase();

/** The parameters of the form, without defaults. */
export function formParameters(form) {
  const parameters = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value !== "" && !(name === "sort" && value === "-players")) parameters.append(name, value);
  }
  return parameters;
}

/** Whether a server matches the filters. */
export function matches(server, parameters) {
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
    !(parameters.has("not_full") && server.maxplayers > 0 && server.numplayers >= server.maxplayers) &&
    !(parameters.has("no_password") && server.password) &&
    !(parameters.has("both_families") && !(server.addresses.ipv4 && server.addresses.ipv6)) &&
    words.every((word) => texts.some((text) => text.includes(word)))
  );
}
