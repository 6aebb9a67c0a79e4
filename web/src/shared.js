// What most pages have comes with the entry, so that a page's own file is all that is left to fetch.
import './live.js';
import './parts/links.jsx';
import './parts/section.jsx';
import './parts/states.jsx';
import './parts/strip.jsx';
import './parts/table.jsx';
import './status.jsx';
import './time.jsx';
