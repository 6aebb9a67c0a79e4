// Makes what the rig keeps in build/rig/, once, before many test files need it at the same time: GitHub's description, its form
// after Prism has read it, bundled packages, and the RSA keys.
//
// usage: node tests/github/prepare.mjs
import { Description } from './description.mjs';
import { rsaKey } from './keys.mjs';
import { LIBRARIES, library } from './libraries.mjs';

LIBRARIES.forEach(library);
await Description.open();
rsaKey();
