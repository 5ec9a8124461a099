// The pages of lobbies.

import "./times.js";
import "./graph.js";
