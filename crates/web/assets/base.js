// The path of the pages behind a proxy: scripts are always at <base>/assets/.

export const BASE = new URL("..", import.meta.url).pathname.replace(/\/$/, "");
