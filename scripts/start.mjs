// `npm start`. What it does is in the other file, which an older Node cannot load.
import './check-node.mjs';

await import('./start-gateway.mjs');
