// Code that most pages use comes with the entry, so a browser requests only the page's own file in addition.
import './live.js';
import './parts/links.jsx';
import './parts/section.jsx';
import './parts/states.jsx';
import './parts/strip.jsx';
import './parts/table.jsx';
import './status.jsx';
import './time.jsx';
