// The pages of lobbies.

import "./copy.js";
import "./times.js";
import "./graph.js";
