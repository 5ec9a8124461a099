// The pages of lists.

import "./copy.js";
import "./times.js";
import "./graph.js";
